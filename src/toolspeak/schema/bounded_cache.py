"""A cache whose size in bytes is bounded, whatever is put into it: what was used last stays.

Threads may share one without a lock: each step on the dict is whole by itself, and what threads that come in between do
to the count is put right whenever room is made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Values by their keys, of `most` bytes in all by the estimate that each is put with.

    A value of more than `largest` bytes, by default a quarter of `most`, is not kept: it would drive out all others.
    """

    def __init__(self, most: int, largest: int | None = None) -> None:
        self.most = most
        self.largest = most // 4 if largest is None else largest
        self.size = 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value of a key; None where it is not kept."""
        known = self._values.get(key)
        if known is None:
            return None
        try:  # noqa: SIM105 - suppress() takes longer than all else here
            self._values.move_to_end(key)
        except KeyError:
            pass  # another thread has just dropped it
        return known[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Keeps a value of about `size` bytes; those that were used longest ago make room."""
        if size > self.largest:
            return
        _, before = self._values.pop(key, (None, 0))
        self._values[key] = (value, size)
        self.size += size - before
        if self.size > self.most:
            self._make_room()

    def _make_room(self) -> None:
        """Drops an eighth of all, so that counting anew is not done for each value."""
        held = sum(size for _, size in list(self._values.values()))
        with suppress(KeyError):
            while held > self.most - self.most // 8:
                _, (_, size) = self._values.popitem(last=False)
                held -= size
        self.size = held
