"""The timeout of a reply: one timer that is extended as data arrives."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp


class ReadTimeout:
    """Reads the pieces of a body. Where one has not come in time, the wait for it ends in TimeoutError.

    `until` sets another time. A listener who takes his time between two reads is not hurried.
    """

    def __init__(self, content: aiohttp.StreamReader, due: float) -> None:
        self._due = due
        self._content = content
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._set = 0.0
        self._waiting = False

    def until(self, due: float) -> None:
        """Waits until then, for this piece and those to come."""
        self._due = due
        if due < self._set:  # a later one is met by looking again
            self.close()

    async def read(self) -> bytes:
        """The next bytes, b"" at the end."""
        if self._timer is None:
            self._arm()
        self._waiting = True
        try:
            return await self._content.readany()
        finally:
            self._waiting = False

    def close(self) -> None:
        """Waits no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self._set = self._due
        self._timer = self._loop.call_at(self._due, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        if self._loop.time() < self._due:
            self._arm()
        else:
            self._content.set_exception(TimeoutError())
