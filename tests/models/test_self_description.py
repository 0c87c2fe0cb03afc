"""The context size that a server reports: the gateway asks when it starts, the library when a request may be too large."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

import toolspeak as ts
from listening import listening
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.registry import Models
from toolspeak.models.context import context_of
from toolspeak.models.pool import Pool

VLLM = {"object": "list", "data": [{"id": "other", "max_model_len": 9}, {"id": "m", "max_model_len": 32_768}]}
PLAIN = {"object": "list", "data": [{"id": "m"}]}
LLAMA = {"default_generation_settings": {"n_ctx": 8192}}
HELLO = {"choices": [{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}
WRONG = {"object": "list", "data": [{"id": "m", "max_model_len": True}]}


@pytest.mark.parametrize("mode", ["chat", "native"])
@pytest.mark.parametrize(
    ("models", "props", "context"),
    [(VLLM, None, 32_768), (PLAIN, LLAMA, 8192), (PLAIN, None, None), (WRONG, {"default_generation_settings": 3}, None)],
)  # fmt: skip
def test_the_context_is_asked(mode: Any, models: Any, props: Any, context: int | None) -> None:
    answers = {"/v1/models": models, "/props": props}
    assert asked(answers, "#m", mode=mode, dialect="hermes" if mode == "chat" else None) == context


OLLAMA = {"models": [{"name": "other:latest", "context_length": 9}, {"name": "m:latest", "context_length": 16_384}]}
STUDIO = {"data": [{"id": "m", "max_context_length": 131_072, "loaded_context_length": 4096}]}


@pytest.mark.parametrize(
    ("path", "told", "context"),
    [
        ("/api/ps", OLLAMA, 16_384),
        ("/api/ps", {"models": []}, None),
        ("/api/ps", {"models": [{"name": "other", "context_length": 9}]}, None),
        ("/api/v0/models", STUDIO, 4096),
        ("/api/v0/models", {"data": [{"id": "m", "max_context_length": 131_072}]}, None),
    ],
)
def test_the_context_of_a_model_that_is_loaded(
    path: str, told: Any, context: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it could have at most says nothing of what it has."""
    assert asked({"/v1/models": PLAIN, path: told}, "#m", mode="native") == context
    if "ps" in path:
        assert asked({path: told}, "ollama:m", monkeypatch, mode="native") == context


def asked(answers: dict[str, Any], name: str, patch: pytest.MonkeyPatch | None = None, **settings: Any) -> int | None:
    """The context that a gateway knows of a model behind a server with such answers."""

    async def scene() -> int | None:
        async def handle(request: web.Request) -> web.Response:
            told = answers.get(request.path)
            return web.json_response(told) if told else web.json_response({"error": "no"}, status=404)

        async with listening(handle) as root:
            if patch:
                patch.setenv("OLLAMA_HOST", root)
            served = Models({"m": ModelSettings("m", (name if patch else f"{root}/v1{name}",), **settings)})
            model = served.served["m"].model
            assert isinstance(model, Pool)
            try:
                await model.load()
                return context_of(model)
            finally:
                await model.aclose()

    return asyncio.run(scene())


LONG = "word " * 1_500


def test_a_server_that_was_probed_is_asked_too() -> None:
    """A probe asks llama.cpp and the list of models alone; Ollama and LM Studio tell it elsewhere."""
    assert asked({"/v1/models": PLAIN, "/api/v0/models": STUDIO, "/v1/chat/completions": HELLO}, "#m") == 4096


@pytest.mark.parametrize(
    ("path", "told"), [("/v1/models", VLLM), ("/props", LLAMA), ("/api/ps", OLLAMA), ("/api/v0/models", STUDIO)]
)
def test_the_library_asks_as_the_gateway_does(path: str, told: Any) -> None:
    """Definitions may take half of the context; without one, 64 tools would be shown."""
    tools: list[Any] = [ts.Tool(f"tool_{at}", f"{at} {LONG}", {"type": "object", "properties": {}}) for at in range(20)]
    paths, bodies = library({"/v1/models": PLAIN, path: told}, tools=tools)
    (body,) = bodies
    assert len(body["tools"]) < 20
    assert paths.index(path) < paths.index("/v1/chat/completions")


def test_a_long_result_becomes_pages_of_a_context_that_its_server_tells() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages: list[Any] = [
        {"role": "user", "content": "Read it"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": LONG * 4},
    ]
    read: ts.Tool[..., Any] = ts.Tool("read", "Reads it.", {"type": "object", "properties": {}})
    _, (body,) = library({"/v1/models": PLAIN, "/api/v0/models": STUDIO}, messages, tools=[read])
    assert [tool["function"]["name"] for tool in body["tools"]] == ["read", "read_more"]
    assert len(body["messages"][-1]["content"]) < len(LONG)


@pytest.mark.parametrize(("count", "look", "asks"), [(2, True, 0), (20, True, 1), (20, False, 0)])
def test_the_library_asks_once_and_only_for_what_may_be_too_large(count: int, look: bool, asks: int) -> None:
    tools: list[Any] = [
        ts.Tool(f"tool_{at}", f"{at} {LONG}", {"type": "object", "properties": {}}) for at in range(count)
    ]
    paths, bodies = library({"/v1/models": PLAIN}, "Hi", "Hi", look=look, tools=tools)
    assert len(bodies) == 2
    assert paths.count("/api/ps") == asks


@pytest.mark.parametrize("told", [PLAIN, VLLM])
def test_the_context_that_the_user_gives_counts_before_what_the_server_reports(told: Any) -> None:
    tools: list[Any] = [ts.Tool(f"tool_{at}", f"{at} {LONG}", {"type": "object", "properties": {}}) for at in range(20)]
    few, many = (library({"/v1/models": told}, tools=tools, context=tokens) for tokens in (4_096, 1_000_000))
    assert len(few[1][0]["tools"]) < 4 < 20 == len(many[1][0]["tools"])
    assert "/api/ps" not in few[0] + many[0]


def library(answers: dict[str, Any], *inputs: Any, tools: list[Any], **options: Any) -> tuple[list[str], list[Any]]:
    """The paths that a server with such answers is asked at by `run`, and the bodies of the requests for a reply."""
    paths: list[str] = []
    bodies: list[Any] = []

    async def scene() -> None:
        async def handle(request: web.Request) -> web.Response:
            paths.append(request.path)
            if request.path == "/v1/chat/completions":
                bodies.append(await request.json())
                return web.json_response(HELLO)
            told = answers.get(request.path)
            return web.json_response(told) if told else web.json_response({"error": "no"}, status=404)

        async with listening(handle) as root:
            model = ts.model(f"{root}/v1#m", **options)
            for each in inputs or ("Hi",):
                reply = await ts.arun(each, tools=tools, model=model)
                assert reply.text == "Hello"

    asyncio.run(scene())
    return paths, bodies
