"""Tools that come again with every request of a conversation: made once."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from ..schema.infer import as_tools
from ..types import Tool

Toolset = tuple[Tool[..., Any], ...]


class Toolsets:
    """Makes tools of their descriptions, and keeps what was used last, within a number and a size of JSON."""

    def __init__(self, count: int = 256, size: int = 16 * 1024 * 1024) -> None:
        self._count = count
        self._size = size
        self._kept: OrderedDict[str, Toolset] = OrderedDict()
        self._held = 0

    def __call__(self, described: Any) -> Toolset:
        """The tools. Raises InvalidTool for what is none."""
        key = _dumped(described)
        if found := self._kept.get(key):
            self._kept.move_to_end(key)
            return found
        made = as_tools(described) or ()
        self._keep(key, made)
        return made

    def _keep(self, key: str, made: Toolset) -> None:
        if len(key) > self._size // 4:  # one large set must not drive out all others
            return
        self._kept[key] = made
        self._held += len(key)
        while len(self._kept) > self._count or self._held > self._size:
            old, _ = self._kept.popitem(last=False)
            self._held -= len(old)


_dumped = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
