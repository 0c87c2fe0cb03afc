"""HTTP sessions, one per event loop, so that connections are reused, and closed when their loop ends.

All models share them, so connections are reused even if a model is created anew for each request. An async generator
holds each session: `asyncio.run`, and every careful runner, closes open generators before the loop ends, which is the
only moment at which a session can be closed automatically.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

Key = tuple[asyncio.AbstractEventLoop, bool, bool]

_open: dict[Key, tuple[aiohttp.ClientSession, AsyncGenerator[aiohttp.ClientSession]]] = {}


async def get_session(*, trust_env: bool = False, public: bool = False) -> aiohttp.ClientSession:
    """Return the running loop's session; `trust_env` for one that uses the environment's proxies.

    `public` is for one that connects only to public addresses, whatever a name resolves to: any other address raises a
    ClientConnectorError with a PrivateAddress.
    """
    for key in list(_open):  # a copy, because other threads may change the dict
        if key[0].is_closed():
            _open.pop(key, None)
    key = (asyncio.get_running_loop(), trust_env, public)
    if key not in _open:
        keeper = _keep(key)
        _open[key] = (await anext(keeper), keeper)
    return _open[key][0]


async def close_sessions() -> None:
    """Close the running loop's sessions; the next `get_session` opens a new one."""
    loop = asyncio.get_running_loop()
    for _, keeper in [session for key, session in list(_open.items()) if key[0] is loop]:
        await keeper.aclose()


async def _keep(key: Key) -> AsyncGenerator[aiohttp.ClientSession]:
    import aiohttp

    from .bounded_connection import bounded
    from .public_only import public_socket

    connector = aiohttp.TCPConnector(
        limit=0,  # the caller limits the number of connections
        socket_factory=public_socket if key[2] else None,
    )
    session = aiohttp.ClientSession(
        connector=bounded(connector),
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "toolspeak"},
        trust_env=key[1],
    )
    try:
        yield session
    finally:
        _open.pop(key, None)
        await session.close()
