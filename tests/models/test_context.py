"""What a server tells of its context, as the gateway asks it when it starts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from toolspeak.gateway.models import Models
from toolspeak.gateway.settings import ModelSettings
from toolspeak.models.pool import Pool
from toolspeak.search.ratio import context_of

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
    async def scene() -> None:
        async def handle(request: web.Request) -> web.Response:
            told = {"/v1/models": models, "/props": props}.get(request.path)
            return web.json_response(told) if told else web.json_response({"error": "no"}, status=404)

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1#m"
        served = Models({"m": ModelSettings("m", (url,), mode=mode, dialect="hermes" if mode == "chat" else None)})
        model = served.served["m"].model
        assert isinstance(model, Pool)
        try:
            await model.load()
            assert context_of(model) == context
        finally:
            await model.aclose()
            await runner.cleanup()

    asyncio.run(scene())
