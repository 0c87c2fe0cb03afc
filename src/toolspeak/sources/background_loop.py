"""The loop on which connections to servers live, in a thread of its own: it runs no code of users and waits for none,
so that whoever needs a server may wait for it, from any thread or loop, and a connection outlives the call that made
it.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from ..drive import Loop

T = TypeVar("T")
PATIENCE = 10.0
"""Seconds that the end of the program waits until all servers have been let go."""

_home: Loop | None = None
_starting = threading.Lock()
_leaving: set[Callable[[], Awaitable[None]]] = set()
"""What is to be closed before the program ends: it runs on the loop."""


def loop() -> asyncio.AbstractEventLoop:
    """The loop: one a process, made when first needed, and anew after a fork."""
    global _home  # noqa: PLW0603
    with _starting:
        if _home is None or not _home.usable():
            _home = Loop("toolspeak-servers")
            _leaving.clear()  # after a fork they are the parent's
            atexit.register(leave)
        return _home.loop


def wait(work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives, waited for. Interrupted, it is cancelled."""
    future = asyncio.run_coroutine_threadsafe(work, loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def there(work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives, awaited from any loop. Cancelled, it is cancelled too."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop()))


def leaving(close: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Has `close()` awaited on the loop before the program ends; gives what takes that back."""
    _leaving.add(close)
    return lambda: _leaving.discard(close)


def leave() -> None:
    """Closes all that is to be closed before the program ends, and ends the loop."""
    home = _home
    if home is None or not home.usable():
        return

    async def all_of_them() -> None:
        await asyncio.gather(*(close() for close in tuple(_leaving)), return_exceptions=True)

    with contextlib.suppress(concurrent.futures.TimeoutError, RuntimeError):  # what is left ends with the process
        asyncio.run_coroutine_threadsafe(all_of_them(), home.loop).result(PATIENCE)
    home.end(2.0)
