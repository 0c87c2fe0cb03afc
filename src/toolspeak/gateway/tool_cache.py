"""Caches the tools of a request, because each request of a conversation repeats them."""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable
from typing import Any

from ..errors import DuplicateTool, Refused
from ..schema.bounded_cache import BoundedCache
from ..schema.infer import as_tools
from ..types import Tool

Toolset = tuple[Tool[..., Any], ...]


class Toolsets:
    """Makes tools from their descriptions, and caches the most recently used ones, up to `size` bytes of memory.

    The key is a digest of the description, serialized by `marshal`: it takes a tenth of the time of JSON, and is the
    same for equal JSON values in the same order. The validators of the schemas have a cache of their own
    (`schema.validators`).
    """

    def __init__(self, size: int = 96_000_000) -> None:
        # Half of it holds the five thousand tools of the largest agents, so other sets fit beside one such set.
        self._toolsets = BoundedCache[bytes, Toolset](size, size // 4 * 3)

    def __call__(self, described: Any, check: Callable[[Any], None] | None = None) -> Toolset:
        """Return the tools; `check` is called with descriptions that are not cached. Raises InvalidTool."""
        written = marshal.dumps(described, 2)  # later versions of the format depend on reference counts
        key = hashlib.blake2b(written, digest_size=16).digest()
        if (cached := self._toolsets.get(key)) is not None:
            return cached
        if check:
            check(described)
        try:
            tools = as_tools(described) or ()
        except DuplicateTool as error:
            raise _twice(error.name, described) from None
        self._toolsets.put(key, tools, in_memory(written))
        return tools


def _twice(name: str, described: Any) -> Refused:
    """Return the error for a name that several of the described tools have."""
    places = [f"tools.{at}" for at, one in enumerate(described) if one.get("name") == name]
    where = places[1] if len(places) > 1 else "tools"
    message = f"{where}: two tools are named {name[:100]!r}: give each tool a name of its own"
    return Refused(message, code="invalid_tool", param=where)


def in_memory(written: bytes) -> int:
    """How many bytes values take in memory that `marshal` wrote so, at most: measured, for texts about a fifth of
    it."""
    return 12 * len(written) + 400 * written.count(b"{") + 32 * written.count(b"[")
