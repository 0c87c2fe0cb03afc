"""The event loop for connections to servers, in a thread of its own.

It runs no user code and waits for none. So any thread or loop may block until a server answers, and a connection
outlives the call that opened it.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from ..loop_thread import Loop

T = TypeVar("T")
PATIENCE = 10.0
"""Seconds that the end of the program waits for connections to close."""

_home: Loop | None = None
_starting = threading.Lock()
_leaving: set[Callable[[], Awaitable[None]]] = set()
"""Close functions to call before the program ends; they run on the loop."""


def loop() -> asyncio.AbstractEventLoop:
    """Return the loop: one per process, created on first use, and again after a fork."""
    global _home  # noqa: PLW0603
    with _starting:
        if _home is None or not _home.usable():
            _home = Loop("toolspeak-servers")
            _leaving.clear()  # after a fork these belong to the parent
            atexit.register(leave)
        return _home.loop


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on the loop and wait for its result. An interrupt cancels it."""
    future = asyncio.run_coroutine_threadsafe(work, loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def there(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on the loop and await its result from any loop. A cancellation cancels it too."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop()))


def leaving(close: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Call `close()` on the loop before the program ends. Returns a function that undoes this."""
    _leaving.add(close)
    return lambda: _leaving.discard(close)


def leave() -> None:
    """Call all registered close functions, and end the loop."""
    home = _home
    if home is None or not home.usable():
        return

    async def all_of_them() -> None:
        await asyncio.gather(*(close() for close in tuple(_leaving)), return_exceptions=True)

    with contextlib.suppress(concurrent.futures.TimeoutError, RuntimeError):  # the rest ends with the process
        asyncio.run_coroutine_threadsafe(all_of_them(), home.loop).result(PATIENCE)
    home.end(2.0)
