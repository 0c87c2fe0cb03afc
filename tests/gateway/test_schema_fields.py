"""A schema that no reply can be held to is told by the field that the client wrote it in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from toolspeak.models.scripted import Scripted

BAD = {"type": "strin"}
SAID: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": False}
FORM = {"type": "json_schema", "schema": BAD}
BODIES = {
    "/v1/chat/completions": (
        {**SAID, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": BAD}}},
        "response_format",
    ),
    "/v1/responses": ({"model": "m", "input": "Hi", "text": {"format": {**FORM, "name": "x"}}}, "text.format"),
    "/v1/messages": ({**SAID, "max_tokens": 9, "output_config": {"format": FORM}}, "output_config.format"),
    "/v1/messages?beta=true": ({**SAID, "max_tokens": 9, "output_format": FORM}, "output_format"),
    "/api/chat": ({**SAID, "format": BAD}, "format"),
    "/api/generate": ({"model": "m", "prompt": "Hi", "stream": False, "format": BAD}, "format"),
}


@pytest.mark.parametrize("path", BODIES)
def test_a_wrong_schema_is_told_by_its_field(path: str, serve_models: Callable[..., Any]) -> None:
    body, field = BODIES[path]

    async def go() -> None:
        async with serve_models(m=Scripted(["Hi"])) as running, aiohttp.ClientSession() as session:
            async with session.post(running.url + path, json=body) as reply:
                told = await reply.json()
                assert reply.status == 400
                error = told["error"]
                message = error if isinstance(error, str) else error["message"]
                assert message.startswith(f"{field}: the schema means nothing"), message

    asyncio.run(go())


def test_two_tools_of_one_name_are_refused_with_their_place(serve_models: Callable[..., Any]) -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("f", "g", "f")]

    async def go() -> None:
        async with serve_models(m=Scripted(["Hi"])) as running, aiohttp.ClientSession() as session:
            async with session.post(running.url + "/v1/chat/completions", json={**SAID, "tools": tools}) as reply:
                error = (await reply.json())["error"]
                assert (reply.status, error["param"]) == (400, "tools.2")
                assert error["message"] == "tools.2: two tools are named 'f': give each tool a name of its own"
            async with session.post(running.url + "/v1/chat/completions", json={**SAID, "messages": []}) as reply:
                assert "at least 1 item," in (await reply.json())["error"]["message"]

    asyncio.run(go())
