"""The gateway as a process: a socket, a server, and how it starts and ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING

from ..errors import MissingExtra, Refused, UsageError
from .settings import Settings

if TYPE_CHECKING:
    import uvicorn

    from .app import Gateway

SIGNALS = (signal.SIGTERM, signal.SIGINT)
BACKLOG = 2048
LAST = 5.0
"""Seconds that a request gets to tell its client that the gateway ends, after the time to drain."""


def listen(settings: Settings) -> socket.socket:
    """A socket at the address of the settings. Raises UsageError where it cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
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
    """One process's part of it. `orphaned` is a descriptor that becomes readable when the supervisor is no more."""
    import uvicorn

    from .app import Gateway
    from .log import set_up
    from .observe import Observer

    lines = set_up(model.key for model in settings.models.values() if model.key)
    gateway = Gateway(settings, Observer(lines))
    asyncio.run(_serve(gateway, listening, orphaned), loop_factory=None) if False else None
    config = uvicorn.Config(
        gateway, log_config=None, access_log=False, lifespan="off", server_header=False, date_header=False,
        ws="none", backlog=BACKLOG, timeout_graceful_shutdown=1,
    )  # fmt: skip
