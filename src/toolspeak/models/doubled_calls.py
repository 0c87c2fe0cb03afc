"""Drops the second of two equal calls: a server may read a call and leave it in the text as well.

A call in the text and one of the server's own are the same if their names and arguments are equal; each is the same as at
most one other. So nothing runs twice, and a call that arrives in only one way stays. The second call is held back until
its arguments are complete. Other events pass as they come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..events import ArgumentsDelta, CallEnd, CallStart, Event
from ..schema import nonblocking_json


class DoubledCalls:
    """The events of a reply without the second of two equal calls; `count` is the number of dropped calls."""

    def __init__(self) -> None:
        self.count = 0
        self._whole: list[_Call] = []
        self._open: _Call | None = None

    @property
    def cost(self) -> int:
        """The characters that the end of the open call parses: only arguments that may be equal are compared."""
        call = self._open
        if call is None or not call.waits:
            return 0
        return call.size + sum(other.size for other in self._whole if call.may_equal(other))

    def feed(self, events: Iterable[Event], *, in_text: bool) -> list[Event]:
        """The events that are passed on; `in_text`: the calls among them were read in the text."""
        return [passed for event in events for passed in self._passed(event, in_text)]

    def _passed(self, event: Event, in_text: bool) -> list[Event]:
        if isinstance(event, CallStart):
            self._open = _Call(event.name, in_text)
            self._open.waits = any(map(self._open.may_equal, self._whole))
        call = self._open
        if call is None:
            return [event]
        call.events.append(event)
        if isinstance(event, ArgumentsDelta):
            call.size += len(event.json)
        if isinstance(event, CallEnd):
            self._open = None
            return self._ended(call, event)
        return [] if call.waits else [event]

    def _ended(self, call: _Call, end: CallEnd) -> list[Event]:
        events: list[Event] = call.events if call.waits else [end]
        if not end.whole:
            return events
        twin = next(
            (other for other in self._whole if call.may_equal(other) and call.arguments == other.arguments), None
        )
        if twin is None:
            self._whole.append(call)
            return events
        self._whole.remove(twin)
        self.count += 1
        return [event for event in call.events if not isinstance(event, CallStart | ArgumentsDelta | CallEnd)]


@dataclass(slots=True, eq=False)
class _Call:
    """A call, with the characters of its arguments so far; it `waits` for its end if it may be the second of two equal
    ones."""

    name: str
    in_text: bool
    waits: bool = False
    size: int = 0
    events: list[Event] = field(default_factory=list[Event])
    _parsed: list[object] = field(default_factory=list[object])

    def may_equal(self, other: _Call) -> bool:
        return self.in_text != other.in_text and self.name == other.name

    @property
    def arguments(self) -> object:
        """Its arguments, parsed when they are first compared; their text if that is not JSON."""
        if not self._parsed:
            text = "".join(event.json for event in self.events if isinstance(event, ArgumentsDelta))
            self._parsed.append(nonblocking_json.loads_or(text, text) if text else {})
        return self._parsed[0]
