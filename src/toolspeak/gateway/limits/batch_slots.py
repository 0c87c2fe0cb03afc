"""Decides when a line of a batch may run: at most half of the places for concurrent requests are for lines, and only
while no request waits for one.

A free place goes to the key with the fewest lines running; among several, to the one that was served least recently. A
line waits as long as it takes. How many lines can wait is bounded by the batches in progress.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, deque

from .admission import Admission, ending


class BatchSlots:
    """The places of `admission` that the lines of batches may take."""

    def __init__(self, admission: Admission) -> None:
        self.most = max(1, admission.limits.running // 2)
        self.running = 0
        self._admission = admission
        self._places: Counter[str] = Counter()  # places by owner
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}  # by owner, none of them empty
        self._last: dict[str, int] = {}
        self._numbers = itertools.count()
        admission.on_free = self._wake

    async def enter(self, owner: str) -> None:
        """Wait for a place; `leave` gives it back. Raises Refused (503) once the process ends."""
        self._admission.check_open()
        waiter = asyncio.get_running_loop().create_future()
        self._queues.setdefault(owner, deque()).append(waiter)
        self._wake()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._forget(owner, waiter)
            elif waiter.exception() is None:  # the place was granted just before the cancellation
                self.leave(0, owner)
            raise

    def leave(self, _: float, owner: str) -> None:
        """Give back a place. How long it was used says nothing of how long a request waits."""
        self.running -= 1
        self._places[owner] -= 1
        if self._places[owner] <= 0:
            del self._places[owner]
        self._admission.free()
        self._wake()

    def drain(self) -> None:
        """Refuse all waiting lines, because the process ends."""
        for queue in self._queues.values():
            for waiter in queue:
                if not waiter.done():
                    waiter.set_exception(ending())
        self._queues.clear()

    def _wake(self) -> None:
        while self._queues and self._take():
            owner = min(self._queues, key=lambda name: (self._places[name], self._last.get(name, -1)))
            waiter = self._queues[owner][0]
            self._forget(owner, waiter)
            self._give(owner)
            waiter.set_result(None)

    def _take(self) -> bool:
        slot = self.running < self.most and self._admission.take()
        self.running += slot
        return slot

    def _give(self, owner: str) -> None:
        self._places[owner] += 1
        self._last[owner] = next(self._numbers)

    def _forget(self, owner: str, waiter: asyncio.Future[None]) -> None:
        queue = self._queues.get(owner, deque())
        if waiter in queue:
            queue.remove(waiter)
        if not queue:
            self._queues.pop(owner, None)
