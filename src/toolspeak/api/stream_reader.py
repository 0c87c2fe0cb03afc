"""The base class of every reply reader: bytes become payloads, payloads become events, and there is exactly one end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import StreamCut
from ..events import Event, Finished, Noted, TextDelta, ThoughtDelta
from ..types import Finish, Note, Usage
from .call_deltas import CallStream
from .json_stream import Payload, Payloads

MOST_TOKENS = 2**53
"""More tokens than any reply has; every JSON reader takes the number as it is."""


class StreamReader:
    """Reads events from the bytes of a reply in pieces: `feed` each piece, then `close`.

    A subclass interprets a payload in `_payload`, and calls `_finished` at the end of the reply. `ids` makes the id of
    a call without one; `lines` is for JSON lines. `text` is the text so far; `received` grows with every payload that
    shows progress. `close` raises StreamCut if the reply broke off. Both raise errors that the server reports.
    """

    missing = ""
    """The end of a reply in this API, for the error if it is missing."""

    def __init__(self, ids: Callable[[], str] | None = None, *, lines: bool = False) -> None:
        self._payloads = Payloads(lines=lines)
        self._calls = CallStream(ids)
        self._text: list[str] = []
        self._over = False

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def received(self) -> int:
        return self._payloads.received

    def due(self, chunk: bytes) -> int:
        """Return about how many characters `feed` of these bytes has to parse: none before the end of a line."""
        ends = max(chunk.find(b"\n"), chunk.find(b"\r")) >= 0
        return self._payloads.unread + len(chunk) if ends else 0

    def feed(self, chunk: bytes) -> list[Event]:
        if self._over:
            return []
        if events := self._events(self._payloads.feed(chunk)):
            self._payloads.unread = 0
        return events

    def close(self) -> list[Event]:
        if self._over:
            return []
        events = self._events(self._payloads.close())
        return events if self._over else events + self._unended()

    def _events(self, payloads: list[Payload]) -> list[Event]:
        events: list[Event] = []
        for payload in payloads:
            if self._over:
                break
            events += self._payload(payload)
        return events

    def _payload(self, payload: Payload) -> list[Event]:
        raise NotImplementedError

    def _words(self, thought: Any, text: Any) -> list[Event]:
        """The events of a thought and a text, after the end of the calls before them."""
        events: list[Event] = []
        if thought and isinstance(thought, str):
            events.append(ThoughtDelta(thought))
        if text and isinstance(text, str):
            self._text.append(text)
            events.append(TextDelta(text))
        return self._calls.settle() + events if events else events

    def _unended(self) -> list[Event]:
        """Return the last events of a stream that stopped before its end, or raise."""
        raise StreamCut(f"the server ended the reply in the middle: {self.missing}", text=self.text)

    def _finished(
        self, reason: str, words: Mapping[str, Finish], usage: Usage, notes: Sequence[Event] = ()
    ) -> list[Event]:
        """Return the end of the reply; `words` maps the server's `reason` to ours."""
        self._over = True
        finish = words.get(reason, "stop")
        events = [*self._calls.end(cut=finish in ("length", "content_filter")), *notes]
        if reason not in words:
            events.append(Noted(Note("unknown-finish", reason)))
        if finish in ("stop", "tool_calls"):  # with calls, servers send different reasons
            finish = "tool_calls" if self._calls.count else "stop"
        return [*events, Finished(finish, usage)]


def count(value: Any) -> int:
    """Return a number of tokens; 0 for a missing or impossible value."""
    return value if type(value) is int and 0 < value <= MOST_TOKENS else 0
