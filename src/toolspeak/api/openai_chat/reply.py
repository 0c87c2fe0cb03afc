"""A chat completion, both directions: a reply's bytes into events, and events into a reply's bytes.

The reader takes what servers in the field really send: calls without ids or indexes, names repeated in every
piece, arguments as an object, reasoning under either of its names, a whole JSON reply where a stream was asked
for, an error in the middle of the stream. The writer sends what every client takes: the role first, then each
call's id and name before its arguments, an index always, `finish_reason` once, usage in a chunk of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import Refused, ServerFailed, StreamCut
from ...events import (
    ArgumentsDelta,
    CallStart,
    Event,
    Finished,
    Logprobs,
    Noted,
    TextDelta,
    ThoughtDelta,
)
from ...types import Finish, Note, Reply, ToolCall, Usage
from ...wire.collect import add_usage
from ..asked import Asked, Stamp
from ..call_deltas import CallStream
from ..failure import excerpt
from ..payloads import Payload, Payloads, record, records

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


class ReplyReader:
    """Events from the bytes of a reply, cut anywhere: `feed` each piece, then `close`.

    `ids` makes the id of a call that came without one. `text` is the text so far, `received` grows with
    every payload. `close` raises StreamCut where the reply broke off: there was neither `[DONE]` nor a
    `finish_reason`. Both raise what the server reports as an error.
    """

    def __init__(self, ids: Callable[[], str] | None = None) -> None:
        self._payloads = Payloads()
        self._calls = CallStream(ids)
        self._text: list[str] = []
        self._finish: str | None = None
        self._usage = Usage()
        self._over = False

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def received(self) -> int:
        return self._payloads.received

    def feed(self, chunk: bytes) -> list[Event]:
        if self._over:
            return []
        events = self._events(self._payloads.feed(chunk))
        return events + self._end() if self._payloads.done else events

    def close(self) -> list[Event]:
        if self._over:
            return []
        events = self._events(self._payloads.close())
        if self._payloads.done or self._payloads.whole:
            return events + self._end()
        if self._finish is None:
            raise StreamCut("the server ended the reply in the middle: no finish_reason and no [DONE]", text=self.text)
        return [*events, Noted(Note("no-done", "the stream ended without [DONE]")), *self._end()]

    def _events(self, payloads: list[Payload]) -> list[Event]:
        events: list[Event] = []
        for payload in payloads:
            if "choices" not in payload and "usage" not in payload and self._payloads.whole:
                raise ServerFailed(
                    f"expected a chat completion, got: {excerpt(json.dumps(payload, ensure_ascii=False))}"
                )
            if usage := record(payload.get("usage")):
                self._usage = read_usage(usage)
            for choice in records(payload.get("choices"))[:1]:
                if choice.get("index") in (None, 0):
                    events += self._choice(choice)
        return events

    def _choice(self, choice: Payload) -> list[Event]:
        delta = record(choice.get("delta")) or record(choice.get("message"))
        events: list[Event] = []
        if tokens := records(record(choice.get("logprobs")).get("content")):
            events.append(Logprobs(tokens))
        events += self._words(delta)
        for place, call in enumerate(records(delta.get("tool_calls"))):
            function = record(call.get("function"))
            events += self._calls.add(
                index=call.get("index"),
                key=call.get("id"),
                name=function.get("name"),
                arguments=function.get("arguments"),
                fresh=place > 0,
            )
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            if reason == "error":
                raise ServerFailed("the server reports that the reply failed (finish_reason: error)")
            self._finish = reason
        return events

    def _words(self, delta: Payload) -> list[Event]:
        events: list[Event] = []
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str) and thought:
            events.append(ThoughtDelta(thought))
        events += read_content(delta.get("content") or delta.get("refusal"))
        for event in events:
            if isinstance(event, TextDelta):
                self._text.append(event.text)
        return self._calls.settle() + events if events else events

    def _end(self) -> list[Event]:
        self._over = True
        reason = self._finish or "stop"
        finish = FINISH.get(reason, "stop")
        events = self._calls.end(cut=finish in ("length", "content_filter"))
        if reason not in FINISH:
            events.append(Noted(Note("unknown-finish", reason)))
        if finish in ("stop", "tool_calls"):  # servers disagree on the word when there are calls
            finish = "tool_calls" if self._calls.count else "stop"
        return [*events, Finished(finish, self._usage)]


def read_content(content: Any) -> list[Event]:
    """Text and thoughts of a `content`: a text, or a list of parts."""
    if isinstance(content, str):
        return [TextDelta(content)] if content else []
    events: list[Event] = []
    for part in records(content):
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            texts = [inner] if isinstance(inner, str) else [item.get("text") for item in records(inner)]
            events += [ThoughtDelta(text) for text in texts if isinstance(text, str) and text]
        else:
            events += read_content(part.get("text") or part.get("refusal"))
    return events


def read_models(payload: Payload) -> list[str]:
    """The names of the models there are (`GET /v1/models`)."""
    names = [model.get("id") for model in records(payload.get("data"))]
    return [name for name in names if isinstance(name, str)]


def read_usage(usage: Payload) -> Usage:
    """The tokens spent, from a `usage`; 0 for what it does not tell."""
    return Usage(
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        _count(record(usage.get("prompt_tokens_details")).get("cached_tokens")),
        _count(record(usage.get("completion_tokens_details")).get("reasoning_tokens")),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


# ------------------------------------------------------------------ written: what clients are sent

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment in a stream of events: it says nothing, and keeps those in between from closing the connection."""

REASONS: dict[Finish, str] = {"limit": "length"}
"""`finish_reason` where our word is another."""


class ReplyWriter:
    """A stream's bytes from events: `begin`, `feed` each event of a choice, then `close`, or `error` where it broke off."""

    keep_alive = KEEP_ALIVE

    def __init__(self, asked: Asked, stamp: Stamp) -> None:
        self._asked = asked
        head = {
            "id": f"chatcmpl-{stamp.id}",
            "object": "chat.completion.chunk",
            "created": stamp.created,
            "model": stamp.model,
        }
        self._head = head
        opening = _dumped(head)[:-1]
        self._before = [f'data: {opening},"choices":[{{"index":{i},"delta":' for i in range(asked.n)]
        self._after = ',"logprobs":null,"finish_reason":null}]}\n\n'
        self._calls = [0] * asked.n
        self._logprobs: list[list[dict[str, Any]]] = [[] for _ in range(asked.n)]
        self._notes: list[list[Note]] = [[] for _ in range(asked.n)]
        self._usage = Usage()

    def begin(self) -> bytes:
        return b"".join(self._delta(i, {"role": "assistant", "content": ""}) for i in range(self._asked.n))

    def feed(self, event: Event, choice: int = 0) -> bytes:
        match event:
            case TextDelta(text):
                return self._delta(choice, {"content": text})
            case ThoughtDelta(text):
                return self._delta(choice, {"reasoning_content": text}) if self._asked.thoughts else b""
            case CallStart(name, id):
                self._calls[choice] += 1
                function = {"name": name, "arguments": ""}
                return self._call(choice, {"id": id, "type": "function", "function": function})
            case ArgumentsDelta(piece):
                return self._call(choice, {"function": {"arguments": piece}})
            case Logprobs(tokens):
                self._logprobs[choice] += tokens
            case Noted(note):
                self._notes[choice].append(note)
            case Finished():
                return self._finished(choice, event)
            case _:
                pass
        return b""

    def close(self) -> bytes:
        end = b"data: [DONE]\n\n"
        if not self._asked.usage:
            return end
        return _data({**self._head, "choices": [], "usage": write_usage(self._usage)}) + end

    def error(self, error: Refused) -> bytes:
        return _data(write_error(error))

    def _delta(self, choice: int, delta: Payload) -> bytes:
        if tokens := self._logprobs[choice]:
            self._logprobs[choice] = []
            row: Payload = {
                "index": choice,
                "delta": delta,
                "logprobs": {"content": tokens, "refusal": None},
                "finish_reason": None,
            }
            return _data({**self._head, "choices": [row]})
        return (self._before[choice] + _dumped(delta) + self._after).encode()

    def _call(self, choice: int, call: Payload) -> bytes:
        return self._delta(choice, {"tool_calls": [{"index": self._calls[choice] - 1, **call}]})

    def _finished(self, choice: int, event: Finished) -> bytes:
        self._usage = add_usage(self._usage, event.usage)
        reason = REASONS.get(event.finish, event.finish)
        row: Payload = {"index": choice, "delta": {}, "logprobs": None, "finish_reason": reason}
        if self._notes[choice]:
            row["toolspeak"] = write_notes(self._notes[choice])
        return _data({**self._head, "choices": [row]})


def write_reply(replies: Sequence[Reply], asked: Asked, stamp: Stamp) -> Payload:
    """One body of all the replies, a choice each."""
    usage = Usage()
    for reply in replies:
        usage = add_usage(usage, reply.usage)
    return {
        "id": f"chatcmpl-{stamp.id}",
        "object": "chat.completion",
        "created": stamp.created,
        "model": stamp.model,
        "choices": [_choice(i, reply, asked) for i, reply in enumerate(replies)],
        "usage": write_usage(usage),
    }


def _choice(index: int, reply: Reply, asked: Asked) -> Payload:
    message: Payload = {"role": "assistant", "content": reply.text or (None if reply.calls else ""), "refusal": None}
    if reply.thought and asked.thoughts:
        message["reasoning_content"] = reply.thought
    if reply.calls:
        message["tool_calls"] = [_tool_call(call) for call in reply.calls]
    logprobs = {"content": list(reply.logprobs), "refusal": None} if reply.logprobs else None
    finish = REASONS.get(reply.finish, reply.finish)
    row: Payload = {"index": index, "message": message, "logprobs": logprobs, "finish_reason": finish}
    if reply.notes:
        row["toolspeak"] = write_notes(reply.notes)
    return row


def _tool_call(call: ToolCall) -> Payload:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.json}}


def write_notes(notes: Sequence[Note]) -> Payload:
    """What was repaired, dropped or doubtful, as the field `toolspeak` tells it."""
    return {"notes": [{"rule": note.rule, "detail": note.detail} for note in notes]}


def write_usage(usage: Usage) -> Payload:
    """The tokens spent, as `usage`."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


CREATED = 1_767_225_600
"""When every model is told to have been made: the API wants a time, and nobody knows one. It never changes."""


def write_model(name: str) -> Payload:
    """A model (`GET /v1/models/{model}`)."""
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "toolspeak"}


def write_models(names: Sequence[str]) -> Payload:
    """The models there are (`GET /v1/models`)."""
    return {"object": "list", "data": [write_model(name) for name in names]}


KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def write_error(error: Refused) -> Payload:
    """An error's body."""
    kind = KINDS.get(error.status, "invalid_request_error" if error.status < 500 else "server_error")
    return {"error": {"message": str(error), "type": kind, "param": error.param, "code": error.code}}


def _data(payload: Payload) -> bytes:
    return f"data: {_dumped(payload)}\n\n".encode()


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
