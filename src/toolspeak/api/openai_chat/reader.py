"""Reads a chat completion from a server into events.

It accepts what real servers send: calls without ids or indexes, names repeated in every delta, arguments as an object,
reasoning under either of its names, a whole JSON reply instead of a stream, an error in the middle of the stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ...errors import ServerFailed
from ...events import Event, Logprobs, Noted, TextDelta, ThoughtDelta
from ...types import Finish, Note, Usage
from ..json_stream import Payload, record, records
from ..stream_reader import StreamReader, count
from ..upstream_errors import excerpt

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
        choices = records(payload.get("choices"))
        self._begun = self._begun or bool(choices)
        if not choices and self._payloads.whole:
            raise ServerFailed(f"expected a chat completion, got: {excerpt(json.dumps(payload, ensure_ascii=False))}")
        if usage := record(payload.get("usage")):
            self._usage = read_usage(usage)
        for choice in choices[:1]:
            if choice.get("index") in (None, 0):
                return self._choice(choice)
        return []

    def _choice(self, choice: Payload) -> list[Event]:
        delta = record(choice.get("delta")) or record(choice.get("message"))
        events: list[Event] = []
        scores = choice.get("logprobs")
        if tokens := records(record(scores).get("content")) if scores else []:
            events.append(Logprobs(tokens))
        events += self._delta(delta)
        for place, call in enumerate(_calls(delta)):
            function = record(call.get("function"))
            events += self._calls.add(
                index=call.get("index"),
                key=call.get("id"),
                name=function.get("name"),
                arguments=function.get("arguments"),
                fresh=place > 0,
            )
        ours = choice.get("toolspeak")  # from another toolspeak gateway
        for note in records(record(ours).get("notes")) if ours else ():
            self._calls.note(Note(str(note.get("rule", ""))[:100], str(note.get("detail", ""))))
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            if reason == "error":
                raise ServerFailed("the server reports that the reply failed (finish_reason: error)")
            self._finish = reason
        return events

    def _delta(self, delta: Payload) -> list[Event]:
        events: list[Event] = []
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str) and thought:
            events.append(ThoughtDelta(thought))
        if content := delta.get("content") or delta.get("refusal"):
            events += read_content(content)
        for event in events:
            if isinstance(event, TextDelta):
                self._text.append(event.text)
        return self._calls.settle() + events if events else events

    def _unended(self) -> list[Event]:
        if not self._finish:
            return super()._unended()
        return [Noted(Note("no-done", "the stream ended without [DONE]")), *self._end()]

    def _end(self) -> list[Event]:
        if not self._begun:
            raise ServerFailed("expected a reply in the stream, and none came: no choices before its end")
        return self._finished(self._finish or "stop", FINISH, self._usage)


def _calls(delta: Payload) -> list[Payload]:
    """Return the calls of a message. Some servers send only the older field, others send both for one call."""
    calls, older = delta.get("tool_calls"), delta.get("function_call")
    if calls := records(calls) if calls else []:
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
