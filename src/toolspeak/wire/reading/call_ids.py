"""Makes the ids of a reply's calls unique: results and approvals refer to a call by its id."""

from __future__ import annotations

from collections.abc import Callable

from ...events import CallEnd, CallStart, Event, Noted
from ...types import Note


def unique_id(written: str, used: set[str], make: Callable[[], str]) -> str:
    """Return the id, or one that `make` creates if it is empty or in `used`. The returned one is added to `used`."""
    if not written or written in used:
        written = make()
        while written in used:
            written += "_"
    used.add(written)
    return written


def doubled(written: str) -> Noted:
    """Return the note of a call that did not keep the id that it came with."""
    return Noted(Note("doubled-id", written))


class CallIds:
    """Gives each call of one reply an id of its own. Models and servers send ids twice, or none."""

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make
        self._used: set[str] = set()
        self._open = ""

    def start(self, event: CallStart) -> list[Event]:
        """Return the events of the start of a call."""
        self._open = unique_id(event.id, self._used, self._make)
        if self._open == event.id:
            return [event]
        start: list[Event] = [CallStart(event.name, self._open)]
        return [*start, doubled(event.id)] if event.id else start

    def end(self, event: CallEnd) -> list[Event]:
        """Return the events of the end of a call, whose id may come only now."""
        late = event.id
        if not late or late == self._open:
            return [event]
        if late in self._used:
            return [doubled(late), CallEnd(event.whole)]
        self._used.add(late)
        return [event]
