"""Writes Ollama's replies: events as JSON lines, replies and errors as bodies.

A call is written whole, in a line of its own. The last line has the reason for the end, and the usage.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ...errors import Refused
from ...events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Logprobs, Noted, TextDelta, ThoughtDelta
from ...schema.nonblocking_json import loads
from ...types import Finish, Note, Reply, Usage
from ..incoming import IncomingRequest, Stamp
from ..json_stream import JSON_LINES, Payload, dumped
from ..openai_chat.writer import write_estimated, write_notes
from ..token_logprobs import LOGPROB

REASONS: dict[Finish, str] = {"length": "length", "limit": "length"}
"""`done_reason` for finish reasons other than `stop`."""
GOES_ON: Payload = {"done": False}
"""The end of a line that is not the last."""
KEEP_ALIVE = b" "
"""A keep-alive: blanks before the next line. JSON allows them, while clients that parse each line fail on an empty one."""


class ReplyWriter:
    """Writes events as a stream: `begin`, `feed` each event, then `close`, or `error` after a failure.

    The API has only one reply, so `choice` is ignored.
    """

    keep_alive = KEEP_ALIVE
    content_type = JSON_LINES

    def __init__(self, incoming: IncomingRequest, stamp: Stamp) -> None:
        self._incoming = incoming
        self._stamp = stamp
        self._head = dumped(_head(stamp))[:-1]
        self._call = ("", "")
        self._arguments: list[str] = []
        self._calls = 0
        self._notes: list[Note] = []
        self._logprobs: list[Any] = []

    def begin(self) -> bytes:
        return b""

    def due(self, event: Event | None, choice: int = 0) -> int:
        """Return about how many characters `feed` of an event, or `close` for None, has to write besides the event."""
        called = sum(map(len, self._arguments)) if isinstance(event, CallEnd) else 0
        return called + LOGPROB * len(self._logprobs)

    def feed(self, event: Event, choice: int = 0) -> bytes:
        match event:
            case TextDelta(text):
                return self._line(self._words(text))
            case ThoughtDelta(text):
                return self._line(self._words("", thinking=text)) if self._incoming.thoughts else b""
            case CallStart(name, id):
                self._call = (name, id)
                self._arguments = []
                self._logprobs = []  # log probabilities of the call's own text do not belong to the reply's text
            case ArgumentsDelta(piece):
                self._arguments.append(piece)
            case CallEnd():
                return self._called()
            case Logprobs(tokens):
                self._logprobs += tokens
            case Noted(note):
                self._notes.append(note)
            case Finished():
                end = _end(event.finish, event.usage, self._notes, self._stamp)
                return self._line(self._words(""), end=end)
            case _:
                pass
        return b""

    def close(self) -> bytes:
        return b""

    def error(self, error: Refused) -> bytes:
        return f"{dumped(write_error(error))}\n".encode()

    def _words(self, text: str, **more: Any) -> Payload:
        """Return the reply's part of a line."""
        return {"message": {"role": "assistant", "content": text, **more}}

    def _called(self) -> bytes:
        name, key = self._call
        text, self._arguments = "".join(self._arguments) or "{}", []
        self._calls += 1
        return self._line(self._words("", tool_calls=[_call(key, name, loads(text), self._calls - 1)]), len(text))

    def _line(self, body: Payload, size: int = 0, end: Payload = GOES_ON) -> bytes:
        size += self.due(None)
        return f"{self._head},{dumped({**body, **self._likelihoods(), **end}, size)[1:]}\n".encode()

    def _likelihoods(self) -> Payload:
        """Return the log probabilities since the last line."""
        logprobs, self._logprobs = self._logprobs, []
        return {"logprobs": logprobs} if logprobs else {}


class GenerateWriter(ReplyWriter):
    """The writer for `/api/generate`, which has no calls."""

    def _words(self, text: str, **more: Any) -> Payload:
        return {"response": text, **more}


def write_reply(replies: Sequence[Reply], incoming: IncomingRequest, stamp: Stamp) -> Payload:
    """Return the body of a reply; the API has only one."""
    reply = replies[0]
    message: Payload = {"role": "assistant", "content": reply.text, **_thought(reply, incoming)}
    if reply.calls:
        message["tool_calls"] = [_call(call.id, call.name, call.arguments, at) for at, call in enumerate(reply.calls)]
    return _whole(reply, {"message": message}, stamp)


def write_generated(replies: Sequence[Reply], incoming: IncomingRequest, stamp: Stamp) -> Payload:
    """Return the body of a reply to `/api/generate`."""
    reply = replies[0]
    return _whole(reply, {"response": reply.text, **_thought(reply, incoming)}, stamp)


def write_loaded(chats: bool, stamp: Stamp) -> Payload:
    """Return the body for an empty request, which asks to load the model."""
    content = {"message": {"role": "assistant", "content": ""}} if chats else {"response": ""}
    return {**_head(stamp), **content, "done": True, "done_reason": "load"}


def write_error(error: Refused) -> Payload:
    """Return the body of an error."""
    return {"error": str(error)}


def _whole(reply: Reply, content: Payload, stamp: Stamp) -> Payload:
    likelihoods = {"logprobs": list(reply.logprobs)} if reply.logprobs and not reply.calls else {}
    return {**_head(stamp), **content, **likelihoods, **_end(reply.finish, reply.usage, reply.notes, stamp)}


def _thought(reply: Reply, incoming: IncomingRequest) -> Payload:
    return {"thinking": reply.thought} if reply.thought and incoming.thoughts else {}


def _head(stamp: Stamp) -> Payload:
    return {"model": stamp.model, "created_at": moment(stamp.created)}


def _call(key: str, name: str, arguments: Any, index: int) -> Payload:
    return {"id": key, "function": {"index": index, "name": name, "arguments": arguments}}


def _end(finish: Finish, usage: Usage, notes: Sequence[Note], stamp: Stamp) -> Payload:
    """Return the end of a reply: its reason, its tokens, and the nanoseconds to the first token and from there to the
    end."""
    first, whole = stamp.times()
    out: Payload = {
        "done": True,
        "done_reason": REASONS.get(finish, "stop"),
        "total_duration": _nanoseconds(whole),
        "load_duration": 0,
        "prompt_eval_count": usage.prompt_tokens,
        "prompt_eval_duration": _nanoseconds(first),
        "eval_count": usage.completion_tokens,
        "eval_duration": _nanoseconds(whole - first),
    }
    extra = write_estimated(usage).get("toolspeak", {}) | (write_notes(notes) if notes else {})
    return out | ({"toolspeak": extra} if extra else {})


def _nanoseconds(seconds: float) -> int:
    return max(1, round(seconds * 1e9))  # at least 1, because clients divide by it


def moment(seconds: int) -> str:
    """Return a time in seconds since 1970 in the API's format."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
