"""Writes events, and whole replies, as raw completions.

The chunks are those of the chat API, with `text` in place of a message, and log probabilities in parallel lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...events import Event, Finished, Logprobs, Noted, TextDelta
from ...types import Finish, Note, Reply, Usage
from ...wire.reading.collect import add_usage
from ..incoming import IncomingRequest, Stamp
from ..json_stream import Payload, dumped, record
from ..openai_chat import write_usage
from ..openai_chat.writer import ChunkWriter, data_line, write_notes
from ..token_logprobs import LOGPROB

REASONS: dict[Finish, str] = {"limit": "length", "tool_calls": "stop"}
"""`finish_reason` for our finish reasons that have another name."""


def write_logprobs(tokens: Sequence[Any], offset: int) -> Payload | None:
    """Return log probabilities in this API's format; None if there are none. `offset` is the position of the first
    token."""
    if not tokens:
        return None
    rows = [record(token) for token in tokens]
    texts = [str(row.get("token", "")) for row in rows]
    offsets: list[int] = []
    for text in texts:
        offsets.append(offset)
        offset += len(text)
    tops = [{str(top.get("token", "")): top.get("logprob") for top in row.get("top_logprobs") or ()} for row in rows]
    return {
        "tokens": texts,
        "token_logprobs": [row.get("logprob") for row in rows],
        "top_logprobs": tops if any(tops) else None,
        "text_offset": offsets,
    }


class ReplyWriter(ChunkWriter):
    """Writes events as a stream: `begin`, `feed` each event of a choice, then `close`, or `error` after a failure."""

    def __init__(self, incoming: IncomingRequest, stamp: Stamp) -> None:
        super().__init__(incoming, _head(stamp))
        opening = dumped(self._head)[:-1]
        self._before = [f'data: {opening},"choices":[{{"index":{i},"text":' for i in range(incoming.n)]
        self._after = ',"logprobs":null,"finish_reason":null}]}\n\n'
        self._lengths = [0] * incoming.n
        self._logprobs: list[list[dict[str, Any]]] = [[] for _ in range(incoming.n)]
        self._notes: list[list[Note]] = [[] for _ in range(incoming.n)]

    def begin(self) -> bytes:
        return b"".join(self._text(i, text) for i in range(self._incoming.n) if (text := echoed(self._incoming, i)))

    def due(self, event: Event | None, choice: int = 0) -> int:
        return LOGPROB * len(self._logprobs[choice])

    def feed(self, event: Event, choice: int = 0) -> bytes:
        match event:
            case TextDelta(text):
                return self._text(choice, text)
            case Logprobs(tokens):
                self._logprobs[choice] += tokens
            case Noted(note):
                self._notes[choice].append(note)
            case Finished():
                return self._finished(choice, event)
            case _:  # the API has no place for thoughts and calls, and a raw prompt yields none
                pass
        return b""

    def _text(self, choice: int, text: str) -> bytes:
        at = self._lengths[choice]
        self._lengths[choice] += len(text)
        if tokens := self._logprobs[choice]:
            size = self.due(None, choice)
            self._logprobs[choice] = []
            row = _row(choice, text, write_logprobs(tokens, at), None)
            return data_line({**self._head, "choices": [row]}, size)
        return (self._before[choice] + dumped(text) + self._after).encode()

    def _finished(self, choice: int, event: Finished) -> bytes:
        self._usage = add_usage(self._usage, event.usage)
        logprobs = write_logprobs(self._logprobs[choice], self._lengths[choice])
        row = _row(choice, "", logprobs, REASONS.get(event.finish, event.finish))
        if self._notes[choice]:
            row["toolspeak"] = write_notes(self._notes[choice])
        return data_line({**self._head, "choices": [row]}, self.due(None, choice))


def write_reply(replies: Sequence[Reply], incoming: IncomingRequest, stamp: Stamp) -> Payload:
    """Return one body with all replies, one choice each."""
    usage = Usage()
    choices: list[Payload] = []
    for i, reply in enumerate(replies):
        usage = add_usage(usage, reply.usage)
        before = echoed(incoming, i)
        finish = REASONS.get(reply.finish, reply.finish)
        row = _row(i, before + reply.text, write_logprobs(reply.logprobs, len(before)), finish)
        if reply.notes:
            row["toolspeak"] = write_notes(reply.notes)
        choices.append(row)
    return {**_head(stamp), "choices": choices, "usage": write_usage(usage)}


def echoed(incoming: IncomingRequest, choice: int) -> str:
    """Return the part of its prompt that a reply repeats."""
    return (incoming.requests[choice].prompt or "") if incoming.echo else ""


def _head(stamp: Stamp) -> Payload:
    return {"id": f"cmpl-{stamp.id}", "object": "text_completion", "created": stamp.created, "model": stamp.model}


def _row(index: int, text: str, logprobs: Payload | None, finish: str | None) -> Payload:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish}
