"""What is made of the same tools with every request of a conversation: made once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from ..types import Tool

T = TypeVar("T")

MOST = 64
"""How many values are kept."""
LARGEST = 65_536
"""Characters, about, of the largest that is kept."""


class Kept(Generic[T]):
    """Values made of tools and something else, found again by the identity of the tools.

    Tools with a function of the program's own are not kept: whatever hangs on it could then not be freed.
    """

    def __init__(self) -> None:
        self._values: dict[Hashable, tuple[Sequence[Tool[..., Any]], T]] = {}

    def get(
        self, tools: Sequence[Tool[..., Any]], other: Hashable, make: Callable[[], T], size: Callable[[T], int]
    ) -> T:
        """The value of these tools; `size` tells that of a new one."""
        key = (*map(id, tools), other)
        known = self._values.get(key)
        if known is not None:
            return known[1]
        made = make()
        if all(tool.function is None for tool in tools) and size(made) <= LARGEST:
            while len(self._values) >= MOST:
                self._values.pop(next(iter(self._values)), None)
            self._values[key] = (tuple(tools), made)  # holding the tools keeps their identities their own
        return made
