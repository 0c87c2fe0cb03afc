"""Finds a key of the call (`id`) that is among its arguments because a closing brace is missing.

In `{"name": "f", "arguments": {"city": "Paris", "id": "1"}` the missing brace may belong before `"id"` or at the end. If
the dialect writes such a key behind the arguments, nobody can tell which of them the model meant.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, cast

from ...schema.nonblocking_json import loads_or
from ..dialect import ARGS, JsonCall


@lru_cache(256)
def last_keys(hole: JsonCall) -> tuple[str, ...]:
    """The keys that a call has behind its arguments."""
    slots = [slot for _, slot in hole.keys]
    behind = hole.keys[slots.index(ARGS) + 1 :] if ARGS in slots else ()
    return tuple(key for key, _ in behind if isinstance(key, str))


def misplaced(hole: JsonCall, arguments: str, required: Collection[str]) -> str:
    """The argument that may be a key of the call instead; "" if there is none. A first one is none, since a comma
    would be missing as well; nor is one that the tool requires, or that is no string."""
    keys = last_keys(hole)
    value: object = loads_or(arguments, None) if keys else None
    items = list(cast("Mapping[str, Any]", value).items())[1:] if isinstance(value, dict) else []
    return next((key for key, text in items if key in keys and isinstance(text, str) and key not in required), "")
