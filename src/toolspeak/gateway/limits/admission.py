"""Admits a number of requests at once, queues some more, and refuses the rest.

Places are shared out fairly by key. A free place goes to the key with the fewest running requests; among several, to
the one that was served least recently; within a key, to its oldest request. If the queue is full, a new request of a
key with fewer waiting requests replaces the newest request of the key with the most. So one key can use all capacity
that nobody else wants, and no more.

Requests may run for minutes, so a place that another key wants must be free already. With several keys, the last eighth
of the places is for keys that have none.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Callable

from ...errors import Refused
from ..config.settings import GatewayLimits

LONGEST = 30.0
"""The largest `Retry-After` in seconds."""

RESERVE = 8
"""One of so many places is for keys that have none."""


def ending() -> Refused:
    """Return the error for new and waiting requests when the process ends."""
    return Refused("the gateway is shutting down", status=503, code="shutting_down", retry_after=1)


Waiter = asyncio.Future[None]


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
        self._places: Counter[str] = Counter()  # places by owner
        self._queues: dict[str, deque[tuple[int, Waiter]]] = {}  # by owner, none of them empty
        self._numbers = itertools.count()
        self._last: dict[str, int] = {}  # when each owner last got a place; bounded by the number of keys
        self._mean = 1.0  # a moving average of the seconds that requests take

    @property
    def waiting(self) -> int:
        return sum(map(len, self._queues.values()))

    def check_open(self) -> None:
        """Raises Refused once nothing new is accepted."""
        if self.draining:
            raise ending()

    def check(self, owner: str = "") -> None:
        """Raises Refused, before the body is read, if a request could not even wait."""
        self.check_open()
        if self._takes(owner):
            return
        if self.waiting >= self.limits.waiting and self._greediest(owner) is None:
            raise self._overloaded("too many requests are running, and the queue is full")

    async def enter(self, owner: str = "") -> None:
        """Wait for a place; `leave` gives it back. Raises Refused (429, 503)."""
        self.check(owner)
        if self._takes(owner):
            self.running += 1
            self._give(owner)
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
        while self._queues and self._takes(following := min(self._queues, key=self._turn)):
            entry = self._queues[following][0]
            self._forget(following, entry)
            if not entry[1].done():
                self.running += 1
                self._give(following)
                entry[1].set_result(None)
                return
        self.on_free()

    def drain(self) -> None:
        """Accept nothing new, and refuse all waiting requests."""
        self.draining = True
        for queue in self._queues.values():
            for _, waiter in queue:
                if not waiter.done():
                    waiter.set_exception(ending())
        self._queues.clear()

    async def _wait(self, owner: str) -> None:
        if self.waiting >= self.limits.waiting and (greediest := self._greediest(owner)) is not None:
            self._send_away(greediest)
        loop = asyncio.get_running_loop()
        waiter: Waiter = loop.create_future()
        entry = (next(self._numbers), waiter)
        self._queues.setdefault(owner, deque()).append(entry)
        late = loop.call_later(self.limits.patience, self._time_out, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            # The place may have been granted just before the client left.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._free(owner)
            raise
        finally:
            late.cancel()
            self._forget(owner, entry)

    def _takes(self, owner: str) -> bool:
        """Whether an owner may take a place now."""
        free = self.limits.running - self.running
        return free > (self._reserved if owner in self._places else 0)

    def _greediest(self, owner: str) -> str | None:
        """Return the key with the most waiting requests if it has more than this owner would have, else None."""
        if not self._queues:
            return None
        most = max(self._queues, key=lambda name: len(self._queues[name]))
        return most if len(self._queues[most]) > len(self._queues.get(owner, ())) + 1 else None

    def _send_away(self, owner: str) -> None:
        """Refuse the newest waiting request of an owner."""
        entry = self._queues[owner][-1]
        self._forget(owner, entry)
        if not entry[1].done():
            entry[1].set_exception(self._overloaded("the queue is full, and most requests in it are from this key"))

    def _forget(self, owner: str, entry: tuple[int, Waiter]) -> None:
        queue = self._queues.get(owner, deque())
        if entry in queue:
            queue.remove(entry)
        if not queue:
            self._queues.pop(owner, None)

    def _time_out(self, waiter: Waiter) -> None:
        if not waiter.done():
            waiter.set_exception(self._overloaded(f"no place became free within {self.limits.patience:g} s"))

    def _free(self, owner: str) -> None:
        """Pass a place on to the next waiting request."""
        self._places[owner] -= 1
        if self._places[owner] <= 0:
            del self._places[owner]
        self.free()

    def _give(self, owner: str) -> None:
        self._places[owner] += 1
        self._last[owner] = next(self._numbers)

    def _turn(self, owner: str) -> tuple[int, int, int]:
        """Return the sort key of an owner: the smallest is next."""
        return self._places[owner], self._last.get(owner, -1), self._queues[owner][0][0]

    def _overloaded(self, reason: str) -> Refused:
        return Refused(reason, status=429, code="overloaded", retry_after=self._later())

    def _later(self) -> float:
        """Estimate the seconds until the requests that wait now have been served."""
        turns = (self.waiting + 1) / max(1, self.limits.running)
        return min(LONGEST, max(1.0, turns * self._mean))
