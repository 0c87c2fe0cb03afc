"""A gateway in the place of another. How a process is told to change them is in `test_process`."""

from __future__ import annotations

import asyncio
from typing import Any

from toolspeak.gateway.app import Gateway
from toolspeak.gateway.config.settings import GatewaySettings, ModelSettings
from toolspeak.gateway.serve.reload import Reloadable


def probing() -> list[asyncio.Task[Any]]:
    """What goes on probing a server that is down."""
    return [task for task in asyncio.all_tasks() if "_keep_trying" in repr(task.get_coro())]


def test_a_server_that_is_down_is_probed_by_the_gateway_in_use_alone() -> None:
    def settings() -> GatewaySettings:
        return GatewaySettings({"m": ModelSettings("m", ("http://127.0.0.1:9/v1#m",))})

    async def main() -> None:
        app = Reloadable(Gateway(settings()), settings)
        app.begin()
        for _ in range(2):
            before = app.gateway
            while before.readiness.loading or not probing():
                await asyncio.sleep(0.01)
            app.reload()
            while app.gateways == {before} or len(app.gateways) > 1:
                await asyncio.sleep(0.01)
            assert app.gateway is not before
            async with asyncio.timeout(600):
                while len(probing()) != 1:
                    await asyncio.sleep(0.01)
        app.gateway.models.stop()
        await app.end()

    asyncio.run(main())
