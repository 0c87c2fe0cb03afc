"""Thoughts that a server left at the beginning of the text, through every verb and the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

import toolspeak as ts
from toolspeak.events import CallStart, Event, Finished, TextDelta, ThoughtDelta
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.registry import build
from toolspeak.models.calls_in_text import Listener
from toolspeak.models.leading_thought import LeadingThought
from toolspeak.models.strategy import by_its_name

Serve = Callable[..., Any]

QUESTION = "What is the weather in Xiamen?"
HERMES = '<tool_call>{"name": "weather", "arguments": {"city": "Xiamen"}}</tool_call>'
THOUGHT = "<think>\nRain is likely.\n</think>\n\n"


def weather(city: str) -> str:
    """The weather in a city, now."""
    return f"rain in {city}"


def read(text: str, size: int = 3, *, name: str = "", finish: Any = "stop", tools: bool = True) -> list[list[Event]]:
    """What comes of each piece of a text, and of the end."""
    request = ts.Request([{"role": "user", "content": QUESTION}], (ts.tool(weather),) if tools else None)
    listener = Listener(request, by_its_name(name))
    pieces = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
    return [listener.hear(one) for one in (*pieces, Finished(finish))]


def collected(came: list[list[Event]]) -> ts.Reply:
    return ts.collect([event for one in came for event in one])


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("name", ["mine", "Qwen3-8B", "gemma-3-4b-it"])
@pytest.mark.parametrize("size", [1, 5, 200])
def test_a_thought_at_the_beginning_is_no_text(size: int, name: str, tools: bool) -> None:
    reply = collected(read(f"\n{THOUGHT}It rains, <think> is a tag.", size, name=name, tools=tools))
    assert (reply.thought, reply.text) == ("Rain is likely.", "It rains, <think> is a tag.")


def test_it_streams_as_it_comes() -> None:
    came = read("<think>I wonder whether it rains in Xiamen today.</think>It rains.", 4)
    thoughts = [any(isinstance(event, ThoughtDelta) for event in one) for one in came]
    assert sum(thoughts) >= 8
    assert [[type(event) for event in one] for one in came[-2:]] == [[TextDelta], [Finished]]


@pytest.mark.parametrize(
    ("opener", "closer"),
    [
        ("<think>", "</think>"),
        ("[THINK]", "[/THINK]"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|channel>thought", "<channel|>"),
    ],
)
def test_the_thoughts_of_all_dialects_with_marks_are_read(opener: str, closer: str) -> None:
    for size in (1, 100):
        reply = collected(read(f"{opener}Hm. <b>{closer}It rains.", size))
        assert (reply.thought, reply.text) == ("Hm. <b>", "It rains.")


@pytest.mark.parametrize(
    "text",
    [
        f"Yes. {THOUGHT}It rains.",
        "The tag <think> opens a thought, </think> ends it.",
        "<thin>ice</thin>",
        "<think",
        "`<think>` opens a thought.",
        "Thought: it rains.\n\nIt rains.",
        "Here are my reasoning steps: none.",
        "  ",
    ],
)
def test_an_answer_is_never_a_thought(text: str) -> None:
    for size in (1, 7):
        reply = collected(read(text, size))
        assert (reply.thought, reply.text) == ("", text)


@pytest.mark.parametrize("size", [1, 3, 200])
def test_a_closer_that_is_a_line_tells_of_a_thought_in_the_text(size: int) -> None:
    text = "Rain is likely.\n</think>\n\nIt rains."
    reply = collected(read(text, size))
    assert reply.text == text
    assert ["'</think>' stands alone" in note.detail for note in reply.notes] == [True]
    for other in ("Write </think>\nat its end.", f"{THOUGHT}Write\n</think>\nnow.", "</think> ends it.\n"):
        assert not collected(read(other, size)).notes


def test_a_thought_that_is_not_closed() -> None:
    cut = collected(read("<think>I wonder </thi", finish="length"))
    assert (cut.thought, cut.text, cut.finish) == ("I wonder </thi", "", "length")
    called = collected(read(f"<think>I look.\n{HERMES}"))
    assert [call.arguments for call in called.calls] == [{"city": "Xiamen"}]
    assert (called.text, called.finish) == ("", "tool_calls")
    assert not collected(read(f"<think>I look.\n{HERMES}", finish="length")).calls


@pytest.mark.parametrize("size", [1, 4, 500])
def test_the_last_call_of_a_thought_does_not_stand_in_it_too(size: int) -> None:
    called = collected(read(f"<think>I look.\n{HERMES}", size))
    assert (called.thought.strip(), len(called.calls)) == ("I look.", 1)
    for draft in (
        f"I could\n{HERMES}\nbut no.",
        f"```py\nx = 1\n```\n{HERMES} is it.",
        f"I look.\n{HERMES[:-9]}",
        "<a>\n<b",
    ):
        for end in ("", "</think>It rains."):
            reply = collected(read(f"<think>{draft}{end}", size))
            assert (reply.thought, reply.calls) == (draft, ())
    assert collected(read(f"<think>{HERMES}", size, finish="length")).thought == HERMES


def test_white_space_without_end_is_not_held_back() -> None:
    for text in (" " * 2_000, f"<think>Hm.{' ' * 2_000}"):
        came = read(text, 10)
        assert sum(map(len, came[:-1])) > 6
        reply = collected(came)
        assert (reply.thought + reply.text).rstrip() == text.removeprefix("<think>").rstrip()


def test_calls_after_a_thought_are_read_and_those_in_it_are_not() -> None:
    after = collected(read(f"{THOUGHT}{HERMES}"))
    assert (after.thought, after.text, len(after.calls)) == ("Rain is likely.", "", 1)
    for quoted in (f"<think>\n{HERMES}\n</think>\n\nIt rains.", f"<think>I could\n{HERMES}\n</think>\n"):
        reply = collected(read(quoted))
        assert not reply.calls
        assert not reply.notes


DRAFT = HERMES.replace("<tool_call>", "<tool_call>\n").replace("</tool_call>", "\n</tool_call>")
UNCLOSED: dict[str, tuple[str, str, list[str]]] = {
    "only a thought": ("<think>Hm.", "stop", []),
    "a draft, and words behind it": (f"<think>I could call\n{DRAFT}\nbut no.", "stop", ["like-a-call"]),
    "a draft in a sentence": (f"<think>I could call {HERMES} now", "stop", ["like-a-call"]),
    "a call at its end, in a reply that was cut": (f"<think>I call\n{DRAFT}", "length", ["like-a-call"]),
}


@pytest.mark.parametrize(("text", "finish", "rules"), UNCLOSED.values(), ids=UNCLOSED)
@pytest.mark.parametrize("size", [1, 4, 500])
def test_a_reply_that_is_only_an_open_thought_says_so(text: str, finish: str, rules: list[str], size: int) -> None:
    """Its text is empty, and nothing else shows why."""
    reply = collected(read(text, size, finish=finish))
    assert (reply.text, reply.calls) == ("", ())
    assert reply.thought == text.removeprefix("<think>")
    assert [note.rule for note in reply.notes] == ["unclosed-thought", *rules]
    for note in reply.notes[1:]:
        assert "in the dialect hermes" in note.detail
        assert note.detail.endswith("only a call at the very end counts")


def test_a_closed_thought_and_one_with_a_text_behind_it_leave_no_note() -> None:
    for behind in ("</think>", "</think>It rains."):
        assert not collected(read(f"<think>I could call\n{DRAFT}\nbut no.{behind}")).notes


@pytest.mark.parametrize("name", ["mine", "Qwen3-8B"])
@pytest.mark.parametrize(
    ("before", "after", "text", "counts"),
    [
        ("I call it.\n", "", "", 1),
        ("", "\n</think>\n", "\n\n", 1),
        (f"{HERMES}\nNo, better:\n", "", "", 1),
        ("I could write\n", "\nbut no.", "", 0),
        ("I call it.\n", "", "It rains.", 0),
    ],
)
def test_a_call_that_the_server_took_for_a_part_of_the_thought(
    name: str, before: str, after: str, text: str, counts: int
) -> None:
    """The same calls count as in a thought in the text: those that end it, if nothing else is in the reply."""
    listener = Listener(ts.Request([{"role": "user", "content": QUESTION}], (ts.tool(weather),)), by_its_name(name))
    thought = f"{before}{HERMES}{after}"
    pieces = [ThoughtDelta(thought[i : i + 7]) for i in range(0, len(thought), 7)]
    reply = collected([listener.hear(one) for one in (*pieces, *([TextDelta(text)] if text else []), Finished("stop"))])
    assert (reply.thought, reply.text, len(reply.calls)) == (thought, text, counts)
    notes = [note for note in reply.notes if note.rule == ("call-in-text" if counts else "like-a-call")]
    assert [note.detail.endswith("parser of thoughts took it for a part of that") for note in notes] == [True] * (
        not text.strip()
    )


def test_a_thought_whose_end_was_not_kept_is_not_read_for_calls() -> None:
    listener = Listener(
        ts.Request([{"role": "user", "content": QUESTION}], (ts.tool(weather),)), by_its_name("Qwen3-8B")
    )
    pieces = ["Hm. " * 6_000, HERMES, " But no."]
    assert not collected([listener.hear(one) for one in (*map(ThoughtDelta, pieces), Finished("stop"))]).calls


def test_text_after_a_thought_or_call_of_the_server_is_not_looked_at() -> None:
    for first in (ThoughtDelta("Hm."), CallStart("call_1", "weather")):
        splitter = LeadingThought(None)
        assert splitter.feed(first) == [first]
        assert splitter.feed(TextDelta(THOUGHT)) == [TextDelta(THOUGHT)]


def test_every_verb_and_the_gateway_separate_it(serve: Serve) -> None:
    message = {"role": "assistant", "content": f"{THOUGHT}It rains."}

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    async def main() -> None:
        async with serve(answer) as server:
            model = f"{server.url}/v1#mine"
            reply = await ts.arun(QUESTION, tools=[weather], model=model)
            plain = await ts.agenerate(ts.model(model), QUESTION)
            events = [event async for event in ts.astream(QUESTION, tools=[weather], model=model)]
            routed = build(ModelSettings(name="m", upstreams=(model,))).model
            request = ts.Request([{"role": "user", "content": QUESTION}])
            through = ts.collect([event async for event in routed.stream(request)])
            assert plain == "It rains."
            for one in (reply, ts.collect(events), through):
                assert (one.thought, one.text) == ("Rain is likely.", "It rains.")

    asyncio.run(main())


THINKERS = ["DeepSeek-R1-0528", "QwQ-32B", "Qwen3-4B-Thinking-2507", "Olmo-3-7B-Think", "MiniMax-M2"]


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("name", THINKERS)
@pytest.mark.parametrize("size", [1, 5, 200])
def test_the_reply_of_a_model_that_always_thinks_begins_inside_its_thought(size: int, name: str, tools: bool) -> None:
    for opener in ("", "<think>\n", "\n"):
        came = read(f"{opener}Rain is likely, I think.\n</think>\n\nIt rains.", size, name=name, tools=tools)
        reply = collected(came)
        assert (reply.thought.strip(), reply.text.strip()) == ("Rain is likely, I think.", "It rains.")
        assert not reply.notes
    assert collected(read("</think>It rains.", size, name=name, tools=tools)).text == "It rains."


def test_it_streams_before_the_thought_closes() -> None:
    came = read("I wonder whether it rains in Xiamen today.\n</think>\n\nIt rains.", 4, name=THINKERS[0])
    assert sum(any(isinstance(event, ThoughtDelta) for event in one) for one in came) >= 8


@pytest.mark.parametrize("name", THINKERS)
def test_an_answer_whose_thought_the_server_removed_is_text_as_well(name: str) -> None:
    for size in (1, 200):
        reply = collected(read("It rains.", size, name=name))
        assert reply.text == "It rains."
        assert [note.rule for note in reply.notes] == ["thought-removed"]
        cut = collected(read("It may rain, but", size, name=name, finish="length"))
        assert (cut.thought, cut.text) == ("It may rain, but", "")


def test_a_server_that_separates_the_thought_leaves_the_text_alone() -> None:
    request = ts.Request([{"role": "user", "content": QUESTION}], (ts.tool(weather),))
    listener = Listener(request, by_its_name(THINKERS[0]))
    events = (ThoughtDelta("Rain is likely."), TextDelta("It rains."), Finished("stop"))
    reply = ts.collect([made for one in events for made in listener.hear(one)])
    assert (reply.thought, reply.text, reply.notes) == ("Rain is likely.", "It rains.", ())


@pytest.mark.parametrize("closer", ["\n</think>\n\n", "\n", ""])
def test_its_calls_in_the_text_are_calls(closer: str) -> None:
    for size in (1, 200):
        reply = collected(read(f"I look it up.{closer}{HERMES}", size, name="Qwen3-4B-Thinking-2507"))
        assert [(call.name, call.arguments) for call in reply.calls] == [("weather", {"city": "Xiamen"})]
