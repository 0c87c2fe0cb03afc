"""Events to a reply, and a decoder's small print: ids, thoughts, prompts, being closed twice."""

from __future__ import annotations

from itertools import count

import pytest
from wire_cases import TOOLS, stream

import toolspeak as ts
from properties import rotated
from toolspeak.dialects import get
from toolspeak.events import ArgumentsDelta, CallEnd, CallResult, CallStart, Finished, Noted, TextDelta, ThoughtDelta
from toolspeak.models.scripted import Scripted
from toolspeak.types import Note, ToolCall, ToolResult, Usage
from toolspeak.wire.decode import Decoder, parse
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.reading.reply_size_limits import CALL_VALUES


def test_events_are_joined() -> None:
    reply = collect(
        [
            ThoughtDelta("h"),
            ThoughtDelta("m"),
            TextDelta("Lo"),
            TextDelta("ok"),
            Noted(Note("first")),
            CallStart("f", "a"),
            ArgumentsDelta('{"x":'),
            Noted(Note("second")),
            ArgumentsDelta(" 1}"),
            CallEnd(),
            CallStart("g", "b"),
            CallEnd(True, "late"),
            CallResult(ToolResult("a", "f", "1")),
            Finished("tool_calls", Usage(1, 2)),
            Finished("stop", Usage(3, 4, 1)),
        ]
    )
    f, g = ToolCall("a", "f", {"x": 1}, '{"x": 1}', (Note("second"),)), ToolCall("late", "g", {}, "{}")
    assert (reply.text, reply.thought, reply.calls, reply.finish) == ("Look", "hm", (f, g), "stop")
    assert reply.usage == Usage(4, 6, 1)
    assert reply.notes == (Note("first"), Note("second"))
    (message,) = reply.messages
    assert message["content"] == "Look"
    assert message["reasoning_content"] == "hm"
    assert message["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": "late", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]


@pytest.mark.parametrize("text", ["[1]", "1", "null", '"x"', "{", "{}{}", "[" * 10_000, "1" * 5000])
def test_arguments_that_are_no_object_are_none(text: str) -> None:
    reply = collect([CallStart("f", "a"), ArgumentsDelta(text), CallEnd(), Finished("tool_calls")])
    (call,) = reply.calls
    assert (call.arguments, call.json, call.whole) == ({}, text, False)
    assert [note.rule for note in call.notes] == [note.rule for note in reply.notes] == ["not-an-object"]
    assert reply.messages == [{"role": "assistant", "content": ""}]


def test_nothing_is_an_empty_reply() -> None:
    assert collect([]).messages == [{"role": "assistant", "content": ""}]


def test_ids_are_minted_by_the_caller() -> None:
    wire = 'functools[{"name": "ping", "arguments": {}}, {"name": "ping", "arguments": {}}]'
    numbers = count(7)
    decoder = Decoder(get("functools"), TOOLS, ids=lambda: f"id{next(numbers)}")
    assert [c.id for c in collect(decoder.feed(wire) + decoder.close()).calls] == ["id7", "id8"]
    assert [c.id for c in parse(wire, get("functools"), TOOLS).calls] == ["call_1", "call_2"]
    own = '<tool_call>{"id": "x9", "name": "ping", "arguments": {}}</tool_call>'
    assert parse(own, get("hermes"), TOOLS).calls[0].id == "x9"
    late = '<tool_call>{"name": "ping", "arguments": {}, "id": "x9"}</tool_call>'
    assert parse(late, get("hermes"), TOOLS).calls[0].id == "x9"


def test_a_closed_decoder_stays_closed() -> None:
    decoder = Decoder(get("hermes"), TOOLS)
    assert decoder.feed("") == []
    assert decoder.feed("Hi") == [TextDelta("Hi")]
    assert decoder.close() == [Finished("stop")]
    assert decoder.close() == []
    with pytest.raises(ts.UsageError, match="this Decoder is closed"):
        decoder.feed("more")
    assert decoder.close() == []


def test_thoughts_are_split_or_kept_with_tools_and_without() -> None:
    wire = "<think>\nhm\n</think>\n\nHi"
    for tools in (TOOLS, None, ()):
        split = parse(wire, get("hermes"), tools)
        kept = parse(wire, get("hermes"), tools, thoughts="keep")
        assert (split.thought, split.text) == ("hm", "Hi")
        assert (kept.thought, kept.text) == ("", wire)


def test_a_call_inside_a_thought_is_none() -> None:
    call = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
    reply = parse(f"<think>\nmaybe {call}\n</think>\n\nNo.", get("hermes"), TOOLS)
    assert (reply.thought, reply.text, reply.calls) == (f"maybe {call}", "No.", ())


def test_what_streams_before_the_end_of_a_call() -> None:
    decoder = Decoder(get("hermes"), TOOLS)
    assert decoder.feed('Ok.\n<tool_call>\n{"name": "pi') == [TextDelta("Ok.")]
    assert decoder.feed('ng"') == [CallStart("ping", "call_1")]
    assert decoder.feed(', "arguments": {"a": "on') == [ArgumentsDelta('{"a": "on')]
    assert decoder.feed("e t") == [ArgumentsDelta("e t")]
    assert decoder.feed('wo"}') == [ArgumentsDelta('wo"}')]
    assert decoder.feed("}") == []  # what comes behind it may show that there is more of the call
    assert decoder.feed("\n</tool_call>") == []  # what comes behind it on the line may show that it is in a sentence
    assert decoder.feed("\n") == [CallEnd()]
    assert decoder.close() == [Finished("tool_calls")]


def test_a_surrogate_that_no_text_can_hold_is_replaced_in_a_text() -> None:
    assert parse('{"tool": null, "message": "a\\ud83d b\\ud83d\\ude00"}', get("tool-json"), TOOLS).text == "a\ufffd b😀"
    assert stream(get("hermes"), [])[-1] == Finished("stop")


def test_a_thought_that_stays_in_the_text_keeps_its_marks() -> None:
    """Else nobody could tell it from the text behind it; what only frames the text is no part of it."""
    wire = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>"
    for chunks in [[wire], *([wire[:n], wire[n:]] for n in range(1, len(wire)))]:
        reply = collect(stream(get("harmony"), chunks, TOOLS, "<|start|>assistant", "keep"))
        assert (reply.text, reply.thought) == ("<|channel|>analysis<|message|>Hm.<|end|>Yes.", "")


def test_a_stray_closer_on_a_line_of_its_own_leaves_the_line_break() -> None:
    reply = parse("I know.\n</think>\n\nRome.", get("hermes"), TOOLS)
    assert (reply.text, [n.rule for n in reply.notes]) == ("I know.\nRome.", ["stray-closer"])


@pytest.mark.parametrize(("opener", "closer"), [('{"a":', "}"), ("[", "]")])
@pytest.mark.parametrize("dialect", ["hermes", "gemma4", "pythonic", "qwen3-coder"])
def test_arguments_that_nest_too_deep_are_none_and_can_be_shown_to_a_model(
    opener: str, closer: str, dialect: str
) -> None:
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {}}}}
    for levels in (250, 450, 900):
        text = '{"a":' + opener * levels + "1" + closer * levels + "}"
        reply = ts.parse('<tool_call>\n{"name": "f", "arguments": ' + text + "}\n</tool_call>", "hermes", [tool])
        assert [call.whole for call in reply.calls] == [False]
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": text}}
        shown = ts.render(
            [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [call]}], [tool], dialect
        )
        assert "arguments-not-json" in [note.rule for note in shown.notes]


MANY_VALUES = {
    "hermes": ('<tool_call>\n{"name": "f", "arguments": {', '"k%d": 1', ", ", "}}\n</tool_call>"),
    "qwen3-coder": (
        "<tool_call>\n<function=f>\n",
        "<parameter=k%d>\n1\n</parameter>",
        "\n",
        "\n</function>\n</tool_call>",
    ),
    "pythonic": ("[f(", "k%d=1", ", ", ")]"),
}


@pytest.mark.parametrize("dialect", rotated([*MANY_VALUES], 3))
def test_a_call_with_more_values_than_a_model_writes_is_not_whole(dialect: str) -> None:
    begin, argument, between, end = MANY_VALUES[dialect]
    for many, whole in ((CALL_VALUES - 10, True), (CALL_VALUES + 10, False)):
        text = begin + between.join(argument % i for i in range(many)) + end
        reply = ts.parse(text, dialect, [{"name": "f", "parameters": {"type": "object"}}])
        assert [(call.whole, len(call.arguments)) for call in reply.calls] == [(whole, many if whole else 0)]
        assert ("reply-bound" in [note.rule for note in reply.notes]) != whole


def test_a_model_reads_that_its_call_has_too_many_values() -> None:
    def f(x: list[int]) -> int:
        """Adds numbers."""
        raise AssertionError(len(x))

    begin, _, _, end = MANY_VALUES["hermes"]
    model = Scripted([begin + '"x": [' + "1, " * CALL_VALUES + "1]" + end, "Done."], chunk=10_000)
    assert ts.run("Add.", tools=[f], model=ts.model(model, dialect="hermes")).text == "Done."
    prompt = str(model.requests[1])
    assert "was not run: its arguments contain more than 100,000 values" in prompt
    assert len(prompt) < 20_000
