"""Writes the Messages API: events into the bytes of a stream; replies, errors and lists of models as bodies.

Only one block is open at a time. A thinking block gets a signature that says that it is unsigned, because clients drop
a block without any signature from the next request.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import Refused
from ...events import ArgumentsDelta, CallEnd, CallResult, CallStart, Event, Finished, Noted, TextDelta, ThoughtDelta
from ...types import Finish, Note, Reply, Usage
from ...wire.reading.collect import add_usage
from ..incoming import HOSTED, IncomingRequest, Stamp
from ..json_stream import Payload, dumped
from ..openai_chat.writer import write_estimated, write_notes
from ..sse_parser import CONTENT_TYPE
from .gateway_calls import call_block, result_block
from .reader import STOPPED

SIGNATURE = "unsigned"
REASONS: dict[Finish, str] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "limit": "max_tokens",
    "content_filter": "refusal",
}
KINDS = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
KEEP_ALIVE = b'event: ping\ndata: {"type":"ping"}\n\n'


class ReplyWriter:
    """Writes events as a stream: `begin`, `feed` each event, then `close`, or `error` after a failure.

    The API has only one reply, so `choice` is ignored.
    """

    keep_alive = KEEP_ALIVE
    content_type = CONTENT_TYPE

    def __init__(self, incoming: IncomingRequest, stamp: Stamp) -> None:
        self._incoming = incoming
        self._stamp = stamp
        self._index = 0
        self._open = ""
        self._notes: list[Note] = []
        self._usage = Usage()

    def begin(self) -> bytes:
        message = _message([], self._stamp) | {"stop_reason": None, "usage": write_usage(Usage())}
        return _data({"type": "message_start", "message": message})

    def due(self, event: Event | None, choice: int = 0) -> int:
        """Return how many characters `feed` of an event, or `close` for None, has to write besides the event: nothing waits."""
        return 0

    def feed(self, event: Event, choice: int = 0) -> bytes:
        match event:
            case TextDelta(text):
                opened = self._begin("text", {"type": "text", "text": ""})
                return opened + self._delta({"type": "text_delta", "text": text})
            case ThoughtDelta(text):
                return self._thought(text) if self._incoming.thoughts else b""
            case CallStart(name, id):
                return self._end() + self._begin("call", _use(name, id, self._incoming) | {"input": {}})
            case ArgumentsDelta(piece):
                return self._delta({"type": "input_json_delta", "partial_json": piece})
            case CallEnd():
                return self._end()
            case CallResult(result):
                return self._begin("result", result_block(result, self._incoming.server_of(result.name))) + self._end()
            case Noted(note):
                self._notes.append(note)
            case Finished():
                return self._finished(event)
            case _:
                pass
        return b""

    def close(self) -> bytes:
        return _data({"type": "message_stop"})

    def error(self, error: Refused) -> bytes:
        return _data(write_error(error))

    def _thought(self, text: str) -> bytes:
        opened = self._begin("thought", {"type": "thinking", "thinking": "", "signature": ""})
        return opened + self._delta({"type": "thinking_delta", "thinking": text})

    def _begin(self, kind: str, block: Payload) -> bytes:
        """Open a block, unless one of this kind is open."""
        if self._open == kind:
            return b""
        closed = self._end()
        self._open = kind
        return closed + _data({"type": "content_block_start", "index": self._index, "content_block": block})

    def _delta(self, delta: Payload) -> bytes:
        # Written by hand for speed: there is one for every token.
        head = f'event: content_block_delta\ndata: {{"type":"content_block_delta","index":{self._index},"delta":'
        return f"{head}{dumped(delta)}}}\n\n".encode()

    def _end(self) -> bytes:
        if not self._open:
            return b""
        signed = self._delta({"type": "signature_delta", "signature": SIGNATURE}) if self._open == "thought" else b""
        self._open = ""
        self._index += 1
        return signed + _data({"type": "content_block_stop", "index": self._index - 1})

    def _finished(self, event: Finished) -> bytes:
        self._usage = add_usage(self._usage, event.usage)
        row: Payload = {
            "type": "message_delta",
            "delta": _stop(event.finish, self._notes),
            "usage": write_usage(self._usage),
        }
        if self._notes:
            row["toolspeak"] = write_notes(self._notes)
        return self._end() + _data(row)


def write_reply(replies: Sequence[Reply], incoming: IncomingRequest, stamp: Stamp) -> Payload:
    """Return the body of a reply; the API has only one."""
    reply = replies[0]
    blocks: list[Payload] = []
    for step in incoming.visible_steps(reply):
        results = (result_block(result, incoming.server_of(result.name)) for result in step.results)
        blocks += [*_blocks(step.reply, incoming), *results]
    blocks += _blocks(reply, incoming)
    body = _message(blocks, stamp) | _stop(reply.finish, reply.notes) | {"usage": write_usage(reply.usage)}
    if reply.notes:
        body["toolspeak"] = write_notes(reply.notes)
    return body


def _blocks(reply: Reply, incoming: IncomingRequest) -> list[Payload]:
    """Return the content blocks of a reply."""
    blocks: list[Payload] = []
    if reply.thought and incoming.thoughts:
        blocks.append({"type": "thinking", "thinking": reply.thought, "signature": SIGNATURE})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    return blocks + [_use(call.name, call.id, incoming) | {"input": call.arguments} for call in reply.calls]


def _use(name: str, key: str, incoming: IncomingRequest) -> Payload:
    """Return the block of a call without its input: from `call_block` if it was run here, and with the member's name if
    it belongs to a toolset."""
    kind, named = incoming.names.get(name, ("", {"name": name}))
    if kind == HOSTED:
        return call_block(name, key, incoming.server_of(name))
    return {"type": "tool_use", "id": key, **named}


def _message(blocks: list[Payload], stamp: Stamp) -> Payload:
    return {
        "id": f"msg_{stamp.id}",
        "type": "message",
        "role": "assistant",
        "model": stamp.model,
        "content": blocks,
        "stop_reason": None,
        "stop_sequence": None,
    }


def _stop(finish: Finish, notes: Sequence[Note]) -> Payload:
    """Return the reason why a reply ended, and the stop string if a note names it."""
    stop = next((note.detail for note in notes if note.rule == STOPPED), None) if finish == "stop" else None
    return {"stop_reason": REASONS[finish] if stop is None else "stop_sequence", "stop_sequence": stop}


def write_usage(usage: Usage) -> Payload:
    """Return the tokens as `usage`. Cached tokens do not count as input."""
    cached = min(usage.cached_tokens, usage.prompt_tokens)
    out: Payload = {
        "input_tokens": usage.prompt_tokens - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.completion_tokens,
    }
    if usage.reasoning_tokens:
        out["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return out | write_estimated(usage)


def write_error(error: Refused) -> Payload:
    """Return the body of an error."""
    kind = KINDS.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    body: Payload = {"type": kind, "message": _words(error)}
    if error.details:
        body["details"] = dict(error.details)
    return {"type": "error", "error": body, "request_id": error.request_id}


def _words(error: Refused) -> str:
    """Return the message of an error. For a prompt that is too long it starts as Anthropic's does, which clients react
    to."""
    if error.code != "context_length_exceeded":
        return str(error)
    numbers = f": {error.tokens} tokens > {error.limit} maximum" if error.tokens and error.limit else f": {error}"
    return f"prompt is too long{numbers}"


BORN = "1970-01-01T00:00:00Z"
"""The release time of a model, which is unknown."""


def write_models(names: Sequence[str]) -> Payload:
    """Return the body of `GET /v1/models`: all models on one page."""
    ends = {"first_id": names[0], "last_id": names[-1]} if names else {"first_id": None, "last_id": None}
    return {"data": [write_model(name) for name in names], "has_more": False, **ends}


def write_model(name: str) -> Payload:
    """Return the body of `GET /v1/models/{id}`."""
    return {"type": "model", "id": name, "display_name": name, "created_at": BORN, "lifecycle": "active"}


def write_counted(count: int) -> Payload:
    """Return the body of `POST /v1/messages/count_tokens`."""
    return {"input_tokens": count}


def _data(payload: Payload) -> bytes:
    return f"event: {payload['type']}\ndata: {dumped(payload)}\n\n".encode()
