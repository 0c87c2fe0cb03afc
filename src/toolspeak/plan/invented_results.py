"""Leaves out what a model writes in the place of a tool: a result of its own behind its call.

A model that does not stop after its call goes on with `<tool_response>…` or `Observation: …`, then with an answer from
that. The call runs, so the invented result and all that rests on it, further calls too, would stand before the real one.
The reply ends where the tool's turn begins, with the note `invented-result`. Only text directly behind a call counts, so
an answer may quote a result.

Where a decoder reads the mark of another role's turn, it notes that (`wire.reading.other_turns`): the reply ends there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..events import CallEnd, CallStart, Event, Finished, Noted, TextDelta
from ..schema.phrases import beginning
from ..types import Note
from ..wire.reading.doubtful import EARLIER_CALLS, SUPERSEDED, TWO_READINGS
from ..wire.turn_heads import RULES
from .attempted_call import LOST

ABOUT_CALLS = EARLIER_CALLS | {LOST}
"""Notes that count behind an invented result too: it may be a part of a call's argument, of a thought, or an example."""
LONGEST = 256
"""The most characters behind a call that are held back."""
LINE = 80
"""The most characters of the line in which a result opens."""
QUOTED = 60
"""The most characters of an invented result that the note has."""

_TAG = (
    r"[<\[][|｜/]{0,2}\w{0,20}?(?:tool|function)s?[ _▁-]?(?:call[ _▁-]?)?"
    r"(?:response|result|output|return)s?(?:[ _▁:-][^<>\[\]\n]{0,60}?)?[|｜]?[>\]]"
)
_LABEL = (
    r"(?:#{1,4} )?\**(?:observations?|(?:(?:tool|function)[ _])?(?:results?|outputs?)|(?:tool|function)[ _]responses?"
    r"|(?:results?|return) (?:of|from) \S{1,60}?)\**[ \t]?:"
)
_RESULT = re.compile(rf"(?:{_TAG}|{_LABEL}|```tool_output|<results?>)", re.IGNORECASE)
_FIRST = re.compile(r"[<\[#*`otfr]", re.IGNORECASE)


class InventedResults:
    """The events of a reply without the results that the model made up; `feed` takes them in order."""

    def __init__(self) -> None:
        self._buffer = ""
        self._behind = False
        """Whether nothing but white space followed the last call so far."""
        self._invented = ""
        """The beginning of the invented result."""
        self._over = False
        """Whether a decoder read the head of another role's turn."""
        self._called = False
        self._left_out: set[str] = set()
        """The ids of the calls behind the invented result."""

    def feed(self, events: Iterable[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if isinstance(event, Finished):
                out += self._ended(event)
            elif _rule_of(event) in ABOUT_CALLS:
                out.append(event)
            elif any((self._over, self._invented)):
                out += self._behind_result(event)
            elif self._behind > notes_turn(event):
                out += self._behind_call(event)
            else:
                self._over = notes_turn(event)
                self._behind = isinstance(event, CallEnd)
                self._called |= self._behind
                out.append(event)
        return out

    def _behind_result(self, event: Event) -> list[Event]:
        """What counts of an event behind the invented result: a note about the whole reply."""
        if isinstance(event, CallStart):
            self._left_out.add(event.id)
        self._invented = (self._invented + _text_of(event))[:LONGEST]
        if not isinstance(event, Noted) or event.note.at >= 0:
            return []
        # If the better reading of a call is left out too, the other one is not known to be right.
        if event.note.rule == SUPERSEDED and self._left_out - {event.note.detail}:
            return [Noted(Note(TWO_READINGS, "a reading of a call is behind an invented result"))]
        return [event]

    def _behind_call(self, event: Event) -> list[Event]:
        """The event, and the text that is no invented result; [] while that is open."""
        if not isinstance(event, TextDelta):
            self._behind = not isinstance(event, CallStart)
            return [event] if self._behind else [*self._released(), event]
        self._buffer += event.text
        opens = _opens(self._buffer)
        if opens is None:
            return []
        self._behind = False
        if opens:
            self._invented, self._buffer = self._buffer.lstrip(), ""
        return self._released()

    def _released(self) -> list[Event]:
        text, self._buffer = self._buffer, ""
        return [TextDelta(text)] if text else []

    def _ended(self, event: Finished) -> list[Event]:
        if self._over and event.finish in ("stop", "length", "tool_calls"):
            return [Finished("tool_calls" if self._called else "stop", event.usage)]
        if not self._invented:
            return [*self._released(), event]
        quoted = beginning(self._invented, QUOTED)
        detail = f"behind its call, the model wrote a result of its own, {quoted!r}; that and all behind it is left out"
        finish = "tool_calls" if event.finish in ("stop", "length") else event.finish
        return [Noted(Note("invented-result", detail)), Finished(finish, event.usage)]


def notes_turn(event: Event, *rules: str) -> bool:
    """Whether this is the note that the turn of another role begins, by one of these rules."""
    return _rule_of(event) in (rules or RULES)


def _rule_of(event: Event) -> str:
    return event.note.rule if isinstance(event, Noted) else ""


def _text_of(event: Event) -> str:
    return event.text if isinstance(event, TextDelta) else ""


def _opens(text: str) -> bool | None:
    """Whether a text behind a call opens a tool's result; None while more of it may tell."""
    start = text[:LONGEST].lstrip()
    line, over, _ = start.partition("\n")
    if _RESULT.match(line[:LINE]):
        return True
    if not _FIRST.match(start or "<"):
        return False
    return False if any((over, len(line) >= LINE, len(text) >= LONGEST)) else None
