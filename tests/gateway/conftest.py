"""A real gateway on loopback, in this process, in front of whatever models a test gives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvicorn

from toolspeak.gateway.app import Gateway
from toolspeak.gateway.config.settings import GatewaySettings, ModelSettings
from toolspeak.gateway.registry import Served
from toolspeak.gateway.serve.http_protocol import http_protocol
from toolspeak.gateway.serve.server import listen
from toolspeak.models.base import Model
from toolspeak.models.tool_calling import calling


class Running:
    """A gateway that answers at `url` (without /v1)."""

    def __init__(self, gateway: Gateway, url: str) -> None:
        self.gateway = gateway
        self.url = url


@asynccontextmanager
async def gateway(*, settings: dict[str, Any] | None = None, **models: Model | ModelSettings) -> AsyncIterator[Running]:
    """Serves `models`, each a Model (spoken for where it takes no tools) or ModelSettings, by its keyword's name."""
    described = {
        name: one if isinstance(one, ModelSettings) else ModelSettings(name, ("scripted:",))
        for name, one in models.items()
    }
    made = Gateway(GatewaySettings(described, port=0, **(settings or {})))
    for name, one in models.items():
        if not isinstance(one, ModelSettings):
            made.models.built[name] = made.models.served[name] = Served(described[name], calling(one))
    listening = listen(made.settings)
    config = uvicorn.Config(
        made,
        http=http_protocol(made.settings.limits),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(server._serve(sockets=[listening]))
    while not server.started:
        if task.done():
            task.result()
        await asyncio.sleep(0.005)
    if made.worker:
        made.worker.start()
    try:
        yield Running(made, f"http://127.0.0.1:{listening.getsockname()[1]}")
    finally:
        if made.worker:
            await asyncio.to_thread(made.worker.close)
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await task
        listening.close()
        made.auth.close()
        await made.hosted.aclose()
        if made.budgets:
            made.budgets.close()
        if made.batches:
            made.batches.close()


@pytest.fixture
def serve_models() -> Callable[..., Any]:
    """`async with serve_models(m=model) as running:`"""
    return gateway
