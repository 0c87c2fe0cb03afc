"""Real HTTP servers on loopback whose answers a test writes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


@asynccontextmanager
async def listening(
    handle: Callable[[web.Request], Awaitable[web.StreamResponse]], *paths: str, **options: Any
) -> AsyncGenerator[str]:
    """The address of a server that answers every request, or those for `paths`, with this function. `options` are those
    of aiohttp's runner."""
    app = web.Application(client_max_size=2**26)
    for path in paths or ("/{path:.*}",):
        app.router.add_route("*", path, handle)
    runner = web.AppRunner(app, access_log=None, **{"shutdown_timeout": 0.1, **options})
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
