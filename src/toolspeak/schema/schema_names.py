"""Finds what a schema says about a place of a value: which names an object may have there, and what is expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..types import Schema
from .phrases import describe, expected, limits
from .walk import branches, escape, followed, resolve


class Names:
    """The names in a schema. Those of each object are collected once: many errors may be about the same one."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._fields: dict[int, dict[str, Any]] = {}

    def known(self, path: list[str | int]) -> dict[str, Any]:
        """The names that the object at `path` may have, with their schemas."""
        return self._of(self.node(path))

    def described(self, path: list[str | int]) -> str:
        """What is expected at `path`."""
        node = self.followed(self.node(path))
        return ("" if node is None else describe(node)) or "a value"

    def wanted(self, error: Any) -> str:
        """What should have come, according to one of the validator's errors; a type with the limits beside it."""
        if error.kind.name != "type":
            return expected(error)
        node = resolve(self._root, "#" + "".join(f"/{escape(str(part))}" for part in error.schema_path[:-1]))
        return expected(error) + (limits(cast("Mapping[str, Any]", node)) if isinstance(node, Mapping) else "")

    def followed(self, node: Any) -> Mapping[str, Any] | None:
        """The schema that a reference means; None for anything that is no schema."""
        return followed(self._root, node)

    def node(self, path: list[str | int]) -> Any:
        """The schema for the value at `path`, which may be a reference; None if it cannot be determined."""
        node: Any = self._root
        for part in path:
            if isinstance(part, str):
                node = self._of(node).get(part)
            else:
                inner = self.followed(node)
                node = None if inner is None else inner.get("items")
        return node

    def _of(self, node: Any) -> dict[str, Any]:
        """The properties in an object's schema, also in its alternatives and in what it refers to."""
        if (fields := self._fields.get(id(node))) is None:
            fields = self._fields[id(node)] = {}
            for part in branches(self._root, node, conditions=True):
                for name, schema in cast("Mapping[str, Any]", part.get("properties", {})).items():
                    fields.setdefault(name, schema)
        return fields
