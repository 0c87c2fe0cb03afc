"""Shares places fairly among owners, and holds the requests that wait for one.

A free place goes to the owner with the fewest places; among several, to the one that was served least recently; within
an owner, to its oldest request.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable

Waiter = asyncio.Future[None]


class FairQueue:
    """The places of each owner, and its waiting requests. How many places there are is for the caller to decide."""

    def __init__(self) -> None:
        self._places: Counter[str] = Counter()  # by owner, none of them 0
        self._queues: dict[str, dict[Waiter, int]] = {}  # by owner, none of them empty; requests with their numbers
        self._numbers = itertools.count()
        self._last: dict[str, int] = {}  # when each owner last got a place; bounded by the number of keys

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def has_place(self, owner: str) -> bool:
        """Whether an owner has a place."""
        return owner in self._places

    def give(self, owner: str) -> None:
        """Note that an owner got a place."""
        self._places[owner] += 1
        self._last[owner] = next(self._numbers)

    def take_back(self, owner: str) -> None:
        """Note that an owner gave a place back."""
        self._places[owner] -= 1
        if self._places[owner] <= 0:
            del self._places[owner]

    def add(self, owner: str) -> Waiter:
        """Add a request, which `wait` then awaits."""
        waiter: Waiter = asyncio.get_running_loop().create_future()
        self._queues.setdefault(owner, {})[waiter] = next(self._numbers)
        return waiter

    async def wait(self, owner: str, waiter: Waiter, give_back: Callable[[], None]) -> None:
        """Wait until the request gets a place. `give_back` is called if it was cancelled just after that."""
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                give_back()
            raise
        finally:
            self._remove(owner, waiter)

    def next_owner(self) -> str | None:
        """Return the owner whose request is next, None if none waits."""
        for owner, queue in list(self._queues.items()):
            while queue and (oldest := next(iter(queue))).done():  # it ended while it waited
                self._remove(owner, oldest)
        return min(self._queues, key=self._turn, default=None)

    def serve(self, owner: str) -> None:
        """Give a place to the oldest request of an owner."""
        waiter = next(iter(self._queues[owner]))
        self._remove(owner, waiter)
        self.give(owner)
        waiter.set_result(None)

    def greediest(self, owner: str) -> str | None:
        """Return the owner with the most waiting requests if it has more than this owner would have, else None."""
        most = max(self._queues, key=lambda name: len(self._queues[name]), default=owner)
        return most if len(self._queues.get(most, ())) > len(self._queues.get(owner, ())) + 1 else None

    def send_away(self, owner: str, error: Exception) -> None:
        """Refuse the newest waiting request of an owner."""
        waiter = next(reversed(self._queues[owner]))
        self._remove(owner, waiter)
        if not waiter.done():
            waiter.set_exception(error)

    def refuse(self, error: Callable[[], Exception]) -> None:
        """Refuse all waiting requests."""
        for waiter in itertools.chain.from_iterable(self._queues.values()):
            if not waiter.done():
                waiter.set_exception(error())
        self._queues.clear()

    def _turn(self, owner: str) -> tuple[int, int, int]:
        """Return the sort key of an owner: the smallest is next."""
        return self._places[owner], self._last.get(owner, -1), next(iter(self._queues[owner].values()))

    def _remove(self, owner: str, waiter: Waiter) -> None:
        if queue := self._queues.get(owner):
            queue.pop(waiter, None)
            if not queue:
                del self._queues[owner]
