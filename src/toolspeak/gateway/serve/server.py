"""The gateway as a process: a socket, a server, its start and its end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Generator
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar, cast

from ...errors import MissingExtra, ToolspeakError, UsageError
from ...schema.phrases import number_of
from ..config.settings import GatewaySettings
from ..telemetry.audit_database import close_audit
from .reload import ReadSettings, Reloadable, close

if TYPE_CHECKING:
    import uvicorn

    from ..app import Gateway
    from ..telemetry.observer import Observer

log = logging.getLogger(__name__)

T = TypeVar("T")

LIBRARIES = ("uvicorn", "httptools", "prometheus_client", "python_multipart")
"""The modules of the extra `server`, but for uvloop, which some platforms lack."""
BACKLOG = 2048
SWITCH = 0.001
"""Seconds that a thread with slow work may go on while the event loop waits for the interpreter; five times as many is usual."""
LAST = 5.0
"""Seconds after the time to drain in which open requests send an error to their clients."""


def check_installed() -> None:
    """Raises MissingExtra unless the extra `server` is installed as a whole; other extras bring parts of it."""
    if missing := [name for name in LIBRARIES if find_spec(name) is None]:
        raise MissingExtra(f"the gateway needs {' and '.join(missing)}: pip install 'toolspeak[server]'")


def listen(settings: GatewaySettings) -> socket.socket:
    """Return a socket at the address of the settings. Raises UsageError if that fails."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named because asyncio sets TCP_NODELAY only on sockets that name it.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        why = f"cannot listen at {settings.host}:{settings.port}: {error.strerror or error}"
        raise UsageError(f"{why}. Choose another port with --port, where 0 is any free one") from None
    listener.listen(BACKLOG)
    return listener


def serve(settings: GatewaySettings, listening: socket.socket, read: ReadSettings | None = None) -> None:
    """Answer requests until the process is told to stop, with the number of workers in the settings.

    On SIGHUP, `read` returns newer settings, which are applied.
    """
    check_installed()
    if settings.workers <= 1:
        work(settings, listening, read)
        return
    from ..telemetry.log_lines import set_up
    from .supervisor import supervise

    newest = settings
    set_up(_secrets(settings))

    def hang_up() -> None:
        nonlocal newest
        with contextlib.suppress(ToolspeakError, OSError):  # the workers log what is wrong
            newest = read() if read else settings

    supervise(settings.workers, lambda orphaned: work(newest, listening, read, orphaned), hang_up)


def work(
    settings: GatewaySettings, listening: socket.socket, read: ReadSettings | None = None, orphaned: int | None = None
) -> None:
    """Run one worker process. `orphaned` becomes readable when the supervisor has died."""
    from ..app import Gateway
    from ..limits.memory_trimming import set_up_malloc
    from ..telemetry.log_lines import set_up
    from ..telemetry.observer import Observer

    set_up_malloc()
    lines = set_up(_secrets(settings))

    def again() -> GatewaySettings:
        newer = cast("ReadSettings", read)()
        lines.hide(_secrets(newer))
        return newer

    app = Reloadable(Gateway(settings, Observer(lines)), read and again)
    config = _config(app)
    gc.freeze()  # Loaded code is permanent: searching it for garbage took a tenth of the time of a thousand streams.
    gc.set_threshold(10_000, 10, 10)
    sys.setswitchinterval(SWITCH)
    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(run(app, config, listening, orphaned))
    finally:
        for gateway in app.gateways:
            close(gateway)
        close_audit()


def _secrets(settings: GatewaySettings) -> list[str]:
    """Return the secrets that no log line may show."""
    return [model.key for model in settings.models.values() if model.key]


def serve_while(
    settings: GatewaySettings, listening: socket.socket, observer: Observer, work: Callable[[Gateway], Awaitable[T]]
) -> T:
    """Answer requests in this process while `work` runs, and return its result. Signals are left to `work`."""
    from ..app import Gateway

    gateway = Gateway(settings, observer)
    app = Reloadable(gateway)
    config = _config(app)

    async def both() -> T:
        ended = asyncio.Event()
        serving = asyncio.create_task(_serve_until(ended, app, config, listening))
        try:
            return await work(gateway)
        finally:
            ended.set()
            await serving

    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            return runner.run(both())
    finally:
        close(gateway)
        close_audit()


def _config(app: Reloadable) -> uvicorn.Config:
    import uvicorn

    from .http_protocol import http_protocol

    return uvicorn.Config(
        app, http=http_protocol(app.gateway.settings.limits), log_config=None, access_log=False, lifespan="off", server_header=False, date_header=False, proxy_headers=False,
        ws="none", backlog=BACKLOG, timeout_graceful_shutdown=1,
    )  # fmt: skip


async def run(app: Reloadable, config: uvicorn.Config, listening: socket.socket, orphaned: int | None = None) -> None:
    """Serve until a signal, then until no request is open or the time to drain is over."""
    from .supervisor import HANG_UP, SIGNALS

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    end = _ending(app, stopping)
    for number in SIGNALS if orphaned is None else SIGNALS[:1]:
        loop.add_signal_handler(number, end, number)
    if orphaned is not None:
        # Ctrl-C in a terminal reaches every process: workers ignore it, because the supervisor tells them to stop.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        loop.add_reader(orphaned, lambda: (loop.remove_reader(orphaned), end(signal.SIGTERM)))
        loop.add_signal_handler(HANG_UP, app.reload)
    else:
        loop.add_signal_handler(HANG_UP, _hanging_up(app.reload, end))
    await _serve_until(stopping, app, config, listening)


def _hanging_up(reload: Callable[[], None], end: Callable[[int], None]) -> Callable[[], None]:
    """Return the handler of SIGHUP: reload, or end if the terminal of the start was closed."""
    from .supervisor import HANG_UP, lost_terminal

    gone = lost_terminal()
    return lambda: end(HANG_UP) if gone() else reload()


async def _serve_until(ended: asyncio.Event, app: Reloadable, config: uvicorn.Config, listening: socket.socket) -> None:
    """Serve until the event is set, then until no request is open or the time to drain is over."""
    import uvicorn

    class Server(uvicorn.Server):
        """Uvicorn's server, which ends after the gateway has drained, and leaves signals alone."""

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

        async def main_loop(self) -> None:
            await self.on_tick(0)
            await ended.wait()
            seconds = app.gateway.settings.limits.drain
            await asyncio.gather(*(drain(gateway, seconds) for gateway in tuple(app.gateways)))

    app.begin()
    try:
        await Server(config).serve(sockets=[listening])
    finally:
        await app.end()


async def drain(gateway: Gateway, seconds: float) -> None:
    """Wait until no request is open, for `seconds` at most, then abort the rest with an error."""
    from ..limits.admission import ending

    gateway.drain()
    if await _empty(gateway, seconds):
        return
    log.warning("%d requests are still open after %g s and are aborted", len(gateway.open), seconds)
    for exchange in tuple(gateway.open):
        exchange.stop(ending())
    await _empty(gateway, LAST)


async def _empty(gateway: Gateway, seconds: float) -> bool:
    """Wait for the last request, for `seconds` at most. Return whether none is open."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(gateway.idle(), seconds)
    return not gateway.open


def _ending(app: Reloadable, stopping: asyncio.Event) -> Callable[[int], None]:
    """Return the handler of a signal: the first one starts to drain, the second one ends the process at once."""

    def end(number: int) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        for gateway in app.gateways:
            gateway.drain()
        stopping.set()
        if count := sum(len(gateway.open) for gateway in app.gateways):
            requests, seconds = number_of(count, "request"), app.gateway.settings.limits.drain
            log.info("finishing %s, for up to %g s; a second Ctrl-C or signal ends at once", requests, seconds)

    return end
