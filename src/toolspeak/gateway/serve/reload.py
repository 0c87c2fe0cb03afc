"""Puts a gateway made of newer settings in the place of the one that serves, without a request lost.

The server passes each request to the gateway that is in use when it comes (`Reloadable`). The newer one loads its models first,
then takes over; the older one ends what it began, also what waits in its queue, and is closed then. Rates that are kept in
memory, queues and circuit breakers begin anew with it. What the process has once, its address, its port, its workers and how
it reads HTTP, stays as it was when it started.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import ToolspeakError
from ..access.host_check import check_openness
from ..config.settings import Settings

if TYPE_CHECKING:
    from ..app import Gateway
    from ..context import Receive, Scope, Send

log = logging.getLogger(__name__)

ReadSettings = Callable[[], Settings]
FIXED = ("host", "port", "workers")
"""Settings that need another process."""
TICK = 1.0
"""Seconds between two looks at how full the gateway is."""


class Reloadable:
    """An ASGI application that is one gateway after another. `read` gives the settings of the next one."""

    def __init__(self, gateway: Gateway, read: ReadSettings | None = None) -> None:
        self.gateway = gateway
        self.gateways = {gateway}
        """The one in use, and those before it that still have something under way."""
        self._read = read
        self._beside: list[asyncio.Task[None]] = []
        self._turn = asyncio.Lock()
        self._reloads: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.gateway(scope, receive, send)

    def begin(self) -> None:
        """Loads the models, and works on batches. The gateway is ready when the models are loaded."""
        self._beside = _beside(self.gateway)
        if self.gateway.worker:
            self.gateway.worker.start()

    def reload(self) -> None:
        """Reads the settings again and puts them to use, in the background."""
        task = asyncio.get_running_loop().create_task(self._reload())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def end(self) -> None:
        """Ends what goes on beside the requests."""
        for task in (*self._beside, *self._reloads):
            task.cancel()
        for gateway in self.gateways:
            if gateway.worker:  # while this loop runs: it answers the lines
                await asyncio.to_thread(gateway.worker.close)

    async def _reload(self) -> None:
        async with self._turn:
            newer = await self._newer()
            if newer is None:
                return
            self.gateways.add(newer)
            beside = _beside(newer)
            await newer.readiness.loaded.wait()
            older, self.gateway = self.gateway, newer
            for task in self._beside:
                task.cancel()
            self._beside = beside
            log.warning("the configuration was read again: it serves %s", ", ".join(newer.models.served))
            await _finish(older)
            self.gateways.discard(older)
            if newer.worker:
                newer.worker.start()

    async def _newer(self) -> Gateway | None:
        """A gateway of the settings as they are now; None, told in the log, where they cannot be used."""
        from ..app import Gateway

        if self._read is None:
            log.error("there is no configuration file to read again")
            return None
        try:
            return Gateway(self._fitted(await asyncio.to_thread(self._read)), self.gateway.observer)
        except (ToolspeakError, OSError) as error:
            log.error("the configuration was not put to use, and the one before stays: %s", error)
            return None

    def _fitted(self, settings: Settings) -> Settings:
        """The settings at the address that this process has. Raises UsageError where others could reach it without a key."""
        now = {name: getattr(self.gateway.settings, name) for name in FIXED}
        if changed := [name for name in FIXED if getattr(settings, name) != now[name]]:
            log.warning("a change of %s is used after a restart", " and ".join(changed))
        fitted = replace(settings, **now)
        check_openness(fitted)
        return fitted


def _beside(gateway: Gateway) -> list[asyncio.Task[None]]:
    """What goes on beside the requests of a gateway."""
    gateway.readiness.loading = True
    loop = asyncio.get_running_loop()
    return [loop.create_task(gateway.readiness.load(gateway.models)), loop.create_task(_look(gateway))]


async def _look(gateway: Gateway) -> None:
    """Keeps the metrics of how full this process is fresh: another worker may be the one that is asked."""
    while True:
        gateway.look()
        await asyncio.sleep(TICK)


async def _finish(gateway: Gateway) -> None:
    """Returns when a gateway that gets no more requests has ended those that it had, and closes it."""
    if gateway.worker:
        gateway.worker.drain()
    await gateway.idle()
    if gateway.worker:
        await asyncio.to_thread(gateway.worker.close)
    await asyncio.to_thread(close, gateway)


def close(gateway: Gateway) -> None:
    """Lets go of what a gateway holds."""
    gateway.models.stop()
    gateway.door.close()
    gateway.hosted.close()
    if gateway.budgets:
        gateway.budgets.close()
    if gateway.store:
        gateway.store.close()
    if gateway.batches:
        gateway.batches.close()
