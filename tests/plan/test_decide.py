"""Which checked calls a request wants: nothing that was not offered, nothing that does not fit, ever."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

import toolspeak as ts
from replies import answered, calls, native
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Finished
from toolspeak.models.speaker import Speaker
from toolspeak.plan.calls import checked


def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Get the weather in a city."""
    raise AssertionError("deciding runs nothing")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    raise AssertionError("deciding runs nothing")


TOOLS = [weather, add]


def test_a_text_stays_a_text() -> None:
    reply = ts.decide("Hi", tools=TOOLS, model=native("Hello there!"))
    assert (reply.text, reply.calls, reply.finish) == ("Hello there!", (), "stop")
    assert reply.messages == [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello there!"}]


def test_one_call() -> None:
    reply = ts.decide("Weather?", tools=TOOLS, model=native(calls(("weather", {"city": "Xiamen"}))))
    (call,) = reply.calls
    assert (call.name, call.arguments) == ("weather", {"city": "Xiamen"})
    assert reply.messages[-1]["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city": "Xiamen"}'}


def test_several_calls_keep_their_order() -> None:
    model = native(calls(("add", {"a": 1, "b": 2}), ("weather", {"city": "Rome"}), text="Two things:"))
    reply = ts.decide("Both", tools=TOOLS, model=model)
    assert [call.name for call in reply.calls] == ["add", "weather"]
    assert reply.text == "Two things:"


def test_a_text_model_decides_in_its_dialect() -> None:
    model = ts.Scripted(['{"tool": "add", "tool_input": {"a": 1, "b": 2}, "message": null}'])
    reply = ts.decide("1 + 2?", tools=TOOLS, model=model)
    assert [(call.name, call.arguments) for call in reply.calls] == [("add", {"a": 1, "b": 2})]


def test_an_unknown_tool_is_explained_with_the_near_names() -> None:
    model = native(calls(("wether", {"city": "Rome"})), calls(("weather", {"city": "Rome"})))
    reply = ts.decide("Weather in Rome?", tools=TOOLS, model=model)
    assert reply.calls[0].name == "weather"
    told = model.requests[1].messages[-1]
    assert told["role"] == "tool"
    assert "no tool 'wether'" in str(told["content"])
    assert "weather" in str(told["content"]).split("wether", 1)[1]
    assert answered(reply.messages[:-1])


def test_wrong_arguments_are_asked_again_with_every_problem() -> None:
    model = native(
        calls(("weather", {"city": 5, "unit": "kelvin", "when": "now"})), calls(("weather", {"city": "Rome"}))
    )
    ts.decide("Weather in Rome?", tools=TOOLS, model=model)
    told = str(model.requests[1].messages[-1]["content"])
    assert "city" in told
    assert "unit" in told
    assert "when" in told


def test_problems_are_told_apart_and_of_two_values_for_one_name_neither_is_taken() -> None:
    model = native(calls(("add", '{"a": 1, "a": 100}')), calls(("add", {"a": 1, "b": 2})))
    assert ts.decide("1 + 2?", tools=TOOLS, model=model).calls[0].arguments == {"a": 1, "b": 2}
    told = str(model.requests[1].messages[-1]["content"])
    assert "the arguments give 'a' twice; give it once; the required argument 'b' is missing" in told


def test_the_good_call_beside_a_bad_one_is_answered_too() -> None:
    model = native(
        calls(("add", {"a": 1, "b": 2}), ("weather", {})), calls(("add", {"a": 1, "b": 2}), ("weather", {"city": "R"}))
    )
    reply = ts.decide("Both", tools=TOOLS, model=model)
    assert len(reply.calls) == 2
    assert answered(model.requests[1].messages)
    assert "Not run" in str(model.requests[1].messages[-2]["content"])


def test_a_lossless_coercion_leaves_a_note() -> None:
    reply = ts.decide("1 + 2?", tools=TOOLS, model=native(calls(("add", {"a": "1", "b": 2}))))
    (call,) = reply.calls
    assert call.arguments == {"a": 1, "b": 2}
    assert json.loads(call.json) == call.arguments
    assert call.notes


def test_the_last_error_carries_every_attempt() -> None:
    wrong = [calls(("add", {"a": 1.5, "b": i})) for i in range(3)]
    model = native(*wrong)
    with pytest.raises(ts.GenerationError) as caught:
        ts.decide("1 + 2?", tools=TOOLS, model=model)
    assert [attempt.reply.calls[0].arguments["b"] for attempt in caught.value.attempts] == [0, 1, 2]
    assert all("1.5" in attempt.error for attempt in caught.value.attempts)
    assert "3 tries" in str(caught.value)
    assert caught.value.reply is caught.value.attempts[-1].reply


def test_the_same_wrong_reply_twice_ends_it() -> None:
    model = native(calls(("add", {"a": 1})), repeat=True)
    with pytest.raises(ts.GenerationError) as caught:
        ts.decide("1 + 2?", tools=TOOLS, model=model, tries=50)
    assert len(caught.value.attempts) == len(model.requests) == 2


def test_a_cut_call_never_passes() -> None:
    cut = [CallStart("weather", "c0"), ArgumentsDelta('{"city": "Rome"}'), CallEnd(False), Finished("length")]
    model = native(cut, calls(("weather", {"city": "Rome"})))
    ts.decide("Weather in Rome?", tools=TOOLS, model=model)
    assert "cut off" in str(model.requests[1].messages[-1]["content"])
    with pytest.raises(ts.GenerationError):
        ts.decide("Weather in Rome?", tools=TOOLS, model=native(cut, repeat=True))


def test_a_call_that_was_cut_at_max_tokens_says_so_at_every_door() -> None:
    cut = [CallStart("add", "c0"), ArgumentsDelta('{"a": 1, "b'), CallEnd(False), Finished("length")]
    for verb in (ts.decide, ts.call):
        with pytest.raises(ts.GenerationError, match=r"cut off at its limit of tokens .*`length`.* Raise max_tokens"):
            verb("1 + 2?", tools=[add], model=native(cut, repeat=True))
    reply = ts.run("1 + 2?", tools=[add], model=native(cut, "No."))
    (result,) = reply.steps[0].results
    assert "Raise max_tokens" in str(result.error)
    assert "Raise max_tokens" in result.text
    with pytest.raises(ts.NoCall, match="Raise max_tokens"):
        ts.call("sums", tools=TOOLS, model=native([ts.TextDelta("I add"), Finished("length")], repeat=True))


CUT = '[TOOL_CALLS]add[ARGS]{"a": 1, "b": 2'


def spoken(*texts: str, finish: Any = "stop", tokens: int = 9) -> Speaker:
    """A text model in the dialect mistral-v13 whose server ends the first reply like this."""
    first: list[Any] = [ts.TextDelta(texts[0]), Finished(finish, ts.Usage(5, tokens))]
    return Speaker(ts.Scripted([first, *texts[1:]]), "mistral-v13")


@pytest.mark.parametrize("verb", [ts.decide, ts.call])
def test_an_incomplete_call_in_a_reply_that_the_model_ended_is_asked_again(verb: Any) -> None:
    model = spoken(CUT, CUT + "}")
    assert verb("1 + 2?", tools=[add], model=model)
    with pytest.raises(ts.GenerationError) as wrong:
        verb("1 + 2?", tools=[add], model=spoken(CUT, CUT, CUT))
    assert "max_tokens" not in str(wrong.value)
    assert all(attempt.reply.finish == "tool_calls" for attempt in wrong.value.attempts)


def test_a_reply_that_ends_with_the_beginning_of_a_call_is_asked_again() -> None:
    half = "I add.\n[TOOL_CALLS]"
    assert ts.decide("1 + 2?", tools=[add], model=spoken(half, CUT + "}")).calls
    assert ts.decide("1 + 2?", tools=[add], model=spoken(half, "Three.")).text == "Three."
    reply = ts.decide("1 + 2?", tools=[add], model=spoken(half, half, half))  # it cannot do better
    assert (reply.text, reply.calls, "cut-opener" in [note.rule for note in reply.notes]) == (half, (), True)
    talk = "The mark is [TOOL_CALLS]"
    assert ts.decide("1 + 2?", tools=[add], model=spoken(talk, "never")).text == talk
    cut = ts.decide("1 + 2?", tools=[add], model=spoken(half, "never", finish="length", tokens=9), max_tokens=9)
    assert (cut.text, cut.finish, "cut-call" in [note.rule for note in cut.notes]) == ("I add.\n", "length", True)


@pytest.mark.parametrize("reported", ["length", "stop"])
def test_an_incomplete_call_at_the_limit_of_tokens_is_cut(reported: str) -> None:
    """Some servers report `stop` at the limit as well."""
    broken = [CallStart("add", "c0"), ArgumentsDelta('{"a": 1, "b'), CallEnd(False), Finished(reported, ts.Usage(5, 9))]
    for make in (lambda: spoken(CUT, CUT, CUT, finish=reported), lambda: native(broken, repeat=True)):
        with pytest.raises(ts.GenerationError) as cut:
            ts.decide("1 + 2?", tools=[add], model=make(), max_tokens=9)
        assert cut.value.attempts[0].reply.finish == "length"
        assert "Raise max_tokens" in cut.value.attempts[0].error


@pytest.mark.parametrize("arguments", ['{"city": "Ro', "[1]", "Rome", '{"city": "Rome"} x'])
def test_arguments_that_are_no_object_never_pass(arguments: str) -> None:
    with pytest.raises(ts.GenerationError):
        ts.decide("Weather?", tools=TOOLS, model=native(calls(("weather", arguments)), repeat=True))


def test_a_required_call_is_asked_for_until_it_comes() -> None:
    model = native("It is sunny.", calls(("weather", {"city": "Rome"})))
    reply = ts.decide("Weather in Rome?", tools=TOOLS, model=model, choice="required")
    assert len(reply.calls) == 1
    assert "weather, add" in str(model.requests[1].messages[-1]["content"])


def test_a_named_choice_takes_no_other_tool() -> None:
    model = native(calls(("weather", {"city": "Rome"})), calls(("add", {"a": 1, "b": 2})))
    reply = ts.decide("1 + 2?", tools=TOOLS, model=model, choice="add")
    assert reply.calls[0].name == "add"
    assert "Only add" in str(model.requests[1].messages[-1]["content"])


def test_no_call_passes_where_none_was_allowed() -> None:
    model = native(calls(("add", {"a": 1, "b": 2})), "Three.")
    reply = ts.decide("1 + 2?", tools=TOOLS, model=model, choice="none")
    assert (reply.text, reply.calls) == ("Three.", ())


def written(dialect: str) -> str:
    """What a call of `add` is in a dialect."""
    arguments = '{"a": 1, "b": 2}'
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": arguments}}
    said: list[Any] = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    return str(ts.render(said, TOOLS, dialect).messages[-1]["content"])


@pytest.mark.parametrize("dialect", ts.dialects())
def test_no_markup_passes_where_no_call_was_allowed(dialect: str) -> None:
    call = written(dialect)
    assert ts.parse(call, dialect, TOOLS).calls
    model = Speaker(ts.Scripted([call, "Three.", call, call, call]), dialect)
    reply = ts.decide("1 + 2?", tools=TOOLS, model=model, choice="none")
    assert (reply.text, reply.calls) == ("Three.", ())
    stubborn = ts.decide("1 + 2?", tools=TOOLS, model=model, choice="none")
    assert (stubborn.text, stubborn.calls, stubborn.finish) == ("", (), "stop")
    assert [note.rule for note in stubborn.notes][-1] == "call-not-allowed"


def test_a_call_in_a_text_is_left_out_where_none_was_allowed() -> None:
    model = Speaker(ts.Scripted([f"It is three.\n{written('hermes')}"]), "hermes")
    reply = ts.decide("1 + 2?", tools=TOOLS, model=model, choice="none")
    assert (reply.text.strip(), reply.calls) == ("It is three.", ())


@pytest.mark.parametrize("choice", ["multiply", "REQUIRED", ""])
def test_a_choice_that_cannot_be(choice: str) -> None:
    for model in (native("x"), ts.Scripted(["x"])):
        with pytest.raises(ts.UsageError, match=r"choice.*weather, add"):
            ts.decide("Hi", tools=TOOLS, model=model, choice=choice)


def test_a_required_call_without_tools_cannot_be() -> None:
    with pytest.raises(ts.UsageError, match="no tool is offered"):
        ts.call("Hi", tools=[], model=native("x"))


@pytest.mark.parametrize("tools", [[], None])
def test_without_tools_a_text_passes_unchanged(tools: Any) -> None:
    text = 'Sure: {"tool": "rm", "tool_input": {"path": "/"}}\n'
    reply = ts.decide("Hi", tools=tools, model=ts.Scripted([text]))
    assert (reply.text, reply.calls) == (text, ())


def test_a_tool_without_types_takes_what_comes() -> None:
    def echo(x, y=None):  # type: ignore[no-untyped-def]
        return x, y

    reply = ts.decide("Echo", tools=[echo], model=native(calls(("echo", {"x": [1, {"a": None}]}))))
    assert reply.calls[0].arguments == {"x": [1, {"a": None}]}
    with pytest.raises(ts.GenerationError, match="x"):
        ts.decide("Echo", tools=[echo], model=native(calls(("echo", {})), repeat=True))


def test_a_model_that_answers_nonsense_for_ever_is_given_up() -> None:
    for nonsense in ("asdf qwer", '{"tool": ', '{"tool": "x", "tool_input": 5}', ""):
        with pytest.raises(ts.GenerationError):
            ts.call("1 + 2?", tools=TOOLS, model=ts.Scripted([nonsense], repeat=True), tries=4)


@pytest.mark.parametrize("tries", [0, -1])
def test_at_least_one_try(tries: int) -> None:
    with pytest.raises(ts.UsageError, match="tries"):
        ts.decide("Hi", model=native("x"), tries=tries)


def test_call_gives_the_one_call() -> None:
    call = ts.call("1 + 2?", tools=TOOLS, model=native(calls(("add", {"a": 1, "b": 2}))))
    assert (call.name, call.arguments) == ("add", {"a": 1, "b": 2})


def test_call_says_what_came_instead() -> None:
    two = native(calls(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})))
    with pytest.raises(ts.NoCall, match=r"2 calls \(add, add\)") as caught:
        ts.call("sums", tools=TOOLS, model=two)
    assert len(caught.value.attempts[0].reply.calls) == 2
    with pytest.raises(ts.NoCall, match=r"a text came: 'No idea\.'"):
        ts.call("sums", tools=TOOLS, model=native("No idea."), choice="auto")
    with pytest.raises(ts.NoCall, match="No idea"):
        ts.call("sums", tools=TOOLS, model=native("No idea.", repeat=True))


@pytest.mark.parametrize(
    ("text", "finish", "why"),
    [
        ('{"a": 1, "b": [2', "stop", "it was cut off: the reply ended (finish reason `stop`) before the call did"),
        ('{"a": 1, "b"', "", "it was cut off: the reply ended before the call did"),
        ('{"a": 1, "b": 2}', "stop", "it was cut off: the reply ended (finish reason `stop`) before the call did"),
        ('{"a": 1, "b": tow}', "stop", "its arguments are not valid JSON: Expecting value at character 15, 'tow}'"),
        ('{"a": 1, "b": 2', "length", "the reply was cut off at its limit of tokens (finish reason `length`)"),
    ],
)
def test_a_broken_call_says_how_its_reply_ended_and_what_arrived(text: str, finish: str, why: str) -> None:
    call = ts.ToolCall("c", "add", {}, text, whole=False)
    (problem,) = checked(call, [ts.tool(add)], finish)[1]
    assert problem.message.startswith(f"The call to 'add' was not run: {why}")
    assert problem.message.endswith(f"Its arguments arrived up to: {text}")
    (problem,) = checked(ts.ToolCall("c", "add", {}, "", whole=False), [ts.tool(add)], finish)[1]
    assert problem.message.endswith("None of its arguments arrived")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ('{"a": 1 "b": 2}', "what follows the arguments below is not valid there ('\"' where none may be)"),
        ('{"a": 1, "b": two}', "what follows the arguments below is not valid there ('two' is not JSON)"),
        ('{"a" = 1}', "what follows the arguments below is not valid there ('=' where none may be)"),
        (
            '{"a": "1"; "b": 2}',
            "it was cut off: the reply ended before the call did, or a quotation mark in a string is",
        ),
        ('{"a": 1, "b": "2', "it was cut off: the reply ended before the call did. Its"),
    ],
)
def test_a_malformed_call_is_not_told_as_cut(arguments: str, why: str) -> None:
    """The model then wrote a shorter call instead of valid JSON."""
    text = f'<tool_call>\n{{"name": "add", "arguments": {arguments}'
    (call,) = ts.parse(f"{text}}}\n</tool_call>" if arguments.endswith("}") else text, "hermes", TOOLS).calls
    (problem,) = checked(call, [ts.tool(add)])[1]
    assert problem.message.startswith(f"The call to 'add' was not run: {why}")


def test_a_required_call_that_never_comes_names_what_helps() -> None:
    with pytest.raises(ts.GenerationError, match=r"toolspeak doctor MODEL.*--dialect.*When a model answers with prose"):
        ts.decide("1 + 2?", tools=TOOLS, model=native("Three.", "It is three.", "3"), choice="required")
    with pytest.raises(ts.GenerationError) as raised:
        ts.decide("1 + 2?", tools=TOOLS, model=native(*[calls(("add", {"a": "x"}))] * 3), choice="required")
    assert "doctor" not in str(raised.value)


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ('<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>', "'b' is missing"),
        ('I add: Action: add\nAction Input: {"a": 1, "b": 2}\nDone.', "dialect='react'"),
    ],
)
def test_the_error_about_a_missing_call_names_the_try_that_was_nearly_one(first: str, why: str) -> None:
    model = ts.model(ts.Scripted([first, "It is three.", "Three."]), dialect="hermes")
    with pytest.raises(ts.NoCall) as caught:
        ts.call("1 + 2?", tools=[add], model=model, tries=3)
    last, _, nearest = str(caught.value).partition("Try 1 of ")
    assert "was nearly a call" in nearest
    assert why in nearest
    assert why not in last
    assert nearest.endswith(caught.value.attempts[0].error)
