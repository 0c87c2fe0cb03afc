"""The servers behind an attacked gateway that answer with as much as they may, or more: an MCP server, and one for embeddings.

The tool `act` of the MCP server answers as its argument `kind` says, and embeddings are vectors of 1,024 numbers.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from aiohttp import web

from listening import listening

MCP, EMBEDDINGS = "/mcp", "/v1/embeddings"
TOOL = {"name": "act", "inputSchema": {"type": "object", "properties": {"kind": {"type": "string"}}}}
METHODS: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "web", "version": "1"},
    },
    "tools/list": {"tools": [TOOL]},
    "ping": {},
}
LENGTH = 1_024
"""Numbers of a vector."""
BOMB = 1_000_000_000
"""Bytes of which a megabyte of gzip is made."""


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image() -> dict[str, Any]:
    return {"type": "image", "data": "", "mimeType": "image/png"}


ANSWERS: dict[str, tuple[int, Any]] = {
    "values": (95_000, lambda n: {"content": [], "structuredContent": {"x": [1] * n}}),
    "names": (95_000, lambda n: {"content": [], "structuredContent": {f"k{i}": i for i in range(n)}}),
    "rows": (15_000, lambda n: {"content": [], "structuredContent": {"x": [{"a": i, "b": "y", "c": []} for i in range(n)]}}),
    "blocks": (4_900, lambda n: {"content": [_text(f"{i}") for i in range(n)]}),
    "images": (4_900, lambda n: {"content": [_image()] * n}),
    "a long text": (14_000_000, lambda n: {"content": [_text("x " * (n // 2))]}),
    "too many values": (700_000, lambda n: {"content": [], "structuredContent": {"x": [1] * n}}),
    "too many blocks": (30_000, lambda n: {"content": [_text("x")] * n}),
}  # fmt: skip
"""What a call may be answered with: how many of something, and the result with so many."""
WORD, GZIP = "a word", "gzip"


@cache
def answer(kind: str, scale: float) -> str:
    count, result = ANSWERS.get(kind, (1, lambda n: {"content": [_text("x" * n)]}))
    return json.dumps(result(max(1, int(count * scale))))


@cache
def bomb(scale: float) -> bytes:
    """The gzip of a result that is a text of very many equal characters."""
    begin, end = b'{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "', b'"}]}}'
    return gzip.compress(begin + b"x" * int(BOMB * scale) + end)


@cache
def vectors(count: int) -> bytes:
    """A reply of so many vectors. Each number is another one, as a model's are."""
    numbers = random.Random(0)
    rows = [[numbers.random() for _ in range(LENGTH)] for _ in range(count)]
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    return json.dumps({"object": "list", "data": data, "usage": {"prompt_tokens": 5}}).encode()


def _reply(message: dict[str, Any], scale: float) -> web.Response:
    """The answer to a request of an MCP client."""
    method, key = message["method"], json.dumps(message["id"])
    if method in METHODS:
        result = json.dumps(METHODS[method])
    elif method == "tools/call" and (kind := message["params"]["arguments"]["kind"]) != GZIP:
        result = answer(kind, scale)
    elif method == "tools/call":
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        return web.Response(body=bomb(scale), headers=headers)
    else:
        error = {"code": -32601, "message": "no such method"}
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error})
    text = f'{{"jsonrpc": "2.0", "id": {key}, "result": {result}}}'
    return web.Response(text=text, content_type="application/json", headers={"Mcp-Session-Id": "1"})


@asynccontextmanager
async def hostile_servers(scale: float) -> AsyncGenerator[str]:
    """The address of both servers; `scale` is how large the answers are."""

    async def reply(request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405 if request.method == "GET" else 200)
        message = await request.json()
        if request.path == EMBEDDINGS:
            return web.Response(body=vectors(len(message["input"])), content_type="application/json")
        if "id" not in message or "method" not in message:
            return web.Response(status=202)
        return _reply(message, scale)

    async with listening(reply, MCP, EMBEDDINGS, shutdown_timeout=0) as url:
        yield url
