"""The result of an awaitable, for code that is not async."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def wait_for(awaitable: Awaitable[T]) -> T:
    """Run it to its end: here when no loop is running, in a thread of its own when one is."""

    async def hold() -> T:
        return await awaitable

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(hold())
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="toolspeak") as pool:
        return pool.submit(asyncio.run, hold()).result()
