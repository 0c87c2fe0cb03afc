"""Reads a chat completion from a server into events.

It accepts what real servers send: calls without ids or indexes, names repeated in every delta, arguments as an object,
reasoning under either of its names, a whole JSON reply instead of a stream, an error in the middle of the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import ServerFailed
from ...events import Event, Logprobs, Noted, TextDelta, ThoughtDelta
from ...types import Finish, Note, Usage
from ..json_stream import Payload, entries, first_record, record, records
from ..stream_reader import StreamReader, count
from ..token_logprobs import read_token_logprobs
from ..upstream_errors import excerpt_of

FINISH: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
}

CALLS = frozenset(("tool_calls", "function_call"))
"""The fields of a message that hold calls."""


class ReplyReader(StreamReader):
    """Reads events from the bytes of a reply. It ends with `[DONE]`, or with the stream's end after a `finish_reason`."""

    missing = "no finish_reason and no [DONE]"

    def __init__(self, ids: Callable[[], str] | None = None) -> None:
        super().__init__(ids)
        self._finish = ""
        self._begun = False
        self._usage = Usage()

    def _events(self, payloads: list[Payload]) -> list[Event]:
        events = super()._events(payloads)
        return events + self._end() if self._payloads.done or self._payloads.whole else events

    def _payload(self, payload: Payload) -> list[Event]:
        choice = first_record(payload.get("choices"))
        if choice is None and self._payloads.whole:
            raise ServerFailed(f"expected a chat completion, got: {excerpt_of(payload)}")
        usage = payload.get("usage")
        if usage and (usage := record(usage)):
            self._usage = read_usage(usage)
        if choice is None:
            return []
        self._begun = True
        return self._choice(choice) if choice.get("index") in (None, 0) else []

    def _choice(self, choice: Payload) -> list[Event]:
        delta = record(choice.get("delta")) or record(choice.get("message"))
        scores = choice.get("logprobs")
        tokens = read_token_logprobs(record(scores).get("content")) if scores else []
        events: list[Event] = [Logprobs(tokens)] if tokens else []
        events += self._delta(delta)
        if not CALLS.isdisjoint(delta):
            events += self._call_deltas(_calls(delta))
        ours = choice.get("toolspeak")  # from another toolspeak gateway
        for note in records(record(ours).get("notes")) if ours else ():
            self._calls.note(Note(str(note.get("rule", ""))[:100], str(note.get("detail", ""))))
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            if reason == "error":
                raise ServerFailed("the server reports that the reply failed (finish_reason: error)")
            self._finish = reason
        return events

    def _delta(self, delta: Payload) -> list[Event]:
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        content = delta.get("content") or delta.get("refusal")
        if not isinstance(content, list):
            return self._words(thought, content)
        events: list[Event] = [ThoughtDelta(thought)] if isinstance(thought, str) and thought else []
        events += read_content(content)
        self._text += [event.text for event in events if isinstance(event, TextDelta)]
        return self._calls.settle() + events if events else events

    def _call_deltas(self, calls: list[Payload]) -> list[Event]:
        events: list[Event] = []
        for place, call in enumerate(calls):
            function = record(call.get("function"))
            events += self._calls.add(
                index=call.get("index"),
                key=call.get("id"),
                name=function.get("name"),
                arguments=function.get("arguments"),
                fresh=place > 0,
            )
        return events

    def _unended(self) -> list[Event]:
        if not self._finish:
            return super()._unended()
        return [Noted(Note("no-done", "the stream ended without [DONE]")), *self._end()]

    def _end(self) -> list[Event]:
        if not self._begun:
            raise ServerFailed("expected a reply in the stream, and none came: no choices before its end")
        return self._finished(self._finish or "stop", FINISH, self._usage)


def _calls(delta: Payload) -> list[Payload]:
    """Return the calls of a message. Some servers send only the older field, others send both for one call. What is no
    object is a call without a name and arguments, so that the model is told of it."""
    calls, older = delta.get("tool_calls"), delta.get("function_call")
    if calls := entries(calls):
        return calls
    older = record(older) if older else {}
    return [{"index": 0, "function": older}] if older else []


def _thoughts(inner: Any) -> list[ThoughtDelta]:
    texts = [inner] if isinstance(inner, str) else [item.get("text") for item in records(inner)]
    return [ThoughtDelta(text) for text in texts if isinstance(text, str) and text]


def read_content(content: Any) -> list[Event]:
    """Return the text and thoughts of a `content`: a string, or a list of parts."""
    if isinstance(content, str):
        return [TextDelta(content)] if content else []
    events: list[Event] = []
    for part in records(content):
        if part.get("type") == "thinking":
            events += _thoughts(part.get("thinking"))
        else:
            events += read_content(part.get("text") or part.get("refusal"))
    return events


def read_models(payload: Payload) -> list[str]:
    """Return the names of the models in the response of `GET /v1/models`."""
    names = [model.get("id") for model in records(payload.get("data"))]
    return [name for name in names if isinstance(name, str)]


def read_usage(usage: Payload) -> Usage:
    """Return the tokens from a `usage`; 0 for missing fields."""
    return Usage(
        count(usage.get("prompt_tokens")),
        count(usage.get("completion_tokens")),
        count(record(usage.get("prompt_tokens_details")).get("cached_tokens")),
        count(record(usage.get("completion_tokens_details")).get("reasoning_tokens")),
    )
