"""Fields of a request that are wrong: schemas, tools, and names that are nearly those of fields."""

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
                assert message.startswith(f"{field}: the schema is invalid, at /type: 'strin' is no type"), message
                assert message.endswith("Did you mean 'string'?"), message

    asyncio.run(go())


def test_a_schema_that_a_tool_could_have_is_repaired_in_the_same_way(serve_models: Callable[..., Any]) -> None:
    schema = {"type": "dict", "properties": {"age": "int"}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    model = Scripted(['{"age": "many"}', '{"age": 3}'])

    async def go() -> None:
        async with serve_models(m=model) as running, aiohttp.ClientSession() as session:
            body = {**SAID, "response_format": form}
            async with session.post(running.url + "/v1/chat/completions", json=body) as reply:
                told = await reply.json()
                assert reply.status == 200, told
                assert told["choices"][0]["message"]["content"] == '{"age": 3}'

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


@pytest.mark.parametrize(
    ("path", "fields", "hint"),
    [
        ("/v1/chat/completions", {"max_token": 9, "tool_choise": "auto"},
         "max_token: did you mean max_tokens? tool_choise: did you mean tool_choice?"),
        ("/v1/chat/completions", {"temprature": 1, "x": 1}, "temprature: did you mean temperature?"),
        ("/v1/chat/completions", {"store": True, "service_tier": "auto"}, None),
        ("/v1/responses", {"max_output_token": 9, "user": "me"}, "max_output_token: did you mean max_output_tokens?"),
        ("/v1/messages", {"max_tokens": 9, "stop_sequence": ["x"]}, "stop_sequence: did you mean stop_sequences?"),
        ("/api/chat", {"options": {"temprature": 1, "num_ctx": 9}},
         "options.temprature: did you mean options.temperature?"),
    ],
)  # fmt: skip
def test_an_ignored_field_that_is_nearly_a_known_one_gets_a_hint(
    path: str, fields: dict[str, Any], hint: str | None, serve_models: Callable[..., Any]
) -> None:
    async def go() -> None:
        async with serve_models(m=Scripted(["Hi"])) as running, aiohttp.ClientSession() as session:
            body = {"model": "m", "input": "Hi"} if "responses" in path else SAID
            async with session.post(running.url + path, json={**body, **fields}) as reply:
                assert reply.status == 200
                assert reply.headers.get("x-toolspeak-hint") == hint

    asyncio.run(go())
