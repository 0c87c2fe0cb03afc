"""Limits how many rows are in progress at once, and delays the next one when the server asks for it.

A failed request is not yet an overload: some servers fail on one request of twenty, and it succeeds the next time. So
the limit follows the share of failures in a window, which has as many outcomes as rows are allowed at once, at least
SAMPLE. It starts small and grows by one per successful row, so it doubles in a round trip, until the first window with
too many failures. That halves it, once for all rows in progress at that moment. Then it grows by one per round trip,
or by an eighth where that is more, so a large limit is back after six.

If no request of such a window succeeded, the server is down. Then one row at a time asks it, after a pause that
doubles each time, with jitter; the first success restores half of the limit. If the server says when to retry
(`Retry-After`), no row starts earlier.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque

FIRST, LONGEST = 0.5, 60.0
"""Seconds of the first pause for all rows, which then doubles, and of the longest one."""
START = 8
"""The limit at the start, unless fewer rows are allowed."""
SAMPLE = 20
"""The fewest outcomes of a window."""
SHARE = 0.2
"""The share of failures in a window above which the limit is halved."""


class Limiter:
    """Slots for rows: at most `ceiling` at once, fewer while the server refuses."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.limit = float(min(START, ceiling))
        self.running = 0
        self.reason = ""
        """Why the limit was halved; "" when it is back at the ceiling."""
        self.first_refusal: float | None = None
        """The time of the first refusal since the last successful row."""
        self.pauses = 0
        """Pauses since the last successful row, because every request was refused."""
        self._restored = 1.0
        self._slow_start = True
        self._resume = 0.0
        self._round = 0
        self._outcomes = self._successes = 0
        self._failures = 0.0
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
        self.first_refusal = None
        if self.pauses:
            self.pauses, self.limit = 0, self._restored
        grown = 1.0 if self._slow_start else max(1.0, self.limit / 8) / self.limit
        self.limit = min(float(self.ceiling), self.limit + grown)
        if self.limit == self.ceiling:
            self.reason = ""
        self._successes += 1
        self._count(0.0)
        self._wake()

    def refused(self, begun: int, retry_after: float | None = None, weight: float = 1.0, reason: str = "") -> None:
        """Note a refused row that started in the round `begun`. `retry_after` is in seconds; `weight` is how much the
        refusal speaks for an overload, from 0 to 1."""
        now = asyncio.get_running_loop().time()
        self.first_refusal = self.first_refusal or now
        if begun == self._round:  # later refusals of rows that were in progress have the same cause
            self._count(weight)
            if self._is_overloaded():
                self._reduce(reason)
                if self.pauses and retry_after is None:
                    bound = min(LONGEST, FIRST * 2 ** min(self.pauses, 10))
                    retry_after = random.uniform(bound / 2, bound)
        self._resume = max(self._resume, now + (retry_after or 0.0))

    # -------------------------------------------------------------- inside

    @property
    def _window(self) -> float:
        return max(SAMPLE, self.limit)

    def _count(self, weight: float) -> None:
        """Count an outcome of the window, or the first one of the next."""
        if self._outcomes >= self._window:
            self._begin_window()
        self._outcomes += 1
        self._failures += weight

    def _is_overloaded(self) -> bool:
        return bool(self.pauses) or self._failures > SHARE * self._window

    def _reduce(self, reason: str) -> None:
        """Halve the limit; if nothing succeeded, let one row at a time through."""
        self.reason = reason
        self._round += 1
        self._slow_start = False
        half = max(1.0, self.limit / 2)
        if self._successes:
            self.limit = half
        else:
            self._restored = self._restored if self.pauses else half
            self.limit = 1.0
            self.pauses += 1
        self._begin_window()

    def _begin_window(self) -> None:
        self._outcomes = self._successes = 0
        self._failures = 0.0

    def _wake(self) -> None:
        free = int(self.limit) - self.running
        while self._waiting and free > 0:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                free -= 1
