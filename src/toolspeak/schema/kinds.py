"""Reads a schema's structure: the JSON types that it allows, and the schemas of its parts.

Schemas come from outside: references may be circular, unions may double at each level, and any place may hold
something that is no schema. The cost stays proportional to the schema's length, and what is not understood allows
every type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

from .walk import branches, resolve

DEPTH = 50
"""References and unions that are followed inside each other."""

Kinds = frozenset[str]
ANY: Kinds = frozenset(["string", "number", "integer", "boolean", "null", "array", "object"])
STRING: Kinds = frozenset(["string"])
NONE: Kinds = frozenset()

OF_VALUE: Mapping[object, Kinds] = {
    str: STRING,
    bool: frozenset(["boolean"]),
    int: frozenset(["integer", "number"]),
    float: frozenset(["number"]),
    list: frozenset(["array"]),
    dict: frozenset(["object"]),
    type(None): frozenset(["null"]),
}
OF_NAME: Mapping[str, Kinds] = {name: frozenset((name, "integer") if name == "number" else (name,)) for name in ANY}
ALTERNATIVES = frozenset(["$ref", "allOf", "anyOf", "dependentSchemas", "if", "oneOf"])
"""Keywords of a schema that other schemas may apply with."""
IMPLIED = {"properties": "object", "additionalProperties": "object", "items": "array", "prefixItems": "array"}
"""Keywords that apply to one type only: a schema that has one and names no type means that type."""


DECIMAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""The pattern of a Decimal that is written as text."""
NAIVE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?$"
"""The pattern of a date and time without a zone."""


def decimal_number(schema: object) -> Mapping[str, Any] | None:
    """The alternative for numbers in the schema of a Decimal, which allows a number and its digits as text; None for
    any other schema."""
    match [option for option in _options(schema) if option != {"type": "null"}]:
        case [{"type": "number"} as number, {"type": "string", "pattern": pattern}] if pattern == DECIMAL:
            return cast("Mapping[str, Any]", number)
        case _:
            return None


def takes_digits(schema: object) -> bool:
    """Whether the schema allows the digits of a Decimal as text, maybe among other types."""
    options = (cast("Mapping[str, Any]", one) for one in _options(schema) if isinstance(one, Mapping))
    return any(option.get("pattern") == DECIMAL for option in options)


def _options(schema: object) -> list[Any]:
    """The alternatives of a schema."""
    if not isinstance(schema, Mapping):
        return []
    node = cast("Mapping[str, Any]", schema)
    return [option for union in ("anyOf", "oneOf") for option in _list(node.get(union))]


class Shapes:
    """The types and the parts that the schemas inside `root` allow. Each is computed once."""

    __slots__ = ("known", "parts", "root")

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.known: dict[int, Kinds] = {}
        self.parts: dict[tuple[int, str | None], Any] = {}

    def kinds(self, schema: object) -> Kinds:
        """The JSON types that a schema allows, ANY if it does not say. `number` includes integer."""
        return self._kinds(schema, 0) or ANY

    def _kinds(self, schema: object, depth: int) -> Kinds:
        if not isinstance(schema, Mapping) or depth > DEPTH:
            return ANY
        kinds = self.known.get(id(cast("object", schema)))
        if kinds is None:
            self.known[id(cast("object", schema))] = NONE  # a circular reference adds nothing to a union
            kinds = self._worked_out(cast("Mapping[str, Any]", schema), depth + 1)
            self.known[id(cast("object", schema))] = kinds
        return kinds

    def _worked_out(self, schema: Mapping[str, Any], depth: int) -> Kinds:
        allowed = _named(schema)
        if isinstance(ref := schema.get("$ref"), str):
            allowed &= self._kinds(resolve(self.root, ref), depth)
        for union in ("anyOf", "oneOf"):
            if options := _list(schema.get(union)):
                allowed &= NONE.union(*[self._kinds(option, depth) for option in options])
        for part in _list(schema.get("allOf")):
            allowed &= self._kinds(part, depth)
        if allowed == ANY:
            implied = frozenset(kind for word, kind in IMPLIED.items() if word in schema)
            return implied or ANY
        return allowed | {"null"} if schema.get("nullable") is True else allowed

    def member(self, schema: object, key: str) -> Any:
        """The schema of the property `key`; None if the schema says nothing about it. Of several branches, any one of
        theirs."""
        part = self.parts.get((id(schema), key))
        if part is None:
            nodes = list(branches(self.root, schema))
            part = _one_of([p[key] for p in map(_properties, nodes) if key in p]) or _one_of(
                [node["additionalProperties"] for node in nodes if "additionalProperties" in node]
            )
            self.parts[id(schema), key] = part
        return part

    def items(self, schema: object) -> Any:
        """The schema of an array's elements; None if the schema says nothing about them."""
        part = self.parts.get((id(schema), None))
        if part is None:
            part = _one_of([node["items"] for node in branches(self.root, schema) if "items" in node])
            self.parts[id(schema), None] = part
        return part

    def types_depend(self) -> bool:
        """Whether it may depend on other arguments whether an argument is a string: alternatives give its type."""
        if ALTERNATIVES.isdisjoint(self.root):
            return False
        lists = Counter(key for node in branches(self.root, self.root) for key in _properties(node))
        return any(count > 1 and self.kinds(self.member(self.root, key)) > STRING for key, count in lists.items())

    def names(self, schema: object, key: str) -> bool:
        """Whether the schema names the property `key`."""
        return any(key in _properties(node) for node in branches(self.root, schema))


def _named(schema: Mapping[str, Any]) -> Kinds:
    """The types that a schema names, or those of the values that it lists."""
    names = schema.get("type")
    words = [names] if isinstance(names, str) else _list(names)
    allowed = frozenset(word for word in words if isinstance(word, str)) & ANY or ANY
    if "number" in allowed:
        allowed |= {"integer"}
    values = _list(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
    if values:
        allowed &= NONE.union(*[OF_VALUE.get(cast("object", type(value)), ANY) for value in values])
    return allowed


def _one_of(schemas: list[Any]) -> Any:
    schemas = [schema for schema in schemas if isinstance(schema, Mapping)]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas} if schemas else None


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return cast("Mapping[str, Any]", properties) if isinstance(properties, Mapping) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
