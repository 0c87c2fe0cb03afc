"""The timeout of a reply: a single timer that is extended as data arrives."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp


PIECE = 16_384
"""The most bytes that are read at once. Those of a reply that arrives at once are read in turns with other requests."""


class ReadTimeout:
    """Reads the chunks of a body. Raises TimeoutError if a chunk does not arrive in time.

    `until` sets another deadline. Time that the consumer takes between two reads does not count.
    """

    def __init__(self, content: aiohttp.StreamReader, due: float) -> None:
        self._due = due
        self._content = content
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._set = 0.0
        self._waiting = False
        self._full = False

    def until(self, due: float) -> None:
        """Set the deadline for this chunk and later ones."""
        self._due = due
        if due < self._set:  # a later deadline is found when the timer fires
            self.close()

    async def read(self) -> bytes:
        """Return the next bytes, at most PIECE of them, b"" at the end."""
        if self._full:  # more may be here already, and no event may have come of the last piece
            await asyncio.sleep(0)
        if self._timer is None:
            self._arm()
        self._waiting = True
        try:
            chunk = await self._content.read(PIECE)
            self._full = len(chunk) == PIECE
            return chunk
        finally:
            self._waiting = False

    def close(self) -> None:
        """Cancel the timer."""
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
