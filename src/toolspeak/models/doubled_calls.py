"""Leaves out the second of two events that tell one call: a server may read a call and leave it in the text as well.

A call in the text and one of the server's own are the same where their names and arguments are equal; each is the same as
one other at most. So nothing is run twice, and a call that only one of them tells stays. The second is held back until its
arguments are there; others pass as they come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..events import ArgumentsDelta, CallEnd, CallStart, Event
from ..schema import json_pieces


class DoubledCalls:
    """A reply's events without those of calls that were told before in the other way; `count` is of how many."""

    def __init__(self) -> None:
        self.count = 0
        self._told: list[tuple[bool, str, object]] = []
        """Of each whole call: whether it was in the text, its name, its arguments."""
        self._call: _Call | None = None

    def feed(self, events: Iterable[Event], *, in_text: bool) -> list[Event]:
        """What is passed on of these events; `in_text`: the calls among them were read in the text."""
        return [passed for event in events for passed in self._passed(event, in_text)]

    def _passed(self, event: Event, in_text: bool) -> list[Event]:
        if isinstance(event, CallStart):
            others = {name for was_in_text, name, _ in self._told if was_in_text != in_text}
            self._call = _Call(event.name, in_text, waits=event.name in others)
        call = self._call
        if call is None:
            return [event]
        call.events.append(event)
        if isinstance(event, CallEnd):
            self._call = None
            return self._ended(call, event)
        return [] if call.waits else [event]

    def _ended(self, call: _Call, end: CallEnd) -> list[Event]:
        events: list[Event] = call.events if call.waits else [end]
        if not end.whole:
            return events
        twin = (not call.in_text, call.name, call.arguments)
        if twin not in self._told:
            self._told.append((call.in_text, call.name, call.arguments))
            return events
        self._told.remove(twin)
        self.count += 1
        return [event for event in call.events if not isinstance(event, CallStart | ArgumentsDelta | CallEnd)]


@dataclass(slots=True)
class _Call:
    """A call whose end has not come; it `waits` where it may be one that was told before."""

    name: str
    in_text: bool
    waits: bool
    events: list[Event] = field(default_factory=list[Event])

    @property
    def arguments(self) -> object:
        """Its arguments; their text where that is no JSON."""
        text = "".join(event.json for event in self.events if isinstance(event, ArgumentsDelta))
        try:
            return json_pieces.loads(text) if text else {}
        except (ValueError, RecursionError):
            return text
