"""The base of every reader of replies: bytes in, payloads, events out, and exactly one end."""

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


class Reading:
    """Events from the bytes of a reply, cut anywhere: `feed` each piece, then `close`.

    An API says in `_payload` what a payload is, and calls `_finished` where the reply is over. `ids` makes the id of a
    call that came without one, `lines` is for JSON that comes one object a line. `text` is the text so far, `received`
    grows with every payload that tells something. `close` raises StreamCut where the reply broke off, and either of
    them what the server reports as an error.
    """

    missing = ""
    """What the end of a reply would have been, to be told where none came."""

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

    def feed(self, chunk: bytes) -> list[Event]:
        return [] if self._over else self._events(self._payloads.feed(chunk))

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
        if isinstance(thought, str) and thought:
            events.append(ThoughtDelta(thought))
        if isinstance(text, str) and text:
            self._text.append(text)
            events.append(TextDelta(text))
        return self._calls.settle() + events if events else events

    def _unended(self) -> list[Event]:
        """What a stream comes to that stopped before its end."""
        raise StreamCut(f"the server ended the reply in the middle: {self.missing}", text=self.text)

    def _finished(
        self, reason: str, words: Mapping[str, Finish], usage: Usage, notes: Sequence[Event] = ()
    ) -> list[Event]:
        """The end of the reply, for the `reason` that the server gave in one of its own `words`."""
        self._over = True
        finish = words.get(reason, "stop")
        events = [*self._calls.end(cut=finish in ("length", "content_filter")), *notes]
        if reason not in words:
            events.append(Noted(Note("unknown-finish", reason)))
        if finish in ("stop", "tool_calls"):  # servers disagree on the word when there are calls
            finish = "tool_calls" if self._calls.count else "stop"
        return [*events, Finished(finish, usage)]


def count(value: Any) -> int:
    """A number of tokens; 0 where none is told, or one that cannot be."""
    return value if type(value) is int and 0 < value <= MOST_TOKENS else 0
