"""Caches the tools of a request, because each request of a conversation repeats them."""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable
from typing import Any

from ..schema.bounded_cache import BoundedCache
from ..schema.infer import as_tools
from ..types import Tool

Toolset = tuple[Tool[..., Any], ...]


class Toolsets:
    """Makes tools of their descriptions, and keeps what was used last, of `size` bytes in all as they lie in memory.

    What is kept is known by a digest of its description, whose bytes are written by `marshal`: in a tenth of the time
    of JSON, the same for the same JSON values in the same order. The validators of their schemas are kept elsewhere
    (`schema.validators`), within a bound of their own.
    """

    def __init__(self, size: int = 96_000_000) -> None:
        # The five thousand tools of the largest agents are estimated at half of it: one such set stays, with others.
        self._kept = BoundedCache[bytes, Toolset](size, size // 4 * 3)

    def __call__(self, described: Any, check: Callable[[Any], None] | None = None) -> Toolset:
        """The tools; `check` sees descriptions that are not known. Raises InvalidTool for what is none."""
        written = marshal.dumps(described, 2)  # later versions depend on who else holds a value
        key = hashlib.blake2b(written, digest_size=16).digest()
        if (found := self._kept.get(key)) is not None:
            return found
        if check:
            check(described)
        made = as_tools(described) or ()
        self._kept.put(key, made, in_memory(written))
        return made


def in_memory(written: bytes) -> int:
    """How many bytes values take in memory that `marshal` wrote so, at most: measured, for texts about a fifth of
    it."""
    return 12 * len(written) + 400 * written.count(b"{") + 32 * written.count(b"[")
