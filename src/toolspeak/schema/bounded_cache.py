"""A least-recently-used cache with a limit in bytes.

Threads may share one without a lock: every single operation on the dict is atomic, and errors in the byte count from
concurrent changes are corrected whenever old values are dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Values by key, of `most` bytes in all. Each value is stored with an estimate of its size.

    A value of more than `largest` bytes (by default a quarter of `most`) is not stored: it would displace all others.
    """

    def __init__(self, most: int, largest: int | None = None) -> None:
        self.most = most
        self.largest = most // 4 if largest is None else largest
        self.size = 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value of a key; None if it is not in the cache."""
        known = self._values.get(key)
        if known is None:
            return None
        try:  # noqa: SIM105 - suppress() takes longer than all the rest of this function
            self._values.move_to_end(key)
        except KeyError:
            pass  # another thread has just dropped it
        return known[0]

    def size_of(self, key: K) -> int:
        """The size of a value, 0 if it is not in the cache."""
        known = self._values.get(key)
        return known[1] if known else 0

    def put(self, key: K, value: V, size: int) -> None:
        """Stores a value of about `size` bytes. The values that were used least recently are dropped."""
        if size > self.largest:
            return
        _, before = self._values.pop(key, (None, 0))
        self._values[key] = (value, size)
        self.size += size - before
        if self.size > self.most:
            self._make_room()

    def _make_room(self) -> None:
        """Drops values until an eighth of the space is free, so that the count is not recomputed for each value."""
        total = sum(size for _, size in list(self._values.values()))
        with suppress(KeyError):
            while total > self.most - self.most // 8:
                _, (_, size) = self._values.popitem(last=False)
                total -= size
        self.size = total
