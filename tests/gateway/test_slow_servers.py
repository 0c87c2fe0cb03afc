"""A gateway in front of a server that takes its time: it waits until it is known whether the server's model gets tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from listening import listening
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.endpoints import health
from toolspeak.gateway.registry import servers_of

WEATHER = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
TOOLS = [{"type": "function", "function": WEATHER}]
MESSAGES = [{"role": "user", "content": "Weather in Xiamen?"}]
CALL = '{"tool": "weather", "tool_input": {"city": "Xiamen"}, "message": null}'


@pytest.fixture(autouse=True)
def _no_wait_for_the_whole_probe(  # pyright: ignore[reportUnusedFunction]
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(tmp_path))
    monkeypatch.setattr(health, "PROBING", 0.01)


class SlowServer:
    """Takes tools and drops them. It answers nothing before `begun`, and what is not needed to see that not before `rest`."""

    def __init__(self) -> None:
        self.begun, self.rest, self.asked = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.bodies: list[dict[str, Any]] = []

    async def answer(self, request: web.Request) -> web.Response:
        if request.path == "/v1/models":
            return web.json_response({"data": [{"id": "m"}]})
        if request.path != "/v1/chat/completions":
            return web.Response(status=404)
        body = await request.json()
        self.asked.set()
        await self.begun.wait()
        if body.get("tool_choice") not in (None, "auto") or len(body.get("tools", ())) > 1 or "response_format" in body:
            await self.rest.wait()
        self.bodies.append(body)
        text = CALL if all(word in json.dumps(body["messages"]) for word in ("Xiamen", "weather")) else "No."
        words = sum(len(message["content"].split()) for message in body["messages"])
        rows: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]},
            {"choices": [], "usage": {"prompt_tokens": words, "completion_tokens": 1}},
        ]
        return web.Response(
            text="".join(f"data: {json.dumps(row)}\n\n" for row in rows) + "data: [DONE]\n\n",
            content_type="text/event-stream",
        )


@asynccontextmanager
async def in_front_of(serve_models: Callable[..., Any], server: SlowServer) -> AsyncGenerator[Any]:
    """A gateway in front of the server, which loads its models."""
    async with listening(server.answer) as url, serve_models(m=ModelSettings("m", (f"{url}/v1#m",))) as running:
        running.gateway.readiness.loading = True
        loading = asyncio.create_task(running.gateway.readiness.load(running.gateway.models))
        try:
            yield running
        finally:
            server.begun.set()
            server.rest.set()
            await loading


async def called(url: str) -> list[str]:
    """The tools that are called in the reply to a request."""
    body = {"model": "m", "messages": MESSAGES, "tools": TOOLS}
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/chat/completions", json=body) as response:
        message = (await response.json())["choices"][0]["message"]
        return [call["function"]["name"] for call in message.get("tool_calls") or ()]


async def status(url: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/readyz") as response:
        return response.status


def test_a_gateway_is_ready_when_it_is_known_how_its_model_is_asked(serve_models: Callable[..., Any]) -> None:
    async def main() -> None:
        server = SlowServer()
        async with in_front_of(serve_models, server) as running:
            early = asyncio.create_task(called(running.url))
            await server.asked.wait()
            await asyncio.sleep(0.1)  # longer than what it waits for the whole probe
            assert await status(running.url) == 503
            assert server.bodies == []
            server.begun.set()
            await running.gateway.readiness.loaded.wait()
            assert await status(running.url) == 200
            assert await early == await called(running.url) == ["weather"]
            users = [body for body in server.bodies if "Xiamen" in json.dumps(body["messages"])]
            assert ["tools" in body for body in users] == [False, False]
            assert not server.rest.is_set()  # the rest of the probe goes on

    asyncio.run(asyncio.wait_for(main(), 600))


def test_readiness_waits_only_so_long_and_requests_with_tools_go_on_waiting(
    serve_models: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "DECIDING", 0.01)

    async def main() -> None:
        server = SlowServer()
        async with in_front_of(serve_models, server) as running:
            await running.gateway.readiness.loaded.wait()
            assert await status(running.url) == 200
            early = asyncio.create_task(called(running.url))
            await server.asked.wait()
            (upstream,) = servers_of(running.gateway.models.served["m"].model)
            assert not upstream.decided.is_set()
            server.begun.set()
            assert await early == ["weather"]

    asyncio.run(asyncio.wait_for(main(), 600))


def test_a_server_that_is_down_is_waited_for_no_longer_than_its_error(serve_models: Callable[..., Any]) -> None:
    async def main() -> None:
        async with serve_models(m=ModelSettings("m", ("http://127.0.0.1:9/v1#m",))) as running:
            await running.gateway.readiness.load(running.gateway.models)
            (upstream,) = servers_of(running.gateway.models.served["m"].model)
            assert upstream.decided.is_set()
            upstream.stop()

    asyncio.run(asyncio.wait_for(main(), 600))
