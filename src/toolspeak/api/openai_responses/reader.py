"""Reads a reply of the Responses API into events.

It accepts what real servers send: items without deltas, deltas without an item, a whole JSON reply instead of a stream,
a last event that alone contains the text.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import ServerFailed
from ...events import Event, Finished, Logprobs, Noted, TextDelta, ThoughtDelta
from ...schema import nonblocking_json
from ...types import Finish, Note, Usage
from ..call_deltas import ENTRY
from ..json_stream import Payload, record, records
from ..stream_reader import StreamReader, count
from ..token_logprobs import read_token_logprobs
from ..upstream_errors import excerpt_of, failure

INCOMPLETE: dict[str, Finish] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "length": "length",
    "content_filter": "content_filter",
}

ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done")
TEXT = ("response.output_text", "response.refusal")
THOUGHT = ("response.reasoning_text", "response.reasoning_summary_text")
ARGUMENTS = ("response.function_call_arguments",)


class ReplyReader(StreamReader):
    """Reads events from the bytes of a reply. It ends with an event that finishes the response."""

    missing = "no response.completed"

    def __init__(self, ids: Callable[[], str] | None = None) -> None:
        super().__init__(ids)
        self._places: dict[str, int] = {}
        self._delta_kinds: dict[int, str] = {}  # the kind of deltas that an item has had, by its index

    def _payload(self, payload: Payload) -> list[Event]:
        if not self._payloads.whole:
            return self._event(payload)
        if not isinstance(payload.get("output"), list):
            raise ServerFailed(f"expected a response, got: {excerpt_of(payload)}")
        return self._end(payload)

    def _event(self, payload: Payload) -> list[Event]:
        kind, _, what = str(payload.get("type", "")).rpartition(".")
        if f"{kind}.{what}" in ENDS:
            return self._end(record(payload.get("response")))
        if kind == "response.output_item":
            item = record(payload.get("item"))
            return self._item(item, self._place(payload, item), done=what == "done")
        place = self._place(payload, payload)
        piece = payload.get("delta")
        if what != "delta" or not isinstance(piece, str) or not piece:
            return self._break(kind, what, payload, place)
        if kind in ARGUMENTS:
            self._delta_kinds.setdefault(place, kind)
            return self._calls.add(index=place, arguments=piece)
        if kind in TEXT or kind in THOUGHT:
            if self._delta_kinds.setdefault(place, kind) != kind and kind in THOUGHT:
                return []  # the same thought, once as text and once as its summary
            return self._text_delta(piece, kind, read_token_logprobs(payload.get("logprobs")))
        return []

    def _break(self, kind: str, what: str, payload: Payload, place: int) -> list[Event]:
        """Separate parts of a thought by a blank line."""
        later = kind == "response.reasoning_summary_part" and what == "added" and payload.get("summary_index")
        if later and self._delta_kinds.get(place) == "response.reasoning_summary_text":
            return [ThoughtDelta("\n\n")]
        return []

    def _text_delta(self, text: str, kind: str, logprobs: list[Payload]) -> list[Event]:
        events = self._calls.settle()
        if kind in THOUGHT:
            return [*events, ThoughtDelta(text)]
        self._text.append(text)
        if logprobs:
            events.append(Logprobs(logprobs))
        return [*events, TextDelta(text)]

    def _place(self, payload: Payload, named: Payload) -> int:
        """Return the index of an item in the output, or its position by id if the server sends no index."""
        key = named.get("item_id") or named.get("id")
        place = payload.get("output_index")
        if not isinstance(place, int):
            place = self._places.get(str(key), len(self._places)) if key else 0
        if isinstance(key, str):
            if key not in self._places:
                self._calls.hold(len(key) + ENTRY)
                self._places[key] = place
            place = self._places[key]
        if place not in self._delta_kinds:
            self._calls.hold(ENTRY)
        return place

    def _item(self, item: Payload, place: int, *, done: bool) -> list[Event]:
        match item.get("type"):
            case "function_call":
                whole = item.get("arguments") if done and place not in self._delta_kinds else None
                if done:
                    self._delta_kinds.setdefault(place, "item")
                return self._calls.add(index=place, key=item.get("call_id"), name=item.get("name"), arguments=whole)
            case "custom_tool_call" if done and place not in self._delta_kinds:
                self._delta_kinds[place] = "item"
                arguments = nonblocking_json.dumps({"input": item.get("input")})
                return self._calls.add(index=place, key=item.get("call_id"), name=item.get("name"), arguments=arguments)
            case "message" if done and place not in self._delta_kinds:
                self._delta_kinds[place] = "item"
                return [event for part in records(item.get("content")) for event in self._part(part)]
            case "reasoning" if done and place not in self._delta_kinds:
                parts = [part.get("text") for part in records(item.get("content")) or records(item.get("summary"))]
                thought = "\n\n".join(part for part in parts if isinstance(part, str))
                self._delta_kinds[place] = "item"
                return self._text_delta(thought, THOUGHT[0], []) if thought else []
            case _:
                return []

    def _part(self, part: Payload) -> list[Event]:
        text = part.get("text") or part.get("refusal")
        return (
            self._text_delta(text, TEXT[0], read_token_logprobs(part.get("logprobs")))
            if isinstance(text, str) and text
            else []
        )

    def _end(self, response: Payload) -> list[Event]:
        status = response.get("status")
        if status in ("failed", "cancelled"):
            raise failure(0, {"error": response.get("error") or f"the response was {status}"})
        events: list[Event] = []
        for at, item in enumerate(records(response.get("output"))):
            events += self._item(item, self._places.get(str(item.get("id")), at), done=True)
        self._over = True
        reason, finish = _incomplete(response) if status == "incomplete" else ("", "stop")
        events += self._calls.end(cut=finish != "stop")
        if reason and reason not in INCOMPLETE:
            events.append(Noted(Note("unknown-finish", reason)))
        if finish == "stop" and self._calls.count:
            finish = "tool_calls"
        return [*events, Finished(finish, read_usage(record(response.get("usage"))))]


def read_usage(usage: Payload) -> Usage:
    """Return the tokens from a `usage`; 0 for missing fields."""
    return Usage(
        count(usage.get("input_tokens")),
        count(usage.get("output_tokens")),
        count(record(usage.get("input_tokens_details")).get("cached_tokens")),
        count(record(usage.get("output_tokens_details")).get("reasoning_tokens")),
    )


def _incomplete(response: Payload) -> tuple[str, Finish]:
    """Return why a response is incomplete, and the finish reason for that."""
    reason = str(record(response.get("incomplete_details")).get("reason") or "")
    return reason, INCOMPLETE.get(reason, "length")
