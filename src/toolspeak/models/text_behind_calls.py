"""Moves the text that comes in the middle of a server's call behind that call.

A call may be in the text, and one call is open at a time. A server sends such a text if it never ends its call, or ends it
late.
"""

from __future__ import annotations

from ..events import CallEnd, CallStart, Event, TextDelta


class TextBehindCalls:
    """Takes the events of a server in order."""

    def __init__(self) -> None:
        self._in_call = False
        self._texts: list[Event] = []

    def due(self, event: Event) -> int:
        """The characters of text that `feed` returns for this event."""
        if isinstance(event, CallEnd) and self._texts:
            return sum(len(one.text) for one in self._texts if isinstance(one, TextDelta))
        return len(event.text) if isinstance(event, TextDelta) and not self._in_call else 0

    def feed(self, event: Event) -> list[Event]:
        """The event, or nothing in place of a text; at the end of a call, also the texts that came in it."""
        if isinstance(event, CallStart):
            self._in_call = True
        elif self._in_call and isinstance(event, TextDelta):
            self._texts.append(event)
            return []
        elif isinstance(event, CallEnd):
            texts, self._in_call, self._texts = self._texts, False, []
            return [event, *texts]
        return [event]
