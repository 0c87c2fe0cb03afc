"""Reads a server's reply into events: a stream of server-sent events, or one whole body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import ServerFailed
from ...events import Event, Noted
from ...types import Finish, Note, Usage
from ..json_stream import Payload, record, records
from ..stream_reader import StreamReader, count
from ..upstream_errors import excerpt_of

FINISH: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
STOPPED = "stop-sequence"
"""The rule of the note that names the stop string at which a reply ended."""


class ReplyReader(StreamReader):
    """Reads events from the bytes of a reply. It ends with `message_stop`, or with the stream's end after a
    `stop_reason`. A `ping` does not count as progress."""

    missing = "no stop_reason"

    def __init__(self, ids: Callable[[], str] | None = None) -> None:
        super().__init__(ids)
        self._open: dict[int, bool] = {}
        self._finish = ""
        self._stop: str | None = None
        self._spent: Payload = {}
        self._pings = 0

    @property
    def received(self) -> int:
        return super().received - self._pings

    def _payload(self, payload: Payload) -> list[Event]:
        match payload.get("type"):
            case "message_start":
                self._spend(record(payload.get("message")).get("usage"))
            case "content_block_start":
                return self._begin(_index(payload), record(payload.get("content_block")))
            case "content_block_delta":
                return self._delta(_index(payload), record(payload.get("delta")))
            case "content_block_stop":
                return self._stopped(_index(payload))
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
                    raise ServerFailed(f"expected a message, got: {excerpt_of(payload)}")
        return []

    def _whole(self, message: Payload) -> list[Event]:
        events: list[Event] = []
        for i, block in enumerate(records(message.get("content"))):
            events += [*self._begin(i, block), *self._stopped(i)]
        self._ending(message, message.get("usage"))
        return events + self._end()

    def _begin(self, index: int, block: Payload) -> list[Event]:
        """Start a block, which may be complete, partial or empty."""
        if index in self._open:
            self._calls.contradict(index)
        if block.get("type") == "tool_use":
            complete_input = block["input"] if block.get("input") else None  # an empty one is of a call that follows
            self._open[index] = complete_input is not None
            return self._calls.add(index=index, key=block.get("id"), name=block.get("name"), arguments=complete_input)
        return self._words(block.get("thinking"), block.get("text"))

    def _delta(self, index: int, delta: Payload) -> list[Event]:
        if delta.get("type") != "input_json_delta":
            return self._words(delta.get("thinking"), delta.get("text"))
        piece = delta.get("partial_json")
        if index not in self._open or not isinstance(piece, str):
            return []
        self._open[index] = self._open[index] or bool(piece)
        return self._calls.add(index=index, arguments=piece)

    def _stopped(self, index: int) -> list[Event]:
        """End a block. A call without any input is a call without arguments."""
        if self._open.pop(index, True):
            return self._calls.settle()
        return [*self._calls.add(index=index, arguments="{}"), *self._calls.settle()]

    def _ending(self, delta: Payload, usage: Any) -> None:
        if isinstance(reason := delta.get("stop_reason"), str) and reason:
            self._finish = reason
        if isinstance(stop := delta.get("stop_sequence"), str):
            self._stop = stop
        self._spend(usage)

    def _spend(self, usage: Any) -> None:
        """Update the token counts. They are totals, so the last ones count."""
        self._spent |= {name: value for name, value in record(usage).items() if value is not None}

    def _unended(self) -> list[Event]:
        if not self._finish:
            return super()._unended()
        return [Noted(Note("no-done", "the stream ended without message_stop")), *self._end()]

    def _end(self) -> list[Event]:
        reason = self._finish or "end_turn"
        stop = self._stop if reason == "stop_sequence" else None
        notes = [] if stop is None else [Noted(Note(STOPPED, stop))]
        return self._finished(reason, FINISH, read_usage(self._spent), notes)


def _index(payload: Payload) -> int:
    """The place of a block; 0 where none is told: blocks come one after another."""
    index = payload.get("index")
    return index if isinstance(index, int) else 0


def read_usage(usage: Payload) -> Usage:
    """Return the tokens from a `usage`, whose input does not include cached tokens; 0 for missing fields."""
    cached = count(usage.get("cache_read_input_tokens"))
    fresh = count(usage.get("input_tokens")) + count(usage.get("cache_creation_input_tokens"))
    thought = count(record(usage.get("output_tokens_details")).get("thinking_tokens"))
    return Usage(fresh + cached, count(usage.get("output_tokens")), cached, thought)


def read_count(payload: Payload) -> int | None:
    """Return the token count in the response of `count_tokens`; None if it has none."""
    tokens = payload.get("input_tokens")
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens >= 0 else None
