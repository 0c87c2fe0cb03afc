"""Marks of the end of a turn at the end of a reply."""

from __future__ import annotations

from itertools import pairwise

import pytest

import toolspeak as ts
from toolspeak.dialects import get, names
from toolspeak.events import CallEnd, CallStart, Event, Finished, TextDelta
from toolspeak.plan.end_marks import LONGEST, EndMarks
from toolspeak.plan.prompted import prompted
from toolspeak.types import Request
from toolspeak.wire.prompt.calls import write_calls
from toolspeak.wire.turn_ends import TURN_ENDS


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def read(*pieces: str) -> str:
    marks = EndMarks()
    return text_of([event for one in (*map(TextDelta, pieces), Finished()) for event in marks.feed((one,))])


@pytest.mark.parametrize("mark", TURN_ENDS)
def test_a_mark_at_the_end_is_dropped_at_every_cut(mark: str) -> None:
    for text in (f"Sunny.{mark}", f"Sunny.{mark}\n", f"Sunny.{mark}{mark}"):
        for first in range(len(text) + 1):
            assert read(text[:first], text[first:]) == "Sunny."
        assert read(*text) == "Sunny."
    assert read(f"Sunny.\n{mark}") == "Sunny.\n"


@pytest.mark.parametrize(
    "text",
    [
        "a turn ends with <|im_end|>",
        "`<|im_end|>`",
        "<|im_end|> ends it.",
        "Sunny.<|im_e",
        "1 < 2 <",
        "<p>Sunny.</p>",
        "<|im_end|>" + "\n" * 2 * LONGEST + "x",
        "a.</s>" + " " * 2 * LONGEST,
        "",
    ],
)
def test_anything_else_stays_text(text: str) -> None:
    assert read(text) == text
    assert read(*text) == text
    for first in range(min(len(text), 40)):
        assert read(text[:first], text[first:]) == text


def test_a_text_before_a_call_stays_and_one_after_it_is_dropped() -> None:
    call: list[Event] = [CallStart("f", "1"), CallEnd()]
    marks = EndMarks()
    events = marks.feed([TextDelta("a</s>"), *call, TextDelta("</s>"), Finished("tool_calls")])
    assert events == [TextDelta("a"), TextDelta("</s>"), *call, Finished("tool_calls")]


def test_the_cost_of_marks_grows_with_the_text() -> None:
    """Not more is held back, nor searched again, than the longest run."""
    marks = EndMarks()
    sizes = [len(text_of(marks.feed([TextDelta("</s>")]))) for _ in range(500)]
    assert all(0 <= size <= LONGEST for size in sizes)
    assert sum(sizes) >= 2_000 - LONGEST
    assert all(abs(one - other) <= LONGEST for one, other in pairwise(sizes))


@pytest.mark.parametrize("name", names())
def test_the_marks_are_no_part_of_a_call(name: str) -> None:
    d = get(name)
    written = str((d.open, d.call, d.close, d.forms, d.thinking, d.header))
    assert not [mark for mark in TURN_ENDS if mark in written]


@pytest.mark.parametrize("name", [name for name in names() if name != "react"])
def test_a_mark_of_another_family_after_an_answer_or_a_call_is_dropped(name: str) -> None:
    request = Request([{"role": "user", "content": "Weather in Rome?"}], (ts.tool(weather),))
    call = write_calls([ts.ToolCall("c", "weather", {"city": "Rome"})], get(name))
    for text, calls in (("Sunny.", 0), (call, 1)):
        for mark in ("</s>", "<|im_end|>", "<end_of_turn>"):
            reads = next(prompted(request, get(name), ())).read
            reply = ts.collect([one for event in (TextDelta(text + mark), Finished(), None) for one in reads(event)])
            assert (len(reply.calls), mark in reply.text) == (calls, False)
            assert calls or reply.text.strip() == text


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}"
