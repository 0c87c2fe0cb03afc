"""Admits requests up to a number at once, queues some more, and refuses the rest.

The places are shared out by key: one that becomes free goes to the key that has the fewest, among several to the one
that was given none for longest, and among its requests to the one that has waited longest. Once as many wait as may, a
key that has more of them waiting than another makes room for it: its last one is sent away. So one key can fill what
nobody else wants, and no more.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Callable

from ...errors import Refused
from ..config.settings import Limits

LONGEST = 30.0
"""Seconds that a client is told to wait at most."""


def ending() -> Refused:
    """What is told to those who come, or are still there, when the process ends."""
    return Refused("the gateway is shutting down", status=503, code="shutting_down", retry_after=1)


Waiter = asyncio.Future[None]


class Admission:
    """`running` requests at once, up to `waiting` more, for `patience` seconds at most.

    One a process. `draining` once the process ends: then nothing new is taken. `owner` is the name of the key that a
    request came with, "" without one.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.running = 0
        self.draining = False
        self.on_free: Callable[[], None] = lambda: None
        """Called when a place has become free that no request waits for."""
        self._held: Counter[str] = Counter()  # places by owner
        self._queues: dict[str, deque[tuple[int, Waiter]]] = {}  # by owner, none of them empty
        self._numbers = itertools.count()
        self._last: dict[str, int] = {}  # when each owner was last given a place: as many as there are keys
        self._mean = 1.0  # seconds that a request lately took

    @property
    def waiting(self) -> int:
        return sum(map(len, self._queues.values()))

    def check_open(self) -> None:
        """Raises Refused once nothing new is taken."""
        if self.draining:
            raise ending()

    def check(self, owner: str = "") -> None:
        """Raises Refused where a request could not even wait: before its body is read."""
        self.check_open()
        if (
            self.running >= self.limits.running
            and self.waiting >= self.limits.waiting
            and self._greediest(owner) is None
        ):
            raise self._overloaded("too many requests are under way, and as many are waiting as may")

    async def enter(self, owner: str = "") -> None:
        """Takes one of the places, waiting for it; `leave` gives it back. Raises Refused (429, 503)."""
        self.check(owner)
        if self.running < self.limits.running:
            self.running += 1
            self._give(owner)
        else:
            await self._wait(owner)

    def leave(self, seconds: float, owner: str = "") -> None:
        """Gives a place back, held for so many seconds, to whose turn it is."""
        self._mean += (seconds - self._mean) / 16
        self._free(owner)

    def take(self) -> bool:
        """Takes a place that is free and that no request waits for; `free` gives it back."""
        if self.draining or self.running >= self.limits.running:
            return False
        self.running += 1
        return True

    def free(self) -> None:
        """Gives a place to the request whose turn it is, if one waits."""
        while self._queues:
            following = min(self._queues, key=self._turn)
            entry = self._queues[following][0]
            self._forget(following, entry)
            if not entry[1].done():
                self._give(following)
                entry[1].set_result(None)
                return
        self.running -= 1
        self.on_free()

    def drain(self) -> None:
        """Takes nothing new from now on; who waits is sent away."""
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
        late = loop.call_later(self.limits.patience, self._tired, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            # The place may have been given just before the client left.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._free(owner)
            raise
        finally:
            late.cancel()
            self._forget(owner, entry)

    def _greediest(self, owner: str) -> str | None:
        """The key that has the most requests waiting, where those are more than this owner would have; else None."""
        if not self._queues:
            return None
        most = max(self._queues, key=lambda name: len(self._queues[name]))
        return most if len(self._queues[most]) > len(self._queues.get(owner, ())) + 1 else None

    def _send_away(self, owner: str) -> None:
        """Tells the last of an owner's waiting requests to come back later."""
        entry = self._queues[owner][-1]
        self._forget(owner, entry)
        if not entry[1].done():
            entry[1].set_exception(self._overloaded("as many requests are waiting as may, most of them of this key"))

    def _forget(self, owner: str, entry: tuple[int, Waiter]) -> None:
        queue = self._queues.get(owner, deque())
        if entry in queue:
            queue.remove(entry)
        if not queue:
            self._queues.pop(owner, None)

    def _tired(self, waiter: Waiter) -> None:
        if not waiter.done():
            waiter.set_exception(self._overloaded(f"no place became free within {self.limits.patience:g} s"))

    def _free(self, owner: str) -> None:
        """Hands a place on to whose turn it is."""
        self._held[owner] -= 1
        if self._held[owner] <= 0:
            del self._held[owner]
        self.free()

    def _give(self, owner: str) -> None:
        self._held[owner] += 1
        self._last[owner] = next(self._numbers)

    def _turn(self, owner: str) -> tuple[int, int, int]:
        """Whose turn it is: the least of these."""
        return self._held[owner], self._last.get(owner, -1), self._queues[owner][0][0]

    def _overloaded(self, said: str) -> Refused:
        return Refused(said, status=429, code="overloaded", retry_after=self._later())

    def _later(self) -> float:
        """Seconds until those who wait now have probably been served."""
        turns = (self.waiting + 1) / max(1, self.limits.running)
        return min(LONGEST, max(1.0, turns * self._mean))
