"""Limits how many rows are in progress at once, and delays the next one when the server asks for it.

A failed request is not yet an overload: some servers fail on one request of twenty, and it succeeds the next time. So
the limit follows the share of failures in a window, which has as many outcomes as rows are allowed at once, at least
SAMPLE, all of rows that started since the limit changed. The limit starts small and grows by one per successful row,
so it doubles in a round trip, until the first window with too many failures. That halves it.

From then on, the limiter searches for what the server takes. `_good` is the highest limit that worked, `_bad` the
lowest that did not, and `_usual` the share of failures that does not depend on the limit. A limit halfway between the
two is tried for a window. A trial ends at the first failures that are not chance, so it costs two or three, and the
limit goes back at once. When the two have met, the limit stays. The next one is tried after a window, and after twice
as many each time that it fails. If it works, the limit grows in steps that double: the server takes more than before.

A window can also have more failures than usual without too many, such as one of nine rows that the server does not
take. Then the limit is reduced a little. If the share of failures stays, the load is not its reason: it is the usual
one, and the limit is restored.

If no request of a window with too many failures succeeded, the server is down. Then one row at a time asks it, after a
pause that doubles each time, with jitter; the first success restores half of the limit. If the server says when to
retry (`Retry-After`), no row starts earlier.
"""

from __future__ import annotations

import asyncio
import math
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
CHANCE = 1.5
"""The failures of a window beyond the usual ones that may be chance."""
PATIENCE = 16
"""The most windows after which a higher limit is tried again."""


class Limiter:
    """Slots for rows: at most `ceiling` at once, fewer while the server refuses."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.limit = float(min(START, ceiling))
        self.running = 0
        self.reason = ""
        """Why the limit was reduced; "" when it is back at the ceiling."""
        self.first_refusal: float | None = None
        """The time of the first refusal since the last successful row."""
        self.pauses = 0
        """Pauses since the last successful row, because every request was refused."""
        self._restored = 1.0
        self._slow_start = True
        self._resume = 0.0
        self._round = 0
        self._started = self._outcomes = self._successes = 0
        self._failures = 0.0
        self._good, self._bad = 0.0, math.inf
        self._usual = 0.0
        self._suspect = math.inf
        """The share of failures for which the limit was reduced a little, until the next window has shown its reason."""
        self._step = 1.0
        self._patience = 1
        self._idle = 0
        """Windows since the last trial."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> int:
        """Wait for a slot. Returns the round that the row belongs to, for `succeeded` and `refused`."""
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
                self._started += 1
                return self._round

    def release(self) -> None:
        """Give back a slot."""
        self.running -= 1
        self._wake()

    def succeeded(self, begun: int) -> None:
        """Note a row that the server answered, and that started in the round `begun`."""
        self.first_refusal = None
        if self.pauses:
            self.pauses = 0
            self._set(self._restored)
        if self._slow_start:
            self.limit = min(float(self.ceiling), self.limit + 1)
        if begun == self._round:
            self._successes += 1
            self._count(0.0)
        self._wake()

    def refused(self, begun: int, retry_after: float | None = None, weight: float = 1.0, reason: str = "") -> None:
        """Note a refused row that started in the round `begun`. `retry_after` is in seconds; `weight` is how much the
        refusal speaks for an overload, from 0 to 1."""
        now = asyncio.get_running_loop().time()
        if self.first_refusal is None:
            self.first_refusal = now
        # later refusals of rows that were in progress have the same cause
        overloaded = begun == self._round and self._count(weight)
        if overloaded:
            self.reason = reason
        if retry_after is None:
            retry_after = self._pause() if overloaded else 0.0
        self._resume = max(self._resume, now + retry_after)

    # -------------------------------------------------------------- inside

    @property
    def _window(self) -> float:
        return max(SAMPLE, self.limit)

    @property
    def _trial(self) -> bool:
        """Whether the limit is higher than one that worked."""
        return 0 < self._good < self.limit

    def _count(self, weight: float) -> bool:
        """Count an outcome of the window. Return whether it shows an overload, which reduces the limit."""
        self._outcomes += 1
        self._failures += weight
        most = 0.0 if self.pauses else SHARE * self._sample
        if self._trial:
            most = min(most, self._unusual)
        if self._failures <= most:
            return self._outcomes >= self._window and self._finish_window()
        if self._trial:
            self._fall_back()
        else:
            self._halve()
        return True

    @property
    def _sample(self) -> float:
        """The rows that the failures of a window are a share of. Where the limit has just changed, more have started than
        ended, and a refusal may come sooner than a reply."""
        return max(self._window, self._started)

    @property
    def _unusual(self) -> float:
        """The failures of a window that are not chance."""
        usual = self._usual * self._sample
        return usual + math.sqrt(usual) + CHANCE

    def _finish_window(self) -> bool:
        """Evaluate a window with few failures. Return whether they show an overload, which reduces the limit a little."""
        if self._slow_start:
            self._begin_window()
            return False
        share = self._failures / self._outcomes
        if share > self._suspect / 2:  # at a lower limit too, so the load is not the reason
            self._usual, self._step = (share + self._suspect) / 2, self._bad - self.limit
            self._bad = math.inf
        self._suspect = math.inf
        if self.limit == 1 or self._failures <= self._unusual:
            self._usual += min(0.0, share - self._usual) / 8
            self._accept()
            return False
        self._suspect = share
        self._search_below()
        self._set(self.limit - max(1.0, self.limit * 2 * share // 1))
        return True

    def _search_below(self) -> None:
        """Forget what worked, after an overload at the limit."""
        self._bad, self._good = self.limit, 0.0
        self._patience, self._step = 1, 1.0

    def _halve(self) -> None:
        """Halve the limit; if nothing succeeded, let one row at a time through."""
        self._slow_start, self._suspect = False, math.inf
        half = max(1.0, self.limit // 2)
        if not self.pauses:
            self._search_below()
        if self._successes:
            self._set(half)
        else:
            self._restored = self._restored if self.pauses else half
            self.pauses += 1
            self._set(1.0)

    def _pause(self) -> float:
        """Return the seconds until the server is asked again; none if it answers some requests."""
        bound = min(LONGEST, FIRST * 2 ** min(self.pauses, 10))
        return random.uniform(bound / 2, bound) if self.pauses else 0.0

    def _fall_back(self) -> None:
        """End a trial that failed."""
        if self._adjacent:
            self._patience = min(PATIENCE, 2 * self._patience)
        self._bad, self._step = self.limit, 1.0
        self._set(self._good)

    def _accept(self) -> None:
        """End a window without an overload, and try a higher limit if it is time."""
        self._begin_window()
        if self.limit >= self._bad:
            self._bad, self._patience = math.inf, 1
        self._good = self.limit
        self._idle += 1
        if self._good == self.ceiling:
            self.reason = ""
        elif self._bad == math.inf:
            self._set(self._good + self._step)
            self._step *= 2
        elif not self._adjacent:
            self._set((self._good + self._bad) // 2)
        elif self._idle > self._patience:
            self._set(self._bad)

    @property
    def _adjacent(self) -> bool:
        """Whether there is nothing to try between the limits that work and those that do not."""
        return self._bad - self._good <= max(1.0, self._good / 16)

    def _set(self, limit: float) -> None:
        self.limit = min(float(self.ceiling), limit)
        self._round += 1
        self._idle = 0
        self._begin_window()
        self._wake()

    def _begin_window(self) -> None:
        self._started = self._outcomes = self._successes = 0
        self._failures = 0.0

    def _wake(self) -> None:
        free = int(self.limit) - self.running
        while self._waiting and free > 0:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                free -= 1
