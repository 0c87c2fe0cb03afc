"""Applies stop strings to the text for the user, never to the markers around calls.

They are those of the user, and those of a prompt whose turns begin with labels: a server may ignore these, and then its model
goes on with the turn of another role.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..events import CallStart, Event, Finished, Noted, TextDelta, ThoughtDelta
from ..types import Note


class Stops:
    """Ends a reply when its text contains one of `stops`. Text that may be the start of one is held back. `rule` is that of a
    note that is left there."""

    def __init__(self, stops: Sequence[str], rule: str = "") -> None:
        self._stops = [stop for stop in stops if stop]
        self._rule = rule
        self._called = False
        self._buffer = ""
        self.over = False

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """The events before a stop string. If one is found, `Finished` follows at once."""
        out: list[Event] = []
        for event in events:
            if self.over:
                return out
            if not self._stops:
                out.append(event)
            elif isinstance(event, TextDelta):
                self._read(event.text, out)
            elif isinstance(event, ThoughtDelta):
                out.append(event)
            else:  # the text ends here, or is interrupted by a call
                self._called |= isinstance(event, CallStart)
                self._release(out)
                out.append(event)
        return out

    def _read(self, piece: str, out: list[Event]) -> None:
        text = self._buffer + piece
        places = {at: stop for stop in self._stops if (at := text.find(stop)) >= 0}
        end = min(places) if places else len(text) - self._open(text)
        if end:
            out.append(TextDelta(text[:end]))
        self._buffer = "" if places else text[end:]
        if places:
            self.over = True
            out += [Noted(Note(self._rule, places[end].strip()))] if self._rule else []
            out.append(Finished("tool_calls" if self._rule and self._called else "stop"))

    def _open(self, text: str) -> int:
        """The number of characters at the end that may be the start of a stop string."""
        longest = 0
        for stop in self._stops:
            at = text.find(stop[0], max(0, len(text) - len(stop) + 1))
            while at >= 0 and len(text) - at > longest:
                if stop.startswith(text[at:]):
                    longest = len(text) - at
                    break
                at = text.find(stop[0], at + 1)
        return longest

    def _release(self, out: list[Event]) -> None:
        if self._buffer:
            out.append(TextDelta(self._buffer))
            self._buffer = ""
