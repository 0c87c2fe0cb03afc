"""Tools natively where the server takes them, in the prompt where it does not."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from toolspeak.errors import BadRequest
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, TextDelta
from toolspeak.models.adaptive import Adaptive
from toolspeak.models.base import Model
from toolspeak.models.http import Http
from toolspeak.models.names import model
from toolspeak.types import Request, Tool

Serve = Callable[..., Any]

WEATHER = Tool("weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
ASK = Request([{"role": "user", "content": "Weather in Xiamen?"}], (WEATHER,))
REFUSED = web.json_response({"error": "registry.ollama.ai/library/m:latest does not support tools"}, status=400)
SPOKEN = '{"tool": "weather", "tool_input": {"city": "Xiamen"}, "message": null}'
NATIVE = {"function": {"name": "weather", "arguments": {"city": "Xiamen"}}}


def said(**message: Any) -> web.Response:
    return web.Response(text=json.dumps({"message": {"content": "", **message}, "done": True, "done_reason": "stop"}))


async def ask(made: Model, request: Request = ASK) -> list[Event]:
    return [event async for event in made.stream(request)]


def call(events: list[Event]) -> tuple[str, Any, str]:
    (start,) = [event for event in events if isinstance(event, CallStart)]
    (end,) = [event for event in events if isinstance(event, CallEnd)]
    arguments = "".join(event.json for event in events if isinstance(event, ArgumentsDelta))
    assert end.whole
    assert isinstance(events[-1], Finished)
    return start.name, json.loads(arguments), events[-1].finish


def test_a_server_that_takes_tools_gets_them(serve: Serve) -> None:
    async def main() -> None:
        async with serve(said(tool_calls=[NATIVE])) as server:
            made = Adaptive(Http(server.url, "m", api="ollama"))
            assert isinstance(made, Model)
            assert made.endpoint == f"{server.url}/api/chat"
            assert call(await ask(made)) == ("weather", {"city": "Xiamen"}, "tool_calls")
            assert server.bodies == [json.loads(made.body(ASK))]
            assert made.strategy.way == "native"

    asyncio.run(main())


def test_one_refusal_is_enough(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with serve(REFUSED, said(content=SPOKEN)) as server:
            monkeypatch.setenv("OLLAMA_HOST", server.url)
            made = model("ollama:m")
            assert "required" not in made.capabilities
            assert call(await ask(made)) == ("weather", {"city": "Xiamen"}, "tool_calls")
            assert call(await ask(made)) == ("weather", {"city": "Xiamen"}, "tool_calls")
            assert "required" in made.capabilities
            assert [bool(body.get("tools")) for body in server.bodies] == [True, False, False]
            assert "weather" in json.dumps(server.bodies[1]["messages"])

    asyncio.run(main())


def test_another_refusal_is_the_callers(serve: Serve) -> None:
    async def main() -> None:
        async with serve(web.json_response({"error": "bad temperature"}, status=400)) as server:
            made = Adaptive(Http(server.url, "m", api="ollama"))
            with pytest.raises(BadRequest, match="bad temperature"):
                await ask(made)
            assert made.strategy.way == "native"

    asyncio.run(main())


def test_what_is_asked_without_tools_is_asked_as_it_is(serve: Serve) -> None:
    async def main() -> None:
        async with serve(said(content="Hello")) as server:
            made = Adaptive(Http(server.url, "m", api="ollama"))
            assert await ask(made, Request(ASK.messages)) == [TextDelta("Hello"), Finished("stop")]
            assert server.bodies[0]["messages"] == ASK.messages

    asyncio.run(main())
