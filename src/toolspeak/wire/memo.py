"""Caches values that every request of a conversation would compute again from the same tools."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from ..schema.bounded_cache import BoundedCache
from ..types import Tool

T = TypeVar("T")

MOST = 16_000_000
"""The approximate size of the cache in bytes."""
LARGEST = 65_536
"""The approximate characters of the largest cached value."""
BY_CHARACTER = 30
"""Bytes per character of a value: for the value, and for its tools, which the cache keeps alive."""
EACH = 4_096
"""Bytes of the smallest value, in addition to its characters."""


class Memo(Generic[T]):
    """Values computed from tools and something else, found again by the identity of the tools.

    Values of tools with a function are not cached: everything that the function refers to could not be freed.
    """

    def __init__(self) -> None:
        self._values = BoundedCache[Hashable, tuple[Sequence[Tool[..., Any]], T]](MOST)

    def get(
        self, tools: Sequence[Tool[..., Any]], other: Hashable, make: Callable[[], T], size: Callable[[T], int]
    ) -> T:
        """The value for these tools; `size` gives the characters of a new one."""
        key = (*map(id, tools), other)
        known = self._values.get(key)
        if known is not None:
            return known[1]
        value = make()
        if all(tool.function is None for tool in tools) and (characters := size(value)) <= LARGEST:
            entry = (tuple(tools), value)  # keeping the tools alive keeps their ids unique
            self._values.put(key, entry, EACH + BY_CHARACTER * characters)
        return value
