"""The gateway as a process: a socket, a server, and how it starts and ends."""

from __future__ import annotations

import socket

from ..errors import MissingExtra, UsageError
from .app import Gateway
from .settings import Settings


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
    made.listen(2048)
    return made


def serve(settings: Settings, listening: socket.socket) -> None:
    """Answers requests until the process is told to stop."""
    try:
        import uvicorn

        from .protocol import http_protocol
    except ImportError as error:
        raise MissingExtra("the gateway needs a server: pip install 'toolspeak[server]'") from error

    gateway = Gateway(settings)
    config = uvicorn.Config(
        gateway, http=http_protocol(settings.limits), log_config=None, access_log=False, lifespan="off", server_header=False, date_header=False,
        ws="none", timeout_graceful_shutdown=int(settings.limits.drain),
    )  # fmt: skip
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        gateway.door.close()
