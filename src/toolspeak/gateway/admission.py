"""How many requests are worked on at once, who waits, and who is told to come back later."""

from __future__ import annotations

import asyncio
from collections import deque

from ..errors import Refused
from .settings import Limits

LONGEST = 30.0
"""Seconds that a client is told to wait at most."""


def ending() -> Refused:
    """What is told to those who come, or are still there, when the process ends."""
    return Refused("the gateway is shutting down", status=503, code="shutting_down", retry_after=1)


class Admission:
    """`running` requests at once, up to `waiting` more in the order of their coming, for `patience` seconds at most.

    One a process. `draining` once the process ends: then nothing new is taken.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.running = 0
        self.draining = False
        self._queue: deque[asyncio.Future[None]] = deque()
        self._mean = 1.0  # seconds that a request lately took

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def check_open(self) -> None:
        """Raises Refused once nothing new is taken."""
        if self.draining:
            raise ending()

    def check(self) -> None:
        """Raises Refused where a request could not even wait: before its body is read."""
        self.check_open()
        if self.running >= self.limits.running and len(self._queue) >= self.limits.waiting:
            said = "too many requests are under way, and as many are waiting as may"
            raise Refused(said, status=429, code="overloaded", retry_after=self._later())

    async def enter(self) -> None:
        """Takes one of the places, waiting for it; `leave` gives it back. Raises Refused (429, 503)."""
        self.check()
        if self.running < self.limits.running:
            self.running += 1
        else:
            await self._wait()

    def leave(self, seconds: float) -> None:
        """Gives a place back, held for so many seconds, to who has waited longest."""
        self._mean += (seconds - self._mean) / 16
        self._free()

    def drain(self) -> None:
        """Takes nothing new from now on; who waits is sent away."""
        self.draining = True
        while self._queue:
            waiter = self._queue.popleft()
            if not waiter.done():
                waiter.set_exception(ending())

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._queue.append(waiter)
        late = loop.call_later(self.limits.patience, self._tired, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            # The place may have been given just before the client left.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._free()
            raise
        finally:
            late.cancel()
            if waiter in self._queue:
                self._queue.remove(waiter)

    def _tired(self, waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            said = f"no place became free within {self.limits.patience:g} s"
            waiter.set_exception(Refused(said, status=429, code="overloaded", retry_after=self._later()))

    def _free(self) -> None:
        """Hands a place on to who has waited longest."""
        while self._queue:
            waiter = self._queue.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self.running -= 1

    def _later(self) -> float:
        """Seconds until those who wait now have probably been served."""
        turns = (len(self._queue) + 1) / max(1, self.limits.running)
        return min(LONGEST, max(1.0, turns * self._mean))
