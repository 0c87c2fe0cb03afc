"""A text model and a dialect: together, a model that calls tools."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

import toolspeak as ts
from replies import answered
from toolspeak.events import CallEnd, CallStart, Event, Finished, TextDelta, ThoughtDelta
from toolspeak.models.base import Model
from toolspeak.models.speaker import Speaker
from toolspeak.models.tool_calling import calling
from toolspeak.types import Request, Usage


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


TOOLS = tuple(ts.Toolbox(add))
ASK = Request([{"role": "user", "content": "1 + 2?"}], tools=TOOLS)
CALL = '{"tool": "add", "tool_input": {"a": 1, "b": 2}, "message": null}'
HERMES = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'


def events(model: Model, request: Request = ASK) -> list[Event]:
    async def main() -> list[Event]:
        return [event async for event in model.stream(request)]

    return asyncio.run(main())


def test_it_is_a_model_that_takes_tools() -> None:
    model = Speaker(ts.Scripted(["x"], capabilities=["schema"]))
    assert isinstance(model, Model)
    assert model.capabilities == {"tools", "required", "schema"}
    assert calling(model) is model
    assert isinstance(calling(ts.Scripted(["x"])), Speaker)


@pytest.mark.parametrize(("dialect", "text"), [("tool-json", CALL), ("hermes", HERMES)])
@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_a_call_in_its_dialect(dialect: str, text: str, chunk: int) -> None:
    model = Speaker(ts.Scripted([text], chunk=chunk), dialect)
    reply = ts.collect(events(model))
    assert [(call.name, call.arguments) for call in reply.calls] == [("add", {"a": 1, "b": 2})]
    assert reply.finish == "tool_calls"
    assert reply.calls[0].id


def test_ids_are_unique() -> None:
    model = Speaker(ts.Scripted([CALL], repeat=True))
    ids = [event.id for _ in range(50) for event in events(model) if isinstance(event, CallStart)]
    assert len(set(ids)) == 50


def test_what_the_text_model_says_besides_goes_through() -> None:
    said = [ThoughtDelta("hm"), TextDelta("Hi"), Finished("length", Usage(5, 1))]
    told = events(Speaker(ts.Scripted([said])))
    assert ThoughtDelta("hm") in told
    assert told[-1] == Finished("length", Usage(5, 1))


def test_a_call_that_is_cut_is_not_whole() -> None:
    told = events(Speaker(ts.Scripted([[TextDelta(HERMES[:50]), Finished("length")]]), "hermes"))
    assert CallEnd(False) in told
    assert told[-1].finish == "length"  # type: ignore[union-attr]


def test_earlier_calls_and_results_are_told_in_the_dialect() -> None:
    scripted = ts.Scripted([HERMES, "It is 3."])
    reply = ts.run("1 + 2?", tools=[add], model=Speaker(scripted, "hermes"))
    assert (reply.text, answered(reply.messages)) == ("It is 3.", True)
    told = scripted.requests[1]
    assert told.tools is None
    assert HERMES in str(told.messages[-2].get("content"))
    assert "<tool_response>" in str(told.messages[-1].get("content"))
    assert all("tool_calls" not in message and message["role"] != "tool" for message in told.messages)


def test_a_demand_is_told() -> None:
    scripted = ts.Scripted([CALL], repeat=True)
    ts.decide("1 + 2?", tools=[add], model=scripted, choice="required")
    assert "have to call" in str(scripted.requests[0].messages)


def test_a_model_with_its_own_template_continues_a_prompt() -> None:
    template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{{ bos_token }}<think>"
    scripted = ts.Scripted(["so</think>\n" + HERMES], capabilities=["prompt"])
    model = Speaker(scripted, "hermes", template=template, variables={"bos_token": "<s>"})
    reply = ts.collect(events(model))
    prompt = str(scripted.requests[0].prompt)
    assert prompt.endswith("<s><think>")
    assert "[user]1 + 2?" in prompt
    assert '"name": "add"' in prompt
    assert len(reply.calls) == 1


class Weighing(ts.Scripted):
    """A text model that finds one tool likely, and copies numbers."""

    def __init__(self, likely: str, *replies: str) -> None:
        super().__init__(replies, capabilities=["score", "prompt", "schema"])
        self.likely = likely

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        return [
            -1.0 if f"def {self.likely}" in prompt.rpartition("\ndef ")[1] + prompt.rpartition("\ndef ")[2] else -9.0
            for _ in continuations
        ]


def test_a_model_that_is_scored_decides_by_likelihood() -> None:
    reply = ts.decide("What is 1 plus 2?", tools=[add], model=Speaker(Weighing("add"), way="scored"))
    assert [call.name for call in reply.calls] == ["add"]
    assert sorted(reply.calls[0].arguments.values()) == [1, 2]
    words = ts.decide("Good morning!", tools=[add], model=Speaker(Weighing("reply", "Good morning."), way="scored"))
    assert (words.text, words.calls) == ("Good morning.", ())


def test_a_decision_by_likelihood_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Request] = []
    plan = Speaker.plan
    monkeypatch.setattr(Speaker, "plan", lambda self, request: made.append(request) or plan(self, request))
    reply = ts.collect(events(Speaker(Weighing("add"), way="scored"), ASK))
    assert [call.name for call in reply.calls] == ["add"]
    assert len(made) == 1


def test_a_result_that_it_cannot_say_is_stated_plainly() -> None:
    reply = ts.run(
        "What is 1 plus 2?", tools=[add], model=Speaker(Weighing("add", "It is 4.", "It is 5."), way="scored")
    )
    assert reply.text == "The answer is 3."
    assert "stated-plainly" in [note.rule for note in reply.notes]


def test_what_is_missing_is_never_invented() -> None:
    with pytest.raises(ts.GenerationError) as caught:
        ts.call("Add something.", tools=[add], model=Speaker(Weighing("add", *["x"] * 9), way="scored"))
    assert caught.value.attempts


def test_scores_are_passed_on() -> None:
    assert asyncio.run(Speaker(Weighing("add")).score("x", ["a", "b"])) == [-9.0, -9.0]
    with pytest.raises(ts.ModelError, match="not report likelihoods"):
        asyncio.run(Speaker(ts.Scripted(["x"])).score("x", ["a"]))


def test_leaving_early_closes_the_text_model() -> None:
    closed: list[bool] = []

    class Watched(ts.Scripted):
        async def stream(self, request: Request) -> Any:
            try:
                async for event in super().stream(request):
                    yield event
            finally:
                closed.append(True)

    for _ in ts.stream("go", tools=[add], model=Watched(["bla " * 1000])):
        break
    assert closed == [True]


def test_a_dialect_that_was_chosen_goes_before_likelihoods() -> None:
    tool = ts.tool(lambda a: a, name="echo", parameters={"properties": {"a": {"type": "integer"}}})
    by_likelihood = ts.explain("1?", tools=[tool], model=ts.model("local"))
    by_prompt = ts.explain("1?", tools=[tool], model=ts.model("local", dialect="hermes"))
    assert by_likelihood.continuations
    assert not by_prompt.continuations
    assert "<tool_call>" in str(by_prompt.messages[0]["content"])


class Even(ts.Scripted):
    """A text model that finds every text equally likely, and so replies in words."""

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        return [0.0] * len(continuations)


def test_a_text_that_must_fit_is_asked_for_even_after_results() -> None:
    model = Speaker(Even(['{"sum": 3}'], capabilities=["score", "schema"]), way="scored")
    called = {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    messages: Any = [
        *ASK.messages,
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "a", "content": "3"},
    ]
    reply = ts.collect(events(model, Request(messages, tools=TOOLS, schema={"type": "object"})))
    assert reply.text == '{"sum": 3}'
    assert model.model.requests[0].schema == {"type": "object"}  # type: ignore[attr-defined]


def test_what_a_decision_by_likelihood_makes_no_use_of_is_told() -> None:
    model = Speaker(Even(['1", "2"'] * 3, repeat=True, capabilities=["score"]), way="scored")
    request = Request(ASK.messages, tools=TOOLS, choice="required", temperature=0.5, sampling={"top_p": 0.1})
    notes = ts.collect(events(model, request)).notes
    assert [note.detail for note in notes if note.rule == "not-sampled"] == [
        "decided by likelihood, without temperature, top_p"
    ]


def test_reasoning_is_asked_for_in_the_prompt_that_can_say_so_or_of_the_server() -> None:
    asked = Request(ASK.messages, tools=TOOLS, sampling={"reasoning_effort": "low"})
    for dialect, told in (("empower", True), ("hermes", False)):
        text = ts.Scripted(["<c>Hi"] if told else ["Hi"])
        events(Speaker(text, dialect), asked)
        (got,) = text.requests
        assert ("include your thinking" in str(got.messages)) is told
        assert (got.sampling == {}) is told
        assert got.thinking is None


@pytest.mark.parametrize("wrong", [{"logprobs": 1}, {"image": True}])
def test_what_a_prompt_cannot_hold_is_refused(wrong: dict[str, Any]) -> None:
    parts: Any = [{"type": "image_url", "image_url": {"url": "x"}}]
    messages: Any = [{"role": "user", "content": parts}] if "image" in wrong else ASK.messages
    model = Speaker(Even(["x"], capabilities=["score"]), way="scored")
    with pytest.raises(ts.UsageError):
        events(model, Request(messages, tools=TOOLS, logprobs=wrong.get("logprobs")))


@pytest.mark.parametrize("chunk", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    ("written", "text"),
    [
        (HERMES, ""),
        (f"Let me add.\n{HERMES}\nDone.", "Let me add.\n\nDone."),
        ("[TOOL_CALLS]" + CALL, ""),
        (
            "In HTML <b> is bold, and `<tool_call>` marks a call.",
            "In HTML <b> is bold, and `<tool_call>` marks a call.",
        ),
        ("It ends in <tool_call>", "It ends in <tool_call>"),
        (f"It ends with </tool_call> {CALL}", "It ends with </tool_call> "),
        (f"{CALL}\n</tool_call>\n<tool_call>\n{CALL}</tool_call>", ""),
        (f"{CALL} </tool_call>\nDone.", "\nDone."),
        (f"{CALL}</tool_call> ends a call.", "</tool_call> ends a call."),
        (f"<tool_call>{CALL}</tool_call> Done.", " Done."),
    ],
)
def test_markers_around_a_call_that_was_read_do_not_stay_in_the_text(chunk: int, written: str, text: str) -> None:
    reply = ts.collect(events(Speaker(ts.Scripted([written], chunk=chunk), "tool-json")))
    assert reply.text == text
    assert len(reply.calls) == written.count('"add"')
