"""Replaces the running gateway by one with newer settings, without losing a request.

The server passes each request to the gateway that is current when it arrives (`Reloadable`). The new gateway takes over
at once, because its keys and limits must hold at once: a server that hangs delays no reload. Its models are then loaded,
and until one is, the old gateway's model of that name answers. The old gateway finishes its requests, including its queue,
and is then closed; meanwhile the next reload may happen. Requests of keys that no longer exist end at once. Rates in
memory, queues and circuit breakers start afresh. What a process has only once stays as it was at the start: its address,
port and workers, and the limits of HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import Refused, ToolspeakError
from ..access.host_check import check_openness
from ..config.settings import GatewaySettings
from ..telemetry.audit_database import use_audit_file

if TYPE_CHECKING:
    from ..app import Gateway
    from ..http_exchange import Receive, Scope, Send

log = logging.getLogger(__name__)

ReadSettings = Callable[[], GatewaySettings]
FIXED = ("host", "port", "workers")
"""Settings that need a restart."""
TICK = 1.0
"""Seconds between two updates of the metrics of how full the gateway is."""


class Reloadable:
    """An ASGI application that is one gateway after another. `read` returns the settings of the next one."""

    def __init__(self, gateway: Gateway, read: ReadSettings | None = None) -> None:
        self.gateway = gateway
        self.gateways = {gateway}
        """The current gateway, and earlier ones with requests in progress."""
        self._read = read
        self._beside: list[asyncio.Task[None]] = []
        self._turn = asyncio.Lock()
        self._queued = False
        self._reloads: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.gateway(scope, receive, send)

    def begin(self) -> None:
        """Load the models, write the audit and process batches. The gateway is ready once the models are loaded."""
        use_audit_file(self.gateway.settings.audit)
        self.gateway.readiness.loading = True
        self._beside = _beside(self.gateway)
        if self.gateway.worker:
            self.gateway.worker.start()

    def reload(self) -> None:
        """Read the settings again and apply them, in the background. A reload that has not begun yet will read the newest."""
        if self._queued:
            return
        self._queued = True
        task = asyncio.get_running_loop().create_task(self._reload())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def end(self) -> None:
        """End the background tasks."""
        for task in (*self._beside, *self._reloads):
            task.cancel()
        for gateway in self.gateways:
            if gateway.worker:  # closed while this loop still runs, because it answers the lines
                await asyncio.to_thread(gateway.worker.close)

    async def _reload(self) -> None:
        async with self._turn:
            self._queued = False
            newer = await self._newer()
            if newer is None:
                return
            self.gateways.add(newer)
            older, self.gateway = self.gateway, newer
            newer.models.answer_by(older.models)
            newer.readiness.loading = older.readiness.loading  # a reload makes no gateway unready
            replaced = use_audit_file(newer.settings.audit)
            for task in self._beside:
                task.cancel()
            self._beside = _beside(newer)
            log.info("the configuration was reloaded: it serves %s", ", ".join(newer.models.served))
            self._end_revoked()
        for handler in replaced:
            await asyncio.to_thread(handler.close)
        await _finish(older)
        self.gateways.discard(older)
        if newer.worker and newer is self.gateway:
            newer.worker.start()

    def _end_revoked(self) -> None:
        """End the requests of keys that no longer exist, in the queue or running, unless nobody needs a key now. A line of a
        batch belongs to the name of a key, which may have another secret now."""
        keys = self.gateway.settings.keys
        if not keys:
            return
        valid = {key.digest for key in keys} | {key.name for key in keys}
        for exchange in [exchange for gateway in self.gateways for exchange in gateway.open]:
            key = exchange.key
            if key and (key.name if exchange.background else key.digest) not in valid:
                exchange.stop(Refused("this API key is no longer valid", status=401, code="invalid_api_key"))

    async def _newer(self) -> Gateway | None:
        """Return a gateway with the current settings; None, with a log line, if they are invalid."""
        from ..app import Gateway

        if self._read is None:
            log.error("there is no configuration file to reload")
            return None
        try:
            settings = self._fitted(await asyncio.to_thread(self._read))
            return await asyncio.to_thread(Gateway, settings, self.gateway.observer)
        except (ToolspeakError, OSError) as error:
            log.error("the new configuration was not applied, and the old one stays in use: %s", error)
            return None

    def _fitted(self, settings: GatewaySettings) -> GatewaySettings:
        """Return the settings with this process's address. Raises UsageError if other machines could use it without a
        key."""
        now = {name: getattr(self.gateway.settings, name) for name in FIXED}
        if changed := [name for name in FIXED if getattr(settings, name) != now[name]]:
            log.warning("a change of %s takes effect after a restart", " and ".join(changed))
        fitted = replace(settings, **now)
        check_openness(fitted)
        return fitted


def _beside(gateway: Gateway) -> list[asyncio.Task[None]]:
    """Start the background tasks of a gateway."""
    loop = asyncio.get_running_loop()
    return [loop.create_task(gateway.readiness.load(gateway.models)), loop.create_task(_look(gateway))]


async def _look(gateway: Gateway) -> None:
    """Update the metrics of how full this process is: another worker may be the one that is scraped."""
    while True:
        gateway.look()
        await asyncio.sleep(TICK)


async def _finish(gateway: Gateway) -> None:
    """Wait until a replaced gateway has finished its requests, and close it."""
    if gateway.worker:
        gateway.worker.drain()
    await gateway.idle()
    if gateway.worker:
        await asyncio.to_thread(gateway.worker.close)
    await asyncio.to_thread(close, gateway)


def close(gateway: Gateway) -> None:
    """Close a gateway's resources."""
    gateway.models.stop()
    gateway.auth.close()
    gateway.hosted.close()
    if gateway.budgets:
        gateway.budgets.close()
    if gateway.store:
        gateway.store.close()
    if gateway.batches:
        gateway.batches.close()
