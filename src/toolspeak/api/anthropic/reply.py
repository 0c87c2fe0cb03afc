"""A message's bytes as a server sends them, into events: a stream of events, or one whole body."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ...errors import ServerFailed, StreamCut
from ...events import Event, Finished, Noted, TextDelta, ThoughtDelta
from ...types import Finish, Note, Usage
from ..call_deltas import CallStream
from ..failure import excerpt
from ..payloads import Payload, Payloads, record, records

FINISH: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
STOPPED = "stop-sequence"
"""The rule of the note that tells at which stop string a reply ended."""


class ReplyReader:
    """Events from the bytes of a reply, cut anywhere: `feed` each piece, then `close`.

    `ids` makes the id of a call that came without one. `text` is the text so far, `received` grows with every
    payload but `ping`. `close` raises StreamCut where neither a `stop_reason` nor `message_stop` came. Both raise
    what the server reports as an error.
    """

    def __init__(self, ids: Callable[[], str] | None = None) -> None:
        self._payloads = Payloads()
        self._calls = CallStream(ids)
        self._text: list[str] = []
        self._open: dict[int, bool] = {}
        self._finish: str | None = None
        self._stop: str | None = None
        self._spent: Payload = {}
        self._pings = 0
        self._over = False

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def received(self) -> int:
        return self._payloads.received - self._pings

    def feed(self, chunk: bytes) -> list[Event]:
        return [] if self._over else self._events(self._payloads.feed(chunk))

    def close(self) -> list[Event]:
        if self._over:
            return []
        events = self._events(self._payloads.close())
        if self._over:
            return events
        if self._finish is None:
            raise StreamCut("the server ended the reply in the middle: no stop_reason", text=self.text)
        return [*events, Noted(Note("no-done", "the stream ended without message_stop")), *self._end()]

    def _events(self, payloads: list[Payload]) -> list[Event]:
        events: list[Event] = []
        for payload in payloads:
            if self._over:
                break
            events += self._event(payload)
        return events

    def _event(self, payload: Payload) -> list[Event]:
        match payload.get("type"):
            case "message_start":
                self._spend(record(payload.get("message")).get("usage"))
            case "content_block_start":
                return self._begin(payload.get("index"), record(payload.get("content_block")))
            case "content_block_delta":
                return self._delta(payload.get("index"), record(payload.get("delta")))
            case "content_block_stop":
                return self._stopped(payload.get("index"))
            case "message_delta":
                self._ending(record(payload.get("delta")), payload.get("usage"))
            case "message_stop":
                return self._end()
            case "message":
                return self._whole(payload)
            case "ping":
                self._pings += 1
            case _:
                if self._payloads.whole:
                    said = excerpt(json.dumps(payload, ensure_ascii=False))
                    raise ServerFailed(f"expected a message, got: {said}")
        return []

    def _whole(self, message: Payload) -> list[Event]:
        events: list[Event] = []
        for i, block in enumerate(records(message.get("content"))):
            events += [*self._begin(i, block), *self._stopped(i)]
        self._ending(message, message.get("usage"))
        return events + self._end()

    def _begin(self, index: Any, block: Payload) -> list[Event]:
        """A block begins; it may hold all that it will, or nothing yet."""
        if block.get("type") == "tool_use":
            taken = record(block.get("input"))
            self._open[index] = bool(taken)
            text = json.dumps(taken, ensure_ascii=False) if taken else ""
            return self._calls.add(index=index, key=block.get("id"), name=block.get("name"), arguments=text)
        return self._words(block)

    def _delta(self, index: Any, delta: Payload) -> list[Event]:
        if delta.get("type") != "input_json_delta":
            return self._words(delta)
        piece = delta.get("partial_json")
        if index not in self._open or not isinstance(piece, str):
            return []
        self._open[index] = self._open[index] or bool(piece)
        return self._calls.add(index=index, arguments=piece)

    def _stopped(self, index: Any) -> list[Event]:
        """A block ends: one of a call that was given nothing is a call without arguments."""
        if self._open.pop(index, True):
            return self._calls.settle()
        return [*self._calls.add(index=index, arguments="{}"), *self._calls.settle()]

    def _words(self, block: Payload) -> list[Event]:
        events: list[Event] = []
        if isinstance(thought := block.get("thinking"), str) and thought:
            events.append(ThoughtDelta(thought))
        if isinstance(text := block.get("text"), str) and text:
            self._text.append(text)
            events.append(TextDelta(text))
        return self._calls.settle() + events if events else events

    def _ending(self, delta: Payload, usage: Any) -> None:
        if isinstance(reason := delta.get("stop_reason"), str) and reason:
            self._finish = reason
        if isinstance(stop := delta.get("stop_sequence"), str):
            self._stop = stop
        self._spend(usage)

    def _spend(self, usage: Any) -> None:
        """Counts are totals: the last one told holds."""
        self._spent |= {name: value for name, value in record(usage).items() if value is not None}

    def _end(self) -> list[Event]:
        self._over = True
        reason = self._finish or "end_turn"
        finish = FINISH.get(reason, "stop")
        events = self._calls.end(cut=finish in ("length", "content_filter"))
        if reason == "stop_sequence" and self._stop is not None:
            events.append(Noted(Note(STOPPED, self._stop)))
        if reason not in FINISH:
            events.append(Noted(Note("unknown-finish", reason)))
        if finish in ("stop", "tool_calls"):
            finish = "tool_calls" if self._calls.count else "stop"
        return [*events, Finished(finish, read_usage(self._spent))]


def read_usage(usage: Payload) -> Usage:
    """The tokens spent, from a `usage`, whose input does not count what a cache held; 0 for what it does not tell."""
    cached = _count(usage.get("cache_read_input_tokens"))
    fresh = _count(usage.get("input_tokens")) + _count(usage.get("cache_creation_input_tokens"))
    thought = _count(record(usage.get("output_tokens_details")).get("thinking_tokens"))
    return Usage(fresh + cached, _count(usage.get("output_tokens")), cached, thought)


def read_count(payload: Payload) -> int | None:
    """The tokens that a request has, from the answer of `count_tokens`; None where it tells none."""
    count = payload.get("input_tokens")
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
