"""HTTP sessions, one for each event loop, so that connections are reused and closed when their loop ends.

All models share them: whoever asks for a model by its name anew each time still keeps its connections. A
session is held by an async generator: `asyncio.run`, like every careful runner, closes those that are still
open before the loop goes, which is the one moment at which a session can be closed unasked.
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
    """The running loop's session; `trust_env` for the one that goes through the environment's proxies.

    `public` is for one that connects to addresses of the public network alone, whatever a name stands for: anything
    else ends in a ClientConnectorError that holds a PrivateAddress.
    """
    for key in list(_open):  # a copy: other threads have loops of their own
        if key[0].is_closed():
            _open.pop(key, None)
    key = (asyncio.get_running_loop(), trust_env, public)
    if key not in _open:
        keeper = _keep(key)
        _open[key] = (await anext(keeper), keeper)
    return _open[key][0]


async def close_sessions() -> None:
    """Closes the running loop's sessions; the next `get_session` opens another."""
    loop = asyncio.get_running_loop()
    for _, keeper in [held for key, held in list(_open.items()) if key[0] is loop]:
        await keeper.aclose()


async def _keep(key: Key) -> AsyncGenerator[aiohttp.ClientSession]:
    import aiohttp

    from .public_only import public_socket

    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0,  # how many at once is for the caller to bound
            socket_factory=public_socket if key[2] else None,
        ),
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
