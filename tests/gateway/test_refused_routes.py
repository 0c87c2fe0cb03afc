"""What a client gets for a path, a method or a type of body that the gateway does not take: an error in its own format."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from toolspeak.models.scripted import Scripted

REFUSED = [
    ("POST", "/", 404, "not_found_error"),
    ("OPTIONS", "/", 404, "not_found_error"),
    ("PUT", "", 405, "invalid_request_error"),
    ("OPTIONS", "", 405, "invalid_request_error"),
    ("POST", "", 415, "invalid_request_error"),  # the body is no JSON by its type
]


@pytest.mark.parametrize(("method", "under", "status", "kind"), REFUSED)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat"])
def test_what_no_route_takes_is_refused_in_the_form_of_its_api(
    path: str, method: str, under: str, status: int, kind: str, serve_models: Callable[..., Any]
) -> None:
    async def go() -> tuple[int, Any, Any]:
        async with serve_models(m=Scripted("Hi", repeat=True)) as running, aiohttp.ClientSession() as session:
            async with session.request(method, running.url + path + under, data="Hi") as response:
                return response.status, response.headers, await response.json()

    received, headers, body = asyncio.run(go())
    if (path, status) == ("/api/chat", 415):
        status = 400  # Ollama's own client sends no type, so any is taken
    assert received == status
    assert ("allow" in headers) == (status == 405)
    if path == "/api/chat":
        assert set(body) == {"error"}
    elif path == "/v1/messages":
        assert (set(body), body["type"], body["error"]["type"]) == ({"type", "error", "request_id"}, "error", kind)
        assert set(body["error"]) == {"type", "message"}
    else:
        assert (set(body["error"]), body["error"]["type"]) == ({"message", "type", "param", "code"}, kind)
