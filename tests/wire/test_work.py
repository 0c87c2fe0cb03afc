"""What hostile text costs: counted in calls of functions and in events, never in seconds."""

from __future__ import annotations

import pytest
from wire_cases import DIALECTS, TOOLS, stream

import cost
from toolspeak.events import Event
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect

SIZE, PIECE = 2_000, 4
UNITS = ("{", "[", "[{", '{"a"', "[1", '{"a":[', "<tool_call>", "`", "``", "```", "\n> ", "```json\n{", "((", '"{', "\n    ", "<think>", "</think>", "<!--", "<|")  # fmt: skip
SEVERAL = [d for d in DIALECTS if d.name in ("hermes", "tool-json", "llama3-json", "lfm2", "qwen3-coder", "glm47", "harmony", "react", "gemma4", "minimax-m3")]  # fmt: skip
MOST = 40
"""Calls of functions for a character: that of a plain text costs less than one, an opener that opens nothing some two
hundred."""


def work_of(d: Dialect, text: str) -> tuple[int, list[Event]]:
    """How many functions were called, generators woken among them, and the events."""
    events: list[Event] = []
    pieces = [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
    return cost.calls(lambda: events.extend(stream(d, pieces, TOOLS))), events


@pytest.mark.parametrize("d", SEVERAL, ids=lambda d: d.name)
def test_nothing_that_a_model_writes_costs_much_more_than_text(d: Dialect) -> None:
    stream(d, ["Look: " + UNITS[0]], TOOLS)  # what is made once and kept is no cost of these texts
    for unit in UNITS:
        text = "Look: " + unit * (SIZE // len(unit))
        calls, events = work_of(d, text)
        pieces = len(text) // PIECE + 1
        assert calls < MOST * len(text), (unit, calls / len(text))
        assert len(events) < 2 * pieces + 20, (unit, len(events))


@pytest.mark.parametrize("unit", ["Anna, who left, ", "a,b,c,", "[(1, ", "\\n  ", 'a \\"b'], ids=repr)
def test_the_readers_do_not_look_at_most_content_of_a_string(unit: str) -> None:
    """A piece is one call of `feed` and an event, unless it cuts an escape."""
    d = next(d for d in DIALECTS if d.name == "hermes")

    def calls(units: int) -> int:
        return work_of(d, f'<tool_call>{{"name": "f", "arguments": {{"s": "{unit * units}"}}}}</tool_call>')[0]

    calls(20)
    pieces = 2_000 * len(unit) // PIECE
    assert calls(4_000) - calls(2_000) < (2.5 if "\\" not in unit else 8) * pieces


@pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)
def test_a_piece_of_text_is_one_event(d: Dialect) -> None:
    for unit in ("{", "[{", "`"):
        text = "Look: " + unit * 300
        events = stream(d, [text], TOOLS, "")
        assert len(events) < 12, (unit, len(events))
        assert collect(events).text == text


def test_openers_without_end_are_text_at_last() -> None:
    """Past a bound nothing is tried any more: twice the text then costs what text costs."""
    d = next(d for d in DIALECTS if d.name == "hermes")
    unit = "[1"
    short, _ = work_of(d, unit * 3_000)
    long, events = work_of(d, unit * 6_000)
    assert long - short < 20 * len(unit) * 3_000
    assert [note.rule for note in collect(events).notes] == ["too-many-openers"]
    assert collect(events).text == unit * 6_000
