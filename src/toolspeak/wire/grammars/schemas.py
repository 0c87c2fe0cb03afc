"""JSON Schemas as engines can read them."""

from __future__ import annotations

from typing import Any

from ...schema.walk import rebuild, resolve
from .values import Schema


def readable(schema: Schema) -> dict[str, Any]:
    """The schema without what makes engines refuse it whole: references to nowhere, patterns that look around."""

    def change(node: dict[str, Any], _: str) -> Any:
        ref, pattern = node.get("$ref"), node.get("pattern")
        if ref is not None and not (isinstance(ref, str) and resolve(schema, ref) is not None):
            del node["$ref"]
        if pattern is not None and (not isinstance(pattern, str) or "(?" in pattern):
            del node["pattern"]
        return node

    return rebuild(schema, change)
