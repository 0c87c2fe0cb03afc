"""Servers on loopback in a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Server(Protocol):
    """Answers connections; its address becomes `url`."""

    url: str

    @property
    def serve(self) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]: ...


@contextmanager
def listening(*servers: Server) -> Iterator[None]:
    """The servers answer until this is left."""
    ready, stop = threading.Event(), list[Any]()

    async def live() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        doors = [await asyncio.start_server(one.serve, "127.0.0.1", 0) for one in servers]
        for one, door in zip(servers, doors, strict=True):
            one.url = f"http://127.0.0.1:{door.sockets[0].getsockname()[1]}"
        stop.append(lambda: loop.call_soon_threadsafe(over.set))
        ready.set()
        await over.wait()
        for door in doors:
            door.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=lambda: asyncio.run(live()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        stop[0]()
        thread.join(5)
