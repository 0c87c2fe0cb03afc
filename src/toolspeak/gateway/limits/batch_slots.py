"""Decides when a line of a batch may run: at most half of the places for concurrent requests are for lines, and only
while no request waits for one.

A free place goes to the key with the fewest lines running (see `fair_queue`). A line waits as long as it takes. How many
lines can wait is bounded by the batches in progress.
"""

from __future__ import annotations

from .admission import Admission, ending
from .fair_queue import FairQueue


class BatchSlots:
    """The places of `admission` that the lines of batches may take."""

    def __init__(self, admission: Admission) -> None:
        self.most = max(1, admission.limits.running // 2)
        self.running = 0
        self._admission = admission
        self._queue = FairQueue()
        admission.on_free = self._wake

    async def enter(self, owner: str) -> None:
        """Wait for a place; `leave` gives it back. Raises Refused (503) once the process ends."""
        self._admission.check_open()
        waiter = self._queue.add(owner)
        self._wake()
        await self._queue.wait(owner, waiter, lambda: self.leave(0, owner))

    def leave(self, _: float, owner: str) -> None:
        """Give back a place. How long it was used says nothing of how long a request waits."""
        self.running -= 1
        self._queue.take_back(owner)
        self._admission.free()
        self._wake()

    def drain(self) -> None:
        """Refuse all waiting lines, because the process ends."""
        self._queue.refuse(ending)

    def _wake(self) -> None:
        while (owner := self._queue.next_owner()) is not None and self._take():
            self._queue.serve(owner)

    def _take(self) -> bool:
        slot = self.running < self.most and self._admission.take()
        self.running += slot
        return slot
