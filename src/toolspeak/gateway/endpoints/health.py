"""Liveness and readiness: whether the process runs, and whether it should get requests."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ...models.embedded.local import Local
from ...models.pool import Pool
from ...models.wrapper import load
from ...schema.suggestions import listed
from ..http_exchange import HttpExchange
from ..registry import servers_of
from ..telemetry.metrics import CONTENT_TYPE, key_figures, only_of

if TYPE_CHECKING:
    from ...models.fallback import Adaptive
    from ..app import Gateway
    from ..config.settings import Key
    from ..limits.budgets import DayUsage
    from ..registry import Models

log = logging.getLogger(__name__)

PROBES = 32
"""Servers that are probed at once: thousands would keep the event loop busy for seconds."""
PROBING = 5.0
"""Seconds after which readiness does not wait for the whole probe of a slow server."""
DECIDING = 60.0
"""Seconds after that in which it waits until the probe shows how the server's model is asked. Requests wait for that too."""


class Readiness:
    """Ready once everything that is slow to load has been loaded, until the process drains, as long as any model can be
    asked."""

    def __init__(self) -> None:
        self.loading = False
        self.loaded = asyncio.Event()
        """Set once everything that is slow to load was loaded or has failed."""
        self.draining = False
        self.failed: dict[str, str] = {}
        """Models that could not be loaded, with the class of the error."""

    def status(self, models: Models, visible: Callable[[str], bool]) -> tuple[int, dict[str, Any]]:
        """Return the status code, and details for clients that may see them: the visible models that cannot be asked."""
        detail: dict[str, Any] = {}
        if self.draining:
            detail["draining"] = True
        if self.loading:
            detail["loading"] = True
        down = sorted({*models.broken(), *self.failed})
        ready = not any((detail, 0 < len(down) == len(models.served)))
        if visible_down := [name for name in down if visible(name)]:
            detail["models"] = visible_down
        return (200, {"status": "ready", **detail}) if ready else (503, {"status": "not ready", **detail})

    async def load(self, models: Models) -> None:
        """Load what the first request would otherwise wait for: embedded models and libraries."""
        servers = {name: servers_of(one.model) for name, one in models.built.items()}
        for server in itertools.chain.from_iterable(servers.values()):
            server.expect_load()
        loads: list[asyncio.Task[None]] = []
        try:
            await asyncio.to_thread(import_libraries)
            probing, here = asyncio.Semaphore(PROBES), nullcontext()
            built = [(name, one.model, in_process(one.model)) for name, one in models.built.items()]
            loads += [asyncio.create_task(self._load(models, name, here if own else probing)) for name, _, own in built]
            await asyncio.gather(*(task for task, (*_, own) in zip(loads, built, strict=True) if own))
            await asyncio.wait(loads, timeout=PROBING)
            await _decided(servers)
            for name in models.built:
                models.loaded(name)
            self._has_loaded()
            await asyncio.gather(*loads)
        finally:
            self._has_loaded()
            for task in loads:  # of a gateway that is replaced
                task.cancel()

    def _has_loaded(self) -> None:
        self.loading = False
        self.loaded.set()

    async def _load(self, models: Models, name: str, turn: AbstractAsyncContextManager[None]) -> None:
        try:
            async with turn:
                await load(models.built[name].model)
        except Exception as error:  # noqa: BLE001 - reported by readiness, and to clients that use the model
            self.failed[name] = type(error).__name__
            log.error("the model %s cannot be loaded: %s", name, error)
        models.loaded(name)


async def _decided(servers: Mapping[str, Sequence[Adaptive]]) -> None:
    """Wait until the probes show how each server's model is asked, for a limited time. The log names the slow ones."""
    slow = [name for name, several in servers.items() if not all(server.decided.is_set() for server in several)]
    if not slow:
        return
    log.warning("waiting up to %g s for the servers of these models to answer their probe: %s", DECIDING, listed(slow))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DECIDING):
            for server in itertools.chain.from_iterable(servers.values()):
                await server.decided.wait()


async def live(_: Gateway, exchange: HttpExchange, __: str) -> None:
    """Answer that the process runs."""
    await exchange.reply_json(200, {"status": "alive"})


async def ready(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answer whether to send requests here."""
    details = gateway.auth.knows(exchange)
    status, body = gateway.readiness.status(gateway.models, exchange.visible)
    if status == 503:
        exchange.headers.append((b"retry-after", b"1"))
    if not details:
        body = {"status": body["status"]}
    await exchange.reply_json(status, body)


async def metrics(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answer with the metrics in Prometheus's format."""
    gateway.look()
    text = await asyncio.to_thread(lambda: only_of(gateway.observer.metrics.text(), exchange.visible))
    await exchange.reply(200, text + await _budgets(gateway, exchange), CONTENT_TYPE)


async def _budgets(gateway: Gateway, exchange: HttpExchange) -> bytes:
    """Return what keys have spent today: the client's own, or all keys if it may see them."""
    if gateway.budgets is None or exchange.key is None:
        return b""
    keys = gateway.settings.keys if exchange.key.metrics == "all" else (exchange.key,)
    spent = await gateway.budgets.spent([key for key in keys if key.budget])
    return await asyncio.to_thread(_budget_metrics, keys, spent)


def _budget_metrics(keys: Iterable[Key], spent: Mapping[str, DayUsage]) -> bytes:
    rows = [
        (key.name, unit, getattr(spent[key.name], unit), getattr(key.budget, unit))
        for key in keys
        for unit in ("tokens", "money")
        if key.name in spent and getattr(key.budget, unit) is not None
    ]
    return key_figures(rows) if rows else b""


def in_process(model: Any) -> bool:
    """Whether a model, or a model inside it, runs in this process."""
    parts = [one.model for one in model.upstreams] if isinstance(model, Pool) else [getattr(model, "model", None)]
    return isinstance(model, Local) or any(in_process(part) for part in parts if part and not isinstance(part, str))


def import_libraries() -> None:
    """Import what the first request would otherwise import on the event loop, blocking all others."""
    import aiohttp  # noqa: F401  # pyright: ignore[reportUnusedImport]
    import jsonschema_rs  # noqa: F401  # pyright: ignore[reportUnusedImport]
