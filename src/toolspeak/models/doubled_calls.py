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
        self._whole: list[tuple[bool, str, object]] = []
        """Of each whole call: whether it was in the text, its name, its arguments."""
        self._call: _UnfinishedCall | None = None

    def feed(self, events: Iterable[Event], *, in_text: bool) -> list[Event]:
        """The events that are passed on; `in_text`: the calls among them were read in the text."""
        return [passed for event in events for passed in self._passed(event, in_text)]

    def _passed(self, event: Event, in_text: bool) -> list[Event]:
        if isinstance(event, CallStart):
            others = {name for was_in_text, name, _ in self._whole if was_in_text != in_text}
            self._call = _UnfinishedCall(event.name, in_text, waits=event.name in others)
        call = self._call
        if call is None:
            return [event]
        call.events.append(event)
        if isinstance(event, CallEnd):
            self._call = None
            return self._ended(call, event)
        return [] if call.waits else [event]

    def _ended(self, call: _UnfinishedCall, end: CallEnd) -> list[Event]:
        events: list[Event] = call.events if call.waits else [end]
        if not end.whole:
            return events
        twin = (not call.in_text, call.name, call.arguments)
        if twin not in self._whole:
            self._whole.append((call.in_text, call.name, call.arguments))
            return events
        self._whole.remove(twin)
        self.count += 1
        return [event for event in call.events if not isinstance(event, CallStart | ArgumentsDelta | CallEnd)]


@dataclass(slots=True)
class _UnfinishedCall:
    """A call whose end has not come; it `waits` if it may be the second of two equal calls."""

    name: str
    in_text: bool
    waits: bool
    events: list[Event] = field(default_factory=list[Event])

    @property
    def arguments(self) -> object:
        """Its arguments; their text if that is not JSON."""
        text = "".join(event.json for event in self.events if isinstance(event, ArgumentsDelta))
        try:
            return nonblocking_json.loads(text) if text else {}
        except (ValueError, RecursionError):
            return text
