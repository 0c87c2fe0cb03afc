"""Writes chat completions for clients: events into the bytes of a stream, replies and errors as bodies.

The order that every client accepts: the role first, each call's id and name before its arguments, always an index,
`finish_reason` once, and the usage in a chunk of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import Refused
from ...events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Logprobs, Noted, TextDelta, ThoughtDelta
from ...types import Finish, Note, Reply, Usage
from ...wire.reading.collect import add_usage
from ..custom_tools import custom_input
from ..incoming import IncomingRequest, Stamp
from ..json_stream import Payload, dumped
from ..sse_parser import CONTENT_TYPE
from ..token_logprobs import LOGPROB
from .tools import write_call

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment in an event stream. It keeps proxies from closing an idle connection."""

REASONS: dict[Finish, str] = {"limit": "length"}
"""`finish_reason` for our finish reasons that have another name."""


class ChunkWriter:
    """The base of writers of chunks, each with `head`: the end after the last event, or after a failure."""

    keep_alive = KEEP_ALIVE
    content_type = CONTENT_TYPE

    def __init__(self, incoming: IncomingRequest, head: Payload) -> None:
        self._incoming = incoming
        self._head = head
        self._usage = Usage()

    def due(self, event: Event | None, choice: int = 0) -> int:
        """Return about how many characters `feed` of an event, or `close` for None, has to write besides the event."""
        return 0

    def close(self) -> bytes:
        end = b"data: [DONE]\n\n"
        if not self._incoming.usage:
            return end
        return data_line({**self._head, "choices": [], "usage": write_usage(self._usage)}) + end

    def error(self, error: Refused) -> bytes:
        return data_line(write_error(error))


class ReplyWriter(ChunkWriter):
    """Writes events as a stream: `begin`, `feed` each event of a choice, then `close`, or `error` after a failure."""

    def __init__(self, incoming: IncomingRequest, stamp: Stamp) -> None:
        head = {
            "id": f"chatcmpl-{stamp.id}",
            "object": "chat.completion.chunk",
            "created": stamp.created,
            "model": stamp.model,
        }
        super().__init__(incoming, head)
        self._tail: Payload = {"usage": None} if incoming.usage else {}
        opening = dumped(self._head)[:-1]
        usage = ',"usage":null' if incoming.usage else ""
        self._after = f',"logprobs":null,"finish_reason":null}}]{usage}}}\n\n'
        self._choices = [
            _Choice(incoming, f'data: {opening},"choices":[{{"index":{i},"delta":') for i in range(incoming.n)
        ]

    def begin(self) -> bytes:
        return b"".join(self._delta(i, {"role": "assistant", "content": ""}) for i in range(self._incoming.n))

    def due(self, event: Event | None, choice: int = 0) -> int:
        return LOGPROB * len(self._choices[choice].logprobs)

    def feed(self, event: Event, choice: int = 0) -> bytes:
        state = self._choices[choice]
        match event:
            case TextDelta(text):
                return self._text(choice, "content", text)
            case ThoughtDelta(text):
                return self._text(choice, "reasoning_content", text) if self._incoming.thoughts else b""
            case Logprobs(tokens):
                state.logprobs += tokens
            case Noted(note):
                state.notes.append(note)
            case Finished():
                return self._finished(choice, event)
            case _:
                return b"".join(self._delta(choice, delta) for delta in state.call(event))
        return b""

    def _text(self, choice: int, field: str, text: str) -> bytes:
        state = self._choices[choice]
        if state.logprobs:
            return self._delta(choice, {field: text})
        return f'{state.before}{{"{field}":{dumped(text)}}}{self._after}'.encode()

    def _delta(self, choice: int, delta: Payload) -> bytes:
        state = self._choices[choice]
        if state.logprobs:
            return self._row(choice, delta, None)
        return f"{state.before}{dumped(delta)}{self._after}".encode()

    def _row(self, choice: int, delta: Payload, finish: str | None, **more: Any) -> bytes:
        """Return a chunk with the log probabilities since the last one."""
        state = self._choices[choice]
        logprobs = {"content": state.logprobs, "refusal": None} if state.logprobs else None
        size = self.due(None, choice)
        state.logprobs = []
        row: Payload = {"index": choice, "delta": delta, "logprobs": logprobs, "finish_reason": finish, **more}
        return data_line({**self._head, "choices": [row], **self._tail}, size)

    def _finished(self, choice: int, event: Finished) -> bytes:
        self._usage = add_usage(self._usage, event.usage)
        state = self._choices[choice]
        more = {"toolspeak": write_notes(state.notes)} if state.notes else {}
        return self._row(choice, {}, _reason(event.finish, self._incoming), **more)


class _Choice:
    """The state of one reply in a stream."""

    def __init__(self, incoming: IncomingRequest, before: str) -> None:
        self.before = before
        self.notes: list[Note] = []
        self.logprobs: list[dict[str, Any]] = []
        self.custom: frozenset[str] = incoming.echo.get("custom", frozenset())
        self.legacy: bool = incoming.echo.get("legacy", False)
        self.index = -1
        self.input: list[str] | None = None

    def call(self, event: Event) -> list[Payload]:
        """Return the deltas for an event of a call. A custom tool's input is known only when its arguments are
        complete."""
        match event:
            case CallStart(name, key):
                self.index += 1
                self.logprobs = []  # log probabilities of the call's own text do not belong to the reply's text
                if name in self.custom:
                    self.input = []
                    return self._delta({"id": key, "type": "custom", "custom": {"name": name, "input": ""}})
                function = {"name": name, "arguments": ""}
                if self.legacy:
                    return [{"function_call": function}]
                return self._delta({"id": key, "type": "function", "function": function})
            case ArgumentsDelta(piece) if self.input is not None:
                self.input.append(piece)
            case ArgumentsDelta(piece):
                function = {"arguments": piece}
                return [{"function_call": function}] if self.legacy else self._delta({"function": function})
            case CallEnd() if self.input is not None:
                text, self.input = "".join(self.input), None
                return self._delta({"custom": {"input": custom_input(text)}})
            case _:
                pass
        return []

    def _delta(self, call: Payload) -> list[Payload]:
        return [{"tool_calls": [{"index": self.index, **call}]}]


def write_reply(replies: Sequence[Reply], incoming: IncomingRequest, stamp: Stamp) -> Payload:
    """Return one body with all replies, one choice each."""
    usage = Usage()
    for reply in replies:
        usage = add_usage(usage, reply.usage)
    return {
        "id": f"chatcmpl-{stamp.id}",
        "object": "chat.completion",
        "created": stamp.created,
        "model": stamp.model,
        "choices": [_choice(i, reply, incoming) for i, reply in enumerate(replies)],
        "usage": write_usage(usage),
    }


def _message(reply: Reply, incoming: IncomingRequest) -> Payload:
    message: Payload = {"role": "assistant", "content": reply.text or (None if reply.calls else ""), "refusal": None}
    if reply.thought and incoming.thoughts:
        message["reasoning_content"] = reply.thought
    if reply.calls and incoming.echo.get("legacy"):
        message["function_call"] = {"name": reply.calls[0].name, "arguments": reply.calls[0].json}
    elif reply.calls:
        custom = incoming.echo.get("custom", frozenset())
        message["tool_calls"] = [write_call(call.id, call.name, call.json, custom) for call in reply.calls]
    return message


def _choice(index: int, reply: Reply, incoming: IncomingRequest) -> Payload:
    with_logprobs = reply.logprobs and not reply.calls
    logprobs = {"content": list(reply.logprobs), "refusal": None} if with_logprobs else None
    row: Payload = {
        "index": index,
        "message": _message(reply, incoming),
        "logprobs": logprobs,
        "finish_reason": _reason(reply.finish, incoming),
    }
    if reply.notes:
        row["toolspeak"] = write_notes(reply.notes)
    return row


def _reason(finish: Finish, incoming: IncomingRequest) -> str:
    if finish == "tool_calls" and incoming.echo.get("legacy"):
        return "function_call"
    return REASONS.get(finish, finish)


def write_notes(notes: Sequence[Note]) -> Payload:
    """Return what was repaired, dropped or doubtful, for the field `toolspeak`."""
    return {"notes": [{"rule": note.rule, "detail": note.detail} for note in notes]}


def write_usage(usage: Usage) -> Payload:
    """Return the tokens as `usage`."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        **write_estimated(usage),
    }


def write_estimated(usage: Usage) -> Payload:
    """Return the field that marks an estimated usage."""
    return {"toolspeak": {"estimated": True}} if usage.estimated else {}


CREATED = 1_767_225_600
"""The creation time of every model. The API requires one, and the real one is unknown. It never changes."""


def write_model(name: str) -> Payload:
    """Return the body of `GET /v1/models/{model}`."""
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "toolspeak"}


def write_models(names: Sequence[str]) -> Payload:
    """Return the body of `GET /v1/models`."""
    return {"object": "list", "data": [write_model(name) for name in names]}


NO_QUOTA = "insufficient_quota"
"""Codes of errors that are also their types."""
KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def write_error(error: Refused) -> Payload:
    """Return the body of an error."""
    kind = KINDS.get(error.status, "invalid_request_error" if error.status < 500 else "server_error")
    kind = error.code if error.code == NO_QUOTA else kind
    return {"error": {"message": str(error), "type": kind, "param": error.param, "code": error.code}}


def data_line(payload: Payload, size: int = 0) -> bytes:
    """Return one event of a stream, of about `size` characters."""
    return f"data: {dumped(payload, size)}\n\n".encode()
