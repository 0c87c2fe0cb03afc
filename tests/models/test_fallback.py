"""Tools natively where the server takes them, in the prompt where it does not."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from toolspeak.errors import BadRequest
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, TextDelta
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.registry import build
from toolspeak.models.base import Model
from toolspeak.models.fallback import Adaptive, look
from toolspeak.models.http import Http
from toolspeak.models.resolve import model
from toolspeak.models.wrapper import load
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


HERMES = '<tool_call>\n{"name": "weather", "arguments": {"city": "Xiamen"}}\n</tool_call>'
MODELS = {"data": [{"id": "m", "meta": {"n_params": 3_000_000_000}}]}


async def llama_cpp(request: web.Request) -> web.StreamResponse:
    """A llama.cpp that lays tools out, and whose model calls in the dialect of hermes."""
    match request.path:
        case "/props":
            return web.json_response(
                {"default_generation_settings": {"n_ctx": 4096}, "chat_template": "{{ messages }}"}
            )
        case "/apply-template":
            return web.json_response({"prompt": (await request.read()).decode()})
        case "/v1/models":
            return web.json_response(MODELS)
        case "/v1/chat/completions":
            delta = {"choices": [{"index": 0, "delta": {"content": HERMES}, "finish_reason": "stop"}]}
            return web.Response(text=f"data: {json.dumps(delta)}\n\ndata: [DONE]\n\n", content_type="text/event-stream")
        case _:
            return web.Response(status=404)


DOORS: dict[str, Callable[..., Model]] = {
    "a name": lambda url: model(f"{url}/v1#m", dialect="hermes"),
    "an object": lambda url: model(Http(f"{url}/v1", "m"), dialect="hermes"),
    "the gateway": lambda url: build(ModelSettings("m", (f"{url}/v1#m",), dialect="hermes")).model,
    "the gateway's mode chat": lambda url: build(ModelSettings("m", (f"{url}/v1#m",), "chat", dialect="hermes")).model,
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_dialect_says_how_a_server_is_asked_and_a_look_what_its_engine_can_do(
    serve: Serve, door: str, choice: str
) -> None:
    async def main() -> None:
        async with serve(llama_cpp) as server:
            chosen = DOORS[door](server.url)
            await load(chosen)
            assert call(await ask(chosen, replace(ASK, choice=choice))) == ("weather", {"city": "Xiamen"}, "tool_calls")
            assert {"grammar", "free"} <= chosen.capabilities
            chats = [body for path, body in zip(server.paths, server.bodies, strict=True) if "chat" in path]
            assert [("tools" in body, "<tool_call>" in body["grammar"]) for body in chats] == [(False, True)]
            assert server.paths.count("GET /props") <= 2  # the gateway asks for the context, too
            await ask(chosen)
            assert server.paths.count("POST /apply-template") == 1

    asyncio.run(main())


def test_a_small_model_with_a_dialect_is_not_asked_for_likelihoods(serve: Serve) -> None:
    """They take a second each on a small machine, and nothing would use them."""

    async def small(request: web.Request) -> web.StreamResponse:
        if request.path == "/v1/models":
            return web.json_response({"data": [{"id": "m", "meta": {"n_params": 135_000_000}}]})
        if request.path == "/apply-template":
            return web.json_response({"prompt": "no tools"})
        return await llama_cpp(request)

    async def main() -> None:
        async with serve(small) as server:
            chosen = model(f"{server.url}/v1#m", dialect="hermes")
            assert call(await ask(chosen)) == ("weather", {"city": "Xiamen"}, "tool_calls")
            assert {"grammar", "free"} <= chosen.capabilities
            asked = ["GET /props", "POST /apply-template", "GET /v1/models", "POST /v1/chat/completions"]
            assert server.paths == asked
            await look(model(f"{server.url}/v1#m"))  # nothing says how this one is asked
            assert "POST /tokenize" in server.paths

    asyncio.run(main())


def test_without_a_look_a_dialect_alone_counts(serve: Serve) -> None:
    async def main() -> None:
        async with serve(llama_cpp) as server:
            chosen = model(f"{server.url}/v1#m", dialect="hermes", look=False)
            assert call(await ask(chosen)) == ("weather", {"city": "Xiamen"}, "tool_calls")
            assert server.paths == ["POST /v1/chat/completions"]
            assert "grammar" not in server.bodies[0]

    asyncio.run(main())
