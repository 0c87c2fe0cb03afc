"""What a server tells of its context, as the gateway asks it when it starts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.registry import Models
from toolspeak.models.context import context_of
from toolspeak.models.pool import Pool

VLLM = {"object": "list", "data": [{"id": "other", "max_model_len": 9}, {"id": "m", "max_model_len": 32_768}]}
PLAIN = {"object": "list", "data": [{"id": "m"}]}
LLAMA = {"default_generation_settings": {"n_ctx": 8192}}
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

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        root = f"http://127.0.0.1:{runner.addresses[0][1]}"
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
            await runner.cleanup()

    return asyncio.run(scene())
