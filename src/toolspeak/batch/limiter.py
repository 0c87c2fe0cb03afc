"""Limits how many rows are asked at once, and delays the next one when the server asks for it.

The number adapts to the server as TCP adapts to a network. It begins small and grows by one for each row that ends well,
so that it doubles in a round, until the server refuses for the first time; then it grows by one a round. A refusal (too
many requests, overload, no connection) halves it, once for all rows that were under way at that moment. Where the server
says when to come back (`Retry-After`), no row begins before; where it says nothing, the pause doubles from one refusal to
the next, with jitter.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque

FIRST, LONGEST = 0.5, 60.0
"""Seconds: the pause after a refusal that names none, which doubles, and the longest such pause."""
START = 8
"""Rows under way at first, where as many are allowed."""


class Limiter:
    """Slots for rows: at most `ceiling` at once, fewer while the server refuses."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.limit = float(min(START, ceiling))
        self.running = 0
        self.refusals = 0
        """Refusals since the last row that ended well."""
        self.first_refusal: float | None = None
        """The time of the first of them."""
        self._slow_start = True
        self._resume = 0.0
        self._round = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> int:
        """Waits for a slot; gives the round that the row belongs to, for `refused`."""
        while True:
            pause = self._resume - asyncio.get_running_loop().time()
            if pause > 0:
                await asyncio.sleep(pause)
            elif self.running >= int(self.limit):
                future = asyncio.get_running_loop().create_future()
                self._waiting.append(future)
                await future
            else:
                self.running += 1
                return self._round

    def release(self) -> None:
        """Gives a slot back."""
        self.running -= 1
        self._wake()

    def succeeded(self) -> None:
        """Takes note of a row that the server answered."""
        self.refusals, self.first_refusal = 0, None
        grown = self.limit + (1.0 if self._slow_start else 1.0 / self.limit)
        self.limit = min(float(self.ceiling), grown)
        self._wake()

    def refused(self, begun: int, retry_after: float | None = None) -> None:
        """Takes note of a row of the round `begun` that the server refused; `retry_after` is in seconds."""
        now = asyncio.get_running_loop().time()
        self.first_refusal = self.first_refusal or now
        if begun == self._round:  # the others that were under way with it say the same thing again
            self._round += 1
            self._slow_start = False
            self.limit = max(1.0, self.limit / 2)
            self.refusals += 1
        pause = retry_after
        if pause is None:
            bound = min(LONGEST, FIRST * 2 ** min(self.refusals, 10))
            pause = random.uniform(bound / 2, bound)
        self._resume = max(self._resume, now + pause)

    def _wake(self) -> None:
        free = int(self.limit) - self.running
        while self._waiting and free > 0:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                free -= 1
