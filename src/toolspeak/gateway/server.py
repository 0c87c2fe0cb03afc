"""The gateway as a process: a socket, a server, and how it starts and ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, TypeVar

from ..errors import MissingExtra, UsageError
from .settings import Settings

if TYPE_CHECKING:
    import uvicorn

    from .app import Gateway
    from .observe import Observer

log = logging.getLogger(__name__)

T = TypeVar("T")

BACKLOG = 2048
LAST = 5.0
"""Seconds that requests get, after the time to drain, to tell their clients that the gateway ends."""
TICK = 1.0
"""Seconds between two looks at how full the gateway is."""


def listen(settings: Settings) -> socket.socket:
    """A socket at the address of the settings. Raises UsageError where it cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named because asyncio sends at once (TCP_NODELAY) only on sockets that name it.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((settings.host, settings.port))
    except OSError as error:
        made.close()
        raise UsageError(f"cannot listen at {settings.host}:{settings.port}: {error.strerror or error}") from None
    made.listen(BACKLOG)
    return made


def serve(settings: Settings, listening: socket.socket) -> None:
    """Answers requests until the process is told to stop, with as many workers as the settings say."""
    try:
        import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise MissingExtra("the gateway needs a server: pip install 'toolspeak[server]'") from error

    if settings.workers <= 1:
        work(settings, listening)
        return
    from .workers import supervise

    supervise(settings.workers, lambda orphaned: work(settings, listening, orphaned))


def work(settings: Settings, listening: socket.socket, orphaned: int | None = None) -> None:
    """What one process does of it. `orphaned` becomes readable when the supervisor of several is no more."""
    from .app import Gateway
    from .log import set_up
    from .observe import Observer

    lines = set_up(model.key for model in settings.models.values() if model.key)
    gateway = Gateway(settings, Observer(lines))
    config = _config(gateway)
    gc.freeze()  # what is loaded stays: looking through it for garbage took a tenth of the time of a thousand streams
    gc.set_threshold(10_000, 10, 10)
    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(run(gateway, config, listening, orphaned))
    finally:
        _close(gateway)


def serve_while(
    settings: Settings, listening: socket.socket, observer: Observer, work: Callable[[Gateway], Awaitable[T]]
) -> T:
    """Answers requests in this process while `work` goes on, and gives what that gives. Signals are for `work`."""
    from .app import Gateway

    gateway = Gateway(settings, observer)
    config = _config(gateway)

    async def both() -> T:
        ended = asyncio.Event()
        gateway.readiness.loading = True
        serving = asyncio.create_task(_serve_until(ended, gateway, config, listening))
        try:
            return await work(gateway)
        finally:
            ended.set()
            await serving

    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            return runner.run(both())
    finally:
        _close(gateway)


def _config(gateway: Gateway) -> uvicorn.Config:
    import uvicorn

    from .protocol import http_protocol

    return uvicorn.Config(
        gateway, http=http_protocol(gateway.settings.limits), log_config=None, access_log=False, lifespan="off", server_header=False, date_header=False, proxy_headers=False,
        ws="none", backlog=BACKLOG, timeout_graceful_shutdown=1,
    )  # fmt: skip


def _close(gateway: Gateway) -> None:
    gateway.door.close()
    if gateway.store:
        gateway.store.close()


async def run(gateway: Gateway, config: uvicorn.Config, listening: socket.socket, orphaned: int | None = None) -> None:
    """Serves until a signal, then until nothing is under way, or the time to drain is over."""
    from .workers import SIGNALS

    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    end = _ending(gateway, told)
    for number in SIGNALS if orphaned is None else SIGNALS[:1]:
        loop.add_signal_handler(number, end, number)
    if orphaned is not None:
        # Ctrl-C in a terminal reaches every process: the workers hear of it from their supervisor alone.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        loop.add_reader(orphaned, lambda: (loop.remove_reader(orphaned), end(signal.SIGTERM)))
    await _serve_until(told, gateway, config, listening)


async def _serve_until(
    ended: asyncio.Event, gateway: Gateway, config: uvicorn.Config, listening: socket.socket
) -> None:
    """Serves until the event is set, then until nothing is under way, or the time to drain is over."""
    import uvicorn

    class Server(uvicorn.Server):
        """Uvicorn's server, which ends when the gateway has drained and leaves signals alone."""

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

        async def main_loop(self) -> None:
            await self.on_tick(0)
            await ended.wait()
            await drain(gateway, gateway.settings.limits.drain)

    gateway.readiness.loading = True
    loop = asyncio.get_running_loop()
    beside = [loop.create_task(gateway.readiness.load(gateway.models)), loop.create_task(_look(gateway))]
    try:
        await Server(config).serve(sockets=[listening])
    finally:
        for task in beside:
            task.cancel()


async def drain(gateway: Gateway, seconds: float) -> None:
    """Returns when nothing is under way, after `seconds` at most: what is open then is told that the gateway ends."""
    from .admission import ending

    gateway.drain()
    if await _empty(gateway, seconds):
        return
    log.warning("%d requests are still open after %g s, and are ended", len(gateway.open), seconds)
    for exchange in tuple(gateway.open):
        exchange.stop(ending())
    await _empty(gateway, LAST)


async def _empty(gateway: Gateway, seconds: float) -> bool:
    """Whether nothing is open, once it is so or the seconds are over."""
    clock = asyncio.get_running_loop().time
    due = clock() + seconds
    while gateway.open and clock() < due:
        await asyncio.sleep(0.02)
    return not gateway.open


def _ending(gateway: Gateway, told: asyncio.Event) -> Callable[[int], None]:
    """What a signal does: the first begins to drain, a second ends the process at once."""

    def end(number: int) -> None:
        if told.is_set():
            os._exit(128 + number)
        gateway.drain()
        told.set()

    return end


async def _look(gateway: Gateway) -> None:
    """Keeps the metrics of how full this process is fresh: another worker may be the one that is asked."""
    while True:
        gateway.look()
        await asyncio.sleep(TICK)
