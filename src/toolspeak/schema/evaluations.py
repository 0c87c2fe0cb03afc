"""Counts how many schemas a validator applies to a value, before it does.

A validator remembers no results. Where two alternatives refer to the same schema, that schema is applied twice, and twice
at each level that the schema and the value repeat: forty levels in a kilobyte would never end. The count here does remember,
so it takes no more steps than there are pairs of a schema and a part of the value, and ends early. Without references, the
count cannot exceed the size of the schema times that of the value, so nothing needs to be counted then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from ..types import Schema
from .walk import resolve

MEMBERS = ("additionalProperties", "unevaluatedProperties")
ITEMS = ("items", "contains", "unevaluatedItems")
"""Keywords whose schema is applied to each member of an object, to each item of a list."""
SCALARS = frozenset({str, int, float, bool, type(None)})


def exceeds(schema: Schema, value: object, most: int) -> bool:
    """Whether a validator of `schema`, which `refers` to parts of it, may apply more than `most` schemas to a value."""
    try:
        return _Count(schema, most).of(schema, value) > most
    except (OverflowError, RecursionError):
        return True


def refers(schema: object) -> bool:
    """Whether there may be a reference in a schema."""
    todo = [schema]
    for node in todo:
        inner: Iterable[object] = ()
        if isinstance(node, Mapping):
            here = cast("Mapping[str, object]", node)
            if "$ref" in here or "$dynamicRef" in here:
                return True
            inner = here.values()
        elif isinstance(node, list):
            inner = cast("list[object]", node)
        todo += [part for part in inner if part.__class__ not in SCALARS]
    return False


class _Count:
    """Counts, and remembers the counts of each pair. Raises OverflowError once they are too many."""

    def __init__(self, root: Schema, most: int) -> None:
        self._root = root
        self._most = most
        self._known: dict[tuple[int, int], int] = {}

    def of(self, schema: Any, value: Any) -> int:
        if not isinstance(schema, Mapping):
            return 0
        key = (id(cast("Any", schema)), id(value))
        if key in self._known:
            return self._known[key]
        self._known[key] = 1  # what refers to itself in place ends here
        node = cast("Mapping[str, Any]", schema)
        again = 2 if "unevaluatedProperties" in node or "unevaluatedItems" in node else 1
        count = 1 + again * sum(self.of(part, value) for part in _in_place(node, self._root))
        count += sum(self.of(part, inner) for part, inner in _below(node, value))
        if count > self._most or len(self._known) > self._most:
            raise OverflowError
        self._known[key] = count
        return count


def _in_place(node: Mapping[str, Any], root: Schema) -> Iterator[Any]:
    """The schemas that are applied to the same value."""
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(node.get(word), list):
            yield from node[word]
    for word in ("not", "if", "then", "else"):
        yield node.get(word)
    if isinstance(depending := node.get("dependentSchemas"), Mapping):
        yield from cast("Mapping[str, Any]", depending).values()
    for word in ("$ref", "$dynamicRef"):
        if isinstance(ref := node.get(word), str):
            yield resolve(root, ref)


def _below(node: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
    """The schemas that may be applied to parts of the value, each with the part."""
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        listed, matched = node.get("properties", {}), node.get("patternProperties", {})
        yield from ((listed[name], members[name]) for name in members if name in listed)
        yield from ((part, inner) for part in (*matched.values(), *_each(node, MEMBERS)) for inner in members.values())
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        yield from zip(node.get("prefixItems", ()), items, strict=False)
        yield from ((part, inner) for part in _each(node, ITEMS) for inner in items)


def _each(node: Mapping[str, Any], words: tuple[str, ...]) -> list[Any]:
    return [node[word] for word in words if word in node]
