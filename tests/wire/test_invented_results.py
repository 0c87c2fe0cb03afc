"""What a model writes in the place of a tool: it is left out, with a note, and the real result is what counts."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from hard_cases import TOOLS as CASE_TOOLS, find
from spoken import TALKING, wire
from wire_cases import called, cuts, merged, read_at_cuts

import toolspeak as ts
from listening import listening
from replies import frames
from toolspeak.events import CallEnd, CallResult, CallStart, Event, Finished, Noted, TextDelta
from toolspeak.plan.invented_results import InventedResults
from toolspeak.wire.decode import Decoder
from toolspeak.wire.dialect import Dialect, Slot
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.reading.lexicon import program
from toolspeak.wire.reading.other_turns import result_marks

RESULTS = (
    "<tool_response>\nMADE UP 42\n</tool_response>\nIt is MADE UP.",
    "Observation: MADE UP 42\nThought: done\nFinal Answer: MADE UP",
    "**Observation:** MADE UP",
    "Result: MADE UP 42",
    "Tool result: MADE UP",
    "Result of weather: MADE UP",
    "Output:\nMADE UP",
    "[TOOL_RESULTS] MADE UP [/TOOL_RESULTS]",
    "<|tool_response|>MADE UP",
    "```tool_output\nMADE UP\n```",
)
WORDS = (
    "I am looking it up.",
    "The result is on its way.",
    "Results will follow: wait.",
    "<b>tool_response</b> comes next.",
    "# Toolbox\nIt has tools.",
    "Of all tools, this one fits.",
    "Wait.\nResult: none yet.",
)
CALL = [CallStart("weather", "c0"), CallEnd(True)]


def left(text: str, size: int) -> tuple[str, list[Event]]:
    """The text behind a call that is left, and all events."""
    reader = InventedResults()
    pieces = [TextDelta(text[i : i + size]) for i in range(0, len(text), size)]
    out = [event for one in [*CALL, *pieces, Finished()] for event in reader.feed([one])]
    return "".join(event.text for event in out if isinstance(event, TextDelta)), out


@pytest.mark.parametrize("space", ["", "\n", "\n\n  "])
@pytest.mark.parametrize("text", RESULTS)
def test_a_result_behind_a_call_is_left_out(text: str, space: str) -> None:
    for size in (1, 2, 3, 7, 1000):
        rest, events = left(space + text, size)
        (note,) = [event.note for event in events if isinstance(event, Noted)]
        assert (rest, note.rule, events[-1]) == ("", "invented-result", Finished("tool_calls"))
        assert "MADE UP" in note.detail


@pytest.mark.parametrize("text", WORDS)
def test_other_words_behind_a_call_stay(text: str) -> None:
    for size in (1, 2, 3, 7, 1000):
        rest, events = left("\n" + text, size)
        assert (rest, events[-1]) == ("\n" + text, Finished())
        assert not any(isinstance(event, Noted) for event in events)


def test_no_more_than_a_line_is_held_back() -> None:
    reader = InventedResults()
    reader.feed(CALL)
    assert reader.feed([TextDelta("Of " + "x" * 80)])
    reader.feed(CALL)
    assert reader.feed([TextDelta(" " * 300)])


def test_a_result_is_left_out_only_behind_a_call() -> None:
    reader = InventedResults()
    events: list[Event] = [TextDelta(RESULTS[0]), *CALL, TextDelta("Well.\n" + RESULTS[1]), Finished()]
    assert reader.feed(events) == events


def test_notes_about_what_is_left_out_are_left_out() -> None:
    reader = InventedResults()
    about = [Noted(ts.Note("fence", at=at)) for at in (90, -1)]
    out = reader.feed([*CALL, TextDelta("Result: 42"), *about, Finished()])
    assert [(event.note.rule, event.note.at) for event in out if isinstance(event, Noted)] == [
        ("fence", -1),
        ("invented-result", -1),
    ]


def test_a_call_that_rests_on_an_invented_result_is_left_out() -> None:
    reader = InventedResults()
    out = reader.feed([*CALL, TextDelta("Result: 42"), CallStart("pay", "c1"), CallEnd(True), Finished()])
    assert [event.name for event in out if isinstance(event, CallStart)] == ["weather"]


def opening(d: Dialect) -> str:
    """What a dialect writes before the result of the tool."""
    parts = [d.speech.results.open, *d.speech.results.each]
    before = parts[: parts.index(Slot.RESULT)]
    return "".join(part if isinstance(part, str) else "weather" for part in before)


@pytest.mark.parametrize(
    "d", [d for d in TALKING if opening(d).strip() not in ("", "<response>")], ids=lambda d: d.name
)
def test_the_results_of_every_dialect(d: Dialect) -> None:
    """As each writes them behind its own call, the same at every cut. (`<response>` may be around an answer.)"""
    call = wire(d, find("two words")).strip()
    text = f"{call}\n{opening(d)}MADE UP\nIt is MADE UP."
    readings: list[list[Event]] = []
    for chunks in [[text], *list(cuts(text, random.Random(text)))[::5]]:
        decoder, reader = Decoder(d, CASE_TOOLS), InventedResults()
        events = [event for chunk in chunks for event in decoder.feed(chunk)]
        readings.append(merged(reader.feed([*events, *decoder.close()])))
    reply = collect(readings[0])
    assert "MADE UP" not in reply.text
    assert reply.calls
    assert all(events == readings[0] for events in readings)


@pytest.mark.parametrize("d", [d for d in TALKING if d.name != "llama3-builtin"], ids=lambda d: d.name)
def test_the_marks_of_results_of_all_families_behind_a_call(d: Dialect) -> None:
    """Directly behind it: the call counts, also if nothing closes it. (In llama3-builtin, all that is behind a mark is code.)"""
    call = wire(d, find("two words")).strip()
    for mark in result_marks(program(d, True)):
        for space in ("", "\n"):
            text = f"{call}{space}{mark}\nMADE UP\nIt is MADE UP."
            reply = read_at_cuts(d, text, CASE_TOOLS, every=5)
            assert (called(reply), "invented-result" in [note.rule for note in reply.notes]) == (["find"], True), text
            assert called(read_at_cuts(d, f"{call} but no {mark}\nMADE UP", CASE_TOOLS, every=9)) == [], text


def weather(city: str) -> str:
    """The weather in a city, now."""
    return f"rain in {city}"


CALL_TEXT = '{"name": "weather", "arguments": {"city": "Rome"}}'
BLOCK = f"<tool_call>\n{CALL_TEXT}\n</tool_call>"
REPLIES = {
    "prompted, hermes": ("hermes", f"I look.\n{BLOCK}\n{RESULTS[0]}"),
    "prompted, react": ("react", f'Thought: why\nAction: weather\nAction Input: {{"city": "Rome"}}\n{RESULTS[1]}'),
    "prompted, plain": ("generic-json", f"{CALL_TEXT}\n{RESULTS[5]}"),
    "not read by the server, known": (None, f"{BLOCK}\n{RESULTS[0]}"),
    "not read by the server, react": (
        None,
        f'Thought: why\nAction: weather\nAction Input: {{"city": "Rome"}}\n{RESULTS[1]}',
    ),
    "not read by the server, plain": (None, f"{CALL_TEXT}\n{RESULTS[3]}"),
}
"""The dialect in which a model is prompted, and its reply."""


def answering(text: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """A server whose model writes `text`, and an answer after a result; it ignores `tools`."""

    async def chat(request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/chat/completions"):
            return web.json_response({"error": "no such page"}, status=404)
        messages = (await request.json())["messages"]
        over = "rain in Rome" in json.dumps(messages[1:])
        pieces = ["It rains."] if over else [text[i : i + 3] for i in range(0, len(text), 3)]
        rows = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
        rows.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        return web.Response(body=frames(*rows, "[DONE]"), content_type="text/event-stream")

    return chat


@pytest.mark.parametrize("name", ["qwen2.5-7b", "mine"])
@pytest.mark.parametrize(("dialect", "text"), REPLIES.values(), ids=REPLIES)
def test_a_stream_has_the_real_result_alone(dialect: str | None, text: str, name: str) -> None:
    async def main() -> None:
        async with listening(answering(text)) as url:
            model = ts.model(f"{url}/v1#{name}", dialect=dialect)
            events = [event async for event in ts.astream("Weather?", tools=[weather], model=model)]
            shown = "".join(event.text for event in events if isinstance(event, TextDelta))
            assert "MADE UP" not in shown
            assert shown.endswith("It rains.")
            assert [event.result.text for event in events if isinstance(event, CallResult)] == ["rain in Rome"]
            rules = [event.note.rule for event in events if isinstance(event, Noted)]
            assert "invented-result" in rules
            assert ("call-in-text" in rules) == (dialect is None)

    asyncio.run(main())


def test_an_example_between_words_stays_text() -> None:
    """A model of no known dialect shows how a call and its result look: the call does not run."""

    async def main() -> None:
        text = f"So:\n{BLOCK}\n{RESULTS[0]}"
        async with listening(answering(text)) as url:
            reply = await ts.arun("Weather?", tools=[weather], model=f"{url}/v1#mine")
            assert (reply.text, [step.reply.calls for step in reply.steps]) == (text, [()])

    asyncio.run(main())
