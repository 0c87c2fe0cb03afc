"""Caches what is made from the same tools with every request of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from ..schema.bounded_cache import BoundedCache
from ..types import Tool

T = TypeVar("T")

MOST = 16_000_000
"""Bytes, about, of all that is kept."""
LARGEST = 65_536
"""Characters, about, of the largest that is kept."""
BY_CHARACTER = 30
"""Bytes for each character of a value: of itself and of the tools that it was made of, which are held beside it."""
EACH = 4_096
"""Bytes of the smallest value, beside its characters."""


class Memo(Generic[T]):
    """Values made of tools and something else, found again by the identity of the tools.

    Tools with a function of the program's own are not kept: whatever hangs on it could then not be freed.
    """

    def __init__(self) -> None:
        self._values = BoundedCache[Hashable, tuple[Sequence[Tool[..., Any]], T]](MOST)

    def get(
        self, tools: Sequence[Tool[..., Any]], other: Hashable, make: Callable[[], T], size: Callable[[T], int]
    ) -> T:
        """The value of these tools; `size` tells that of a new one."""
        key = (*map(id, tools), other)
        known = self._values.get(key)
        if known is not None:
            return known[1]
        made = make()
        if all(tool.function is None for tool in tools) and (characters := size(made)) <= LARGEST:
            held = (tuple(tools), made)  # holding the tools keeps their identities their own
            self._values.put(key, held, EACH + BY_CHARACTER * characters)
        return made
