"""Limits how many rows are in progress at once, and delays the next one when the server asks for it.

The limit adapts as TCP's congestion window does. It starts small and grows by one per successful row, so it doubles in
a round, until the server refuses for the first time; then it grows by one per round. A refusal (too many requests,
overload, no connection) halves it, once for all rows in progress at that moment. If the server says when to retry
(`Retry-After`), no row starts earlier; otherwise the pause doubles with each refusal, with jitter.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque

FIRST, LONGEST = 0.5, 60.0
"""Seconds of the first pause after a refusal without `Retry-After`, which then doubles, and of the longest one."""
START = 8
"""The limit at the start, unless fewer rows are allowed."""


class Limiter:
    """Slots for rows: at most `ceiling` at once, fewer while the server refuses."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.limit = float(min(START, ceiling))
        self.running = 0
        self.refusals = 0
        """Refusals since the last successful row."""
        self.first_refusal: float | None = None
        """The time of the first of these refusals."""
        self._slow_start = True
        self._resume = 0.0
        self._round = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> int:
        """Wait for a slot. Returns the round that the row belongs to, for `refused`."""
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
        """Give back a slot."""
        self.running -= 1
        self._wake()

    def succeeded(self) -> None:
        """Note a row that the server answered."""
        self.refusals, self.first_refusal = 0, None
        grown = self.limit + (1.0 if self._slow_start else 1.0 / self.limit)
        self.limit = min(float(self.ceiling), grown)
        self._wake()

    def refused(self, begun: int, retry_after: float | None = None) -> None:
        """Note a refused row that started in the round `begun`; `retry_after` is in seconds."""
        now = asyncio.get_running_loop().time()
        self.first_refusal = self.first_refusal or now
        if begun == self._round:  # rows of the same round were refused for the same reason: halve only once
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
