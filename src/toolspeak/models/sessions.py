"""HTTP sessions, one for each event loop, so that connections are reused and closed when their loop ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp


class Sessions:
    """`get` gives the running loop's session. It closes with `close`, or by itself at the end of the loop.

    A session is held by an async generator: `asyncio.run`, like every careful runner, closes those that are
    still open before the loop goes, which is the one moment at which a session can be closed unasked.
    """

    def __init__(self, *, connect: float, trust_env: bool = False) -> None:
        self._connect = connect
        self._trust_env = trust_env
        self._open: dict[
            asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, AsyncGenerator[aiohttp.ClientSession]]
        ] = {}

    async def get(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        for other in [other for other in self._open if other.is_closed()]:
            del self._open[other]
        if loop not in self._open or self._open[loop][0].closed:
            keeper = _keep(self._connect, self._trust_env)
            self._open[loop] = (await anext(keeper), keeper)
        return self._open[loop][0]

    async def close(self) -> None:
        """Closes the running loop's session; the next `get` opens another."""
        _, keeper = self._open.pop(asyncio.get_running_loop(), (None, None))
        if keeper is not None:
            await keeper.aclose()


async def _keep(connect: float, trust_env: bool) -> AsyncGenerator[aiohttp.ClientSession]:
    import aiohttp

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),  # how many at once is for the caller to bound
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "toolspeak"},
        trust_env=trust_env,
    ) as session:
        yield session
