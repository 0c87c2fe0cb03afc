"""Converts replies of Empower's models to OpenAI's format, whole or streamed.

A reply is `<f>` with calls as a JSON list, or `<c>` with a text, either after a `<thinking>` block. The thinking stays
in `content` with its tags, as in Empower's library. Completions are those of OpenAI's older API, `{"id", "created", "model",
"choices": [{"text", "finish_reason"}], "usage"}`, which llama.cpp returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...dialects import get
from ...events import ArgumentsDelta, CallStart, Event, Finished, TextDelta
from ...wire.decode import Decoder
from ...wire.reading.collect import collect

_THOUGHT_ENDS = "</thinking>"


def separate_thinking(text: str) -> tuple[str | None, str]:
    """Return the thinking with its tags (None if there is none), and the rest of the text."""
    before, tag, after = text.partition(_THOUGHT_ENDS)
    return (before + tag, after) if tag else (None, text)


def chat_completion(completion: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole completion as a chat completion. A text with neither `<f>` nor `<c>` becomes the content.

    Incomplete calls are dropped, and `finish_reason` is then `length`.
    """
    choice = completion["choices"][0]
    decoder = _decoder()
    reply = collect([*decoder.feed(choice["text"]), *decoder.close()])
    calls = [call for call in reply.calls if call.whole]
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or (None if calls else "")}
    if calls:
        message["tool_calls"] = [
            {
                "id": _call_id(call.name, completion["id"], index),
                "type": "function",
                "function": {"name": call.name, "arguments": call.json},
            }
            for index, call in enumerate(calls)
        ]
    finish = reply.finish if reply.finish != "stop" else choice.get("finish_reason")
    return {
        **_head(completion, "chat.completion"),
        "choices": [
            {"index": 0, "message": message, "logprobs": choice.get("logprobs"), "finish_reason": finish},
        ],
        "usage": completion.get("usage"),
    }


def chat_chunks(chunks: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a completion as chunks of a chat completion: a role, then text or calls, then the end.

    A call's name comes whole, its arguments in pieces, both with the call's index.
    """
    decoder = _decoder()
    head: dict[str, Any] = {}
    finish: str | None = None
    deltas = _Deltas()
    for chunk in chunks:
        if not head:
            head = _head(chunk, "chat.completion.chunk")
            deltas.completion = chunk["id"]
            yield _chunk(head, {"role": "assistant"})
        choice = chunk["choices"][0]
        finish = choice.get("finish_reason") or finish
        for event in decoder.feed(choice["text"]):
            yield from (_chunk(head, delta) for delta in deltas.of(event))
    if not head:
        return
    for event in decoder.close():
        yield from (_chunk(head, delta) for delta in deltas.of(event))
        if isinstance(event, Finished) and event.finish != "stop":
            finish = event.finish
    yield _chunk(head, {}, finish)


class _Deltas:
    """Converts events to deltas of a message, one call after another."""

    def __init__(self) -> None:
        self.completion = ""
        self.index = -1

    def of(self, event: Event) -> Iterator[dict[str, Any]]:
        match event:
            case TextDelta(text):
                yield {"content": text}
            case CallStart(name):
                self.index += 1
                call = {"id": _call_id(name, self.completion, self.index), "type": "function"}
                yield self._call(**call, function={"name": name, "arguments": ""})
            case ArgumentsDelta(json):
                yield self._call(function={"arguments": json})
            case _:
                pass

    def _call(self, **fields: Any) -> dict[str, Any]:
        return {"tool_calls": [{"index": self.index, **fields}]}


def _decoder() -> Decoder:
    return Decoder(get("empower"), None, thoughts="keep")


def _call_id(name: str, completion: str, index: int) -> str:
    return f"call__0_{name}_{completion}_{index}"


def _head(completion: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {
        "id": f"chat{completion['id']}",
        "object": kind,
        "created": completion.get("created"),
        "model": completion.get("model"),
    }


def _chunk(head: Mapping[str, Any], delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}
