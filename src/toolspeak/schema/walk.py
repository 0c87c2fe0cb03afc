"""Visits the schemas inside a schema, by the keywords that contain them and not by what they look like.

A property named `title`, or a `$ref` inside an example, is data and no keyword: only the positions are visited that
JSON Schema (2020-12, and the older `definitions`) defines as schemas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast
from urllib.parse import unquote

ONE = frozenset(
    [
        "items",
        "additionalProperties",
        "contains",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedItems",
        "unevaluatedProperties",
        "additionalItems",
        "contentSchema",
    ]
)
MANY = frozenset(["anyOf", "oneOf", "allOf", "prefixItems"])
NAMED = frozenset(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"])

DEPTH = 200
"""A schema that is nested deeper is considered a mistake (or an attack)."""

POINTER = re.compile(r"#(?:/.*)?", re.DOTALL).fullmatch
ANCHOR = re.compile(r"#([^/].*)", re.DOTALL).fullmatch
"""Match local references: to a place in the schema, and to the name of an anchor."""


def rebuild(schema: Any, change: Callable[[dict[str, Any], str], Any], path: str = "") -> Any:
    """A copy of `schema` with every schema that is a dict replaced by `change(node, path)`, inner ones first.

    Anything at the place of a schema that is none stays unchanged. `path` is a JSON pointer.
    """
    if not isinstance(schema, Mapping) or path.count("/") > 2 * DEPTH:
        return cast("Any", schema)
    node: dict[str, Any] = {}
    for key, value in cast("Mapping[str, Any]", schema).items():
        here = f"{path}/{escape(str(key))}"
        if key in ONE:
            value = rebuild(value, change, here)
        elif key in MANY and isinstance(value, list):
            value = [rebuild(part, change, f"{here}/{i}") for i, part in enumerate(cast("list[Any]", value))]
        elif key in NAMED and isinstance(value, Mapping):
            parts = cast("Mapping[str, Any]", value)
            value = {name: rebuild(part, change, f"{here}/{escape(str(name))}") for name, part in parts.items()}
        node[key] = value
    return change(node, path)


def nodes(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """(JSON pointer, schema) of every schema inside `schema` that is a dict, inner ones first, `schema` itself last."""
    results: list[tuple[str, dict[str, Any]]] = []

    def keep(node: dict[str, Any], path: str) -> dict[str, Any]:
        results.append((path, node))
        return node

    rebuild(schema, keep)
    return iter(results)


def anchors(root: Mapping[str, Any]) -> dict[str, str]:
    """The JSON pointers of the schemas with anchors, by their names; the first of equal names."""
    pointers: dict[str, str] = {}
    for path, node in nodes(root):
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := node.get(keyword), str):
                pointers.setdefault(name, f"#{path}")
    return pointers


def by_name(ref: str) -> str:
    """The name of the anchor that a local reference leads to; "" if it is a JSON pointer, or not local."""
    name = ANCHOR(ref)
    return unquote(name[1]) if name else ""


def resolve(root: Mapping[str, Any], ref: str) -> Any:
    """The target of the JSON pointer `ref` (`#/a/b`) in `root`; None if there is none. `repair` makes pointers of the names
    of anchors."""
    if not POINTER(ref):
        return None
    here: Any = root
    for part in ref.split("/")[1:]:
        if isinstance(here, Mapping):
            inside = cast("Mapping[str, Any]", here)
            names = [name.replace("~1", "/").replace("~0", "~") for name in (unquote(part), part)]
            here = next((inside[name] for name in names if name in inside), None)
        elif isinstance(here, list) and part.isdecimal() and int(part) < len(cast("list[Any]", here)):
            here = cast("list[Any]", here)[int(part)]
        else:
            return None
    return here


def followed(root: Mapping[str, Any], schema: object) -> Mapping[str, Any] | None:
    """The schema with its reference resolved, together with what stands beside the reference; None for `true`, `false`
    and anything that is no schema."""
    for _ in range(20):
        if not isinstance(schema, Mapping):
            return None
        node = cast("Mapping[str, Any]", schema)
        if "$ref" not in node:
            return node
        target = resolve(root, str(node["$ref"]))
        beside = {key: value for key, value in node.items() if key != "$ref"}
        schema = {**cast("Mapping[str, Any]", target), **beside} if beside and isinstance(target, Mapping) else target
    return None


def branches(root: Mapping[str, Any], schema: object, conditions: bool = False) -> Iterator[Mapping[str, Any]]:
    """A schema and all schemas that it refers to or combines, each once; with `conditions` also those of `if`."""
    seen: set[int] = set()
    todo: list[object] = [schema]
    while todo:
        node = todo.pop()
        if not isinstance(node, Mapping) or id(cast("object", node)) in seen:
            continue
        seen.add(id(cast("object", node)))
        here = cast("Mapping[str, Any]", node)
        yield here
        parts = [part for word in ("anyOf", "oneOf", "allOf") for part in _values(here.get(word))]
        parts += [here.get(word) for word in ("if", "then", "else")[not conditions :]]
        parts += _values(here.get("dependentSchemas"))
        if isinstance(ref := here.get("$ref"), str):
            parts.append(resolve(root, ref))
        todo += reversed(parts)


def _values(value: object) -> list[Any]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []


def escape(part: str) -> str:
    """A key as one token of a JSON pointer."""
    return part.replace("~", "~0").replace("/", "~1")
