"""Admits a number of requests at once, queues some more, and refuses the rest.

Places are shared out fairly by key (see `fair_queue`). If the queue is full, a new request of a key with fewer waiting
requests replaces the newest request of the key with the most. So one key can use all capacity that nobody else wants,
and no more.

Requests may run for minutes, so a place that another key wants must be free already. With several keys, the last eighth
of the places is for keys that have none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...errors import Refused
from ..config.settings import GatewayLimits
from .fair_queue import FairQueue

LONGEST = 30.0
"""The largest `Retry-After` in seconds."""

RESERVE = 8
"""One of so many places is for keys that have none."""


def ending() -> Refused:
    """Return the error for new and waiting requests when the process ends."""
    return Refused("the gateway is shutting down", status=503, code="shutting_down", retry_after=1)


class Admission:
    """Runs `running` requests at once; up to `waiting` more wait, for `patience` seconds at most.

    There is one per process. `draining` is set when the process ends: nothing new is accepted. `owner` is the name of a
    request's key, "" without one. `shared`: there are several keys.
    """

    def __init__(self, limits: GatewayLimits, *, shared: bool = False) -> None:
        self.limits = limits
        self._reserved = limits.running // RESERVE if shared else 0
        self.running = 0
        self.draining = False
        self.on_free: Callable[[], None] = lambda: None
        """Called when a place becomes free and no request waits for it."""
        self._queue = FairQueue()
        self._mean = 1.0  # a moving average of the seconds that requests take

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def check_open(self) -> None:
        """Raises Refused once nothing new is accepted."""
        if self.draining:
            raise ending()

    def check(self, owner: str = "") -> None:
        """Raises Refused, before the body is read, if a request could not even wait."""
        self.check_open()
        if self._takes(owner):
            return
        if self.waiting >= self.limits.waiting and self._queue.greediest(owner) is None:
            raise self._overloaded("too many requests are running, and the queue is full")

    async def enter(self, owner: str = "") -> None:
        """Wait for a place; `leave` gives it back. Raises Refused (429, 503)."""
        self.check(owner)
        if self._takes(owner):
            self.running += 1
            self._queue.give(owner)
        else:
            await self._wait(owner)

    def leave(self, seconds: float, owner: str = "") -> None:
        """Give back a place that was used for `seconds`."""
        self._mean += (seconds - self._mean) / 16
        self._free(owner)

    def take(self) -> bool:
        """Take a place if one is free and no request waits; `free` gives it back."""
        if self.draining or self.running >= self.limits.running - self._reserved:
            return False
        self.running += 1
        return True

    def free(self) -> None:
        """Pass a free place to the next waiting request that may take it, if there is one."""
        self.running -= 1
        owner = self._queue.next_owner()
        if owner is not None and self._takes(owner):
            self.running += 1
            self._queue.serve(owner)
        else:
            self.on_free()

    def drain(self) -> None:
        """Accept nothing new, and refuse all waiting requests."""
        self.draining = True
        self._queue.refuse(ending)

    async def _wait(self, owner: str) -> None:
        if self.waiting >= self.limits.waiting and (greediest := self._queue.greediest(owner)) is not None:
            reason = "the queue is full, and most requests in it are from this key"
            self._queue.send_away(greediest, self._overloaded(reason))
        waiter = self._queue.add(owner)
        late = asyncio.get_running_loop().call_later(self.limits.patience, self._time_out, waiter)
        try:
            await self._queue.wait(owner, waiter, lambda: self._free(owner))
        finally:
            late.cancel()

    def _takes(self, owner: str) -> bool:
        """Whether an owner may take a place now."""
        free = self.limits.running - self.running
        if not self._reserved:
            return free > 0
        return free > (self._reserved if self._queue.has_place(owner) else 0)

    def _time_out(self, waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            waiter.set_exception(self._overloaded(f"no place became free within {self.limits.patience:g} s"))

    def _free(self, owner: str) -> None:
        """Pass a place on to the next waiting request."""
        self._queue.take_back(owner)
        self.free()

    def _overloaded(self, reason: str) -> Refused:
        return Refused(reason, status=429, code="overloaded", retry_after=self._later())

    def _later(self) -> float:
        """Estimate the seconds until the requests that wait now have been served."""
        turns = (self.waiting + 1) / max(1, self.limits.running)
        return min(LONGEST, max(1.0, turns * self._mean))
