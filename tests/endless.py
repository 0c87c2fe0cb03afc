"""Replies without an end, by servers that send one thing over and over: for the readers (tests/api/test_endless_servers.py) and
for a gateway's memory (tests/gateway/memory.py).

Each is the API, what the server sends first, and what it sends then for each number. `REFUSED` are those of which no event
comes: the reader must raise. Of `ENDED` come events, and the limits of a reply end them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import chain, count
from typing import Any

from aiohttp import web

from listening import listening

BIG = "x" * 1_000
Endless = tuple[str, bytes, Callable[[int], bytes]]
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}


def sent(*payloads: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads)


def _delta(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


def _call(index: int, name: str | None = None, arguments: str = "", **more: Any) -> dict[str, Any]:
    return _delta(tool_calls=[{"index": index, "function": {"name": name, "arguments": arguments}, **more}])


def _noted(detail: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "toolspeak": {"notes": [{"rule": "r", "detail": detail}]}}]}


def _block(index: int) -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"t{index}", "name": "f", "input": {}}
    return {"type": "content_block_start", "index": index, "content_block": block}


def _block_delta(kind: str, **delta: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **delta}}


def _item(index: int) -> dict[str, Any]:
    item = {"type": "function_call", "id": f"i{index}", "call_id": f"c{index}", "name": "f"}
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def _piece(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "item_id": "i", "output_index": 0, "delta": BIG, **more}


def _likely(alternatives: int) -> list[dict[str, Any]]:
    return [{"token": "x", "logprob": -1.0, "top_logprobs": [{"token": "y", "logprob": -2.0}] * alternatives}]


def _same(*payloads: Any) -> Callable[[int], bytes]:
    once = sent(*payloads)
    return lambda _: once


def _each(payload: Callable[[int], dict[str, Any]]) -> Callable[[int], bytes]:
    return lambda number: sent(payload(number))


OPEN = (_call(0, "f", '{"a": "'), _call(1, "f", '{"a": "'))
REFUSED: dict[str, Endless] = {
    "arguments of a call that waits for another": ("chat", sent(*OPEN), _same(_call(1, arguments=BIG))),
    "arguments of a call without a name": ("chat", b"", _same(_call(0, arguments='{"a": "' + BIG))),
    "a name": ("chat", b"", _each(lambda i: _call(0, f"{i}"))),
    "calls that do not begin": ("chat", b"", _each(lambda i: _call(i, "f"))),
    "arguments behind the end": ("chat", sent(_call(0, "f", '{"a": 1}'), OPEN[1]), _same(_call(0, arguments=BIG))),
    "notes": ("chat", b"", _same(_noted(BIG))),
    "blocks that do not begin": ("messages", b"", _each(_block)),
    "items that do not begin": ("responses", b"", _each(_item)),
    "arguments without their item": ("responses", b"", _same(_piece("function_call_arguments"))),
    "ids of items": (
        "responses",
        b"",
        _each(lambda i: {"type": "response.x.added", "item_id": f"{i}", "output_index": i}),
    ),
    "empty lines": ("chat", sent(_delta(role="assistant")), lambda _: b"\n" * 1_000),
    "lines of an event": ("chat", b"", lambda _: b"data:\n" * 200),
    "comments": ("chat", sent(_delta(role="assistant")), lambda _: b": keep-alive\n\n" * 50),
    "empty choices": ("chat", b"", _same({"choices": []}, _delta())),
    "pings": ("messages", b"", _same({"type": "ping"})),
    "unknown events": ("responses", b"", _same({"type": "response.x.y", "x": BIG})),
    "a text in a body": ("chat", b'{"choices": [{"message": {"content": "', lambda _: BIG.encode()),
    "a text in the body of a message": ("messages", b'{"type": "message", "content": [{"type": "text", "text": "', lambda _: BIG.encode()),
    "a text in the body of a response": ("responses", b'{"output": [{"type": "message", "content": [{"text": "', lambda _: BIG.encode()),
    "values in a body": ("chat", b'{"choices": [', lambda _: b"{},[]," * 200),
    "blanks before a reply": ("chat", b"", lambda _: b" " * 1_000),
}  # fmt: skip
ENDED: dict[str, Endless] = {
    "text": ("chat", b"", _same(_delta(content=BIG))),
    "a thought": ("chat", b"", _same(_delta(reasoning_content=BIG))),
    "text of a message": ("messages", b"", _same(_block_delta("text_delta", text=BIG))),
    "a thought of a message": ("messages", b"", _same(_block_delta("thinking_delta", thinking=BIG))),
    "text of a response": ("responses", b"", _same(_piece("output_text"))),
    "a thought of a response": ("responses", b"", _same(_piece("reasoning_text"))),
    "arguments": ("chat", sent(_call(0, "f", '{"a": "')), _same(_call(0, arguments=BIG))),
    "calls": ("chat", b"", _each(lambda i: _call(i, "f", "{}", id=f"c{i}"))),
    "ids of calls": ("chat", b"", _each(lambda i: _call(i, "f", "{}", id=f"{i}{BIG}"))),
    "likelihoods": (
        "chat", b"", _same({"choices": [{"index": 0, "delta": {"content": "x"}, "logprobs": {"content": _likely(20)}}]})
    ),
    "likelihoods without text": (
        "chat", b"", _same({"choices": [{"index": 0, "delta": {}, "logprobs": {"content": _likely(20)}}]})
    ),
    "what is beside likelihoods": (
        "chat", b"", _same({"choices": [{"index": 0, "delta": {}, "logprobs": {"content": [{"token": "x", "y": [[BIG]]}]}}]})
    ),
    "likelihoods of a response": ("responses", b"", _same(_piece("output_text", logprobs=_likely(20)))),
}  # fmt: skip
ENDLESS = REFUSED | ENDED


def pieces(kind: str) -> Iterator[bytes]:
    """What the server sends, without an end."""
    _, first, forever = ENDLESS[kind]
    return chain((first,), map(forever, count()))


@asynccontextmanager
async def endless_server() -> Any:
    """The address of a server that sends the kind that a request's text names, until the client closes the connection; to
    any other text it answers."""

    async def reply(request: web.Request) -> web.StreamResponse:
        body = (await request.read()).decode()
        kind = max((kind for kind in ENDLESS if f'"{kind}"' in body), key=len, default="")
        if not kind:
            return web.json_response({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        with suppress(ConnectionError):
            await response.write(ENDLESS[kind][1])
            for number in count(0, 64):
                await response.write(b"".join(ENDLESS[kind][2](number + i) for i in range(64)))
        return response

    async with listening(reply, *PATHS.values(), shutdown_timeout=0) as url:
        yield url
