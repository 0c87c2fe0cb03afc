"""Moves the text that comes in the middle of a server's call behind that call.

A call may be in the text, and one call is open at a time. A server sends such a text if it never ends its call, or ends it
late. The texts are held back up to a limit; behind it, they pass as they come.
"""

from __future__ import annotations

from ..events import CallEnd, CallStart, Event, TextDelta

MOST_WAITING = 65_536
"""The most characters of text that wait for the end of a call."""


class TextBehindCalls:
    """Takes the events of a server in order."""

    def __init__(self) -> None:
        self._in_call = False
        self._texts: list[Event] = []
        self._size = 0

    def due(self, event: Event) -> int:
        """The characters of text that `feed` returns for this event."""
        new = len(event.text) if isinstance(event, TextDelta) else 0
        waits = self._in_call and self._size + new <= MOST_WAITING and not isinstance(event, CallEnd)
        return 0 if waits else self._size + new

    def feed(self, event: Event) -> list[Event]:
        """The event, or nothing in place of a text; at the end of a call, also the texts that came in it."""
        if isinstance(event, CallStart):
            self._in_call = True
        elif self._in_call and isinstance(event, TextDelta):
            self._texts.append(event)
            self._size += len(event.text)
            return self._released() if self._size > MOST_WAITING else []
        elif isinstance(event, CallEnd):
            return [event, *self._released()]
        return [event]

    def _released(self) -> list[Event]:
        """The texts that were held back; those behind them are not."""
        texts, self._texts, self._size, self._in_call = self._texts, [], 0, False
        return texts
