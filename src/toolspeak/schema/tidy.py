"""Simplifies pydantic's schemas for models: no generated titles, and no needless `$ref`."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from .kinds import DECIMAL, NAIVE
from .walk import nodes, rebuild

if TYPE_CHECKING:
    from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

_DEFS = "#/$defs/"


@functools.cache
def generator() -> type[GenerateJsonSchema]:
    """The class that generates pydantic's schemas, extended by the text formats of a Decimal and of a datetime without a
    zone, which pydantic omits. A set may be written with repetitions, which it loses."""
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def decimal_schema(self, schema: Any) -> JsonSchemaValue:
            result = super().decimal_schema(schema)
            for part in result.get("anyOf", []):
                if part.get("type") == "string":
                    part["pattern"] = DECIMAL  # pydantic 2.12 has another one, which needs lookahead
            return result

        def set_schema(self, schema: Any) -> JsonSchemaValue:
            return _without_unique(super().set_schema(schema))

        def frozenset_schema(self, schema: Any) -> JsonSchemaValue:
            return _without_unique(super().frozenset_schema(schema))

        def datetime_schema(self, schema: Any) -> JsonSchemaValue:
            if schema.get("tz_constraint") == "naive":  # the format `date-time` requires a zone
                return {"type": "string", "pattern": NAIVE}
            return super().datetime_schema(schema)

    return Generator


def _without_unique(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "uniqueItems"}


def tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema without titles, with closed objects. Definitions stay only if they are shared or recursive.

    An object with known fields allows no others, since its Python type would silently drop them.
    """
    return folded(rebuild(schema, _plainly))


def folded(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema, with definitions under `$defs` inlined that are used once and do not refer to themselves."""
    plain = dict(schema)
    shared = cast("dict[str, Any]", plain.pop("$defs", {}))
    if not shared:
        return plain
    uses = Counter(_refs(plain))
    for definition in shared.values():
        uses.update(_refs(definition))
    single = {
        name
        for name in shared
        if uses[name] == 1 and shared[name] not in (True, False) and not _reaches(name, name, shared)
    }

    def inline(node: dict[str, Any], _path: str) -> dict[str, Any]:
        name = str(node.get("$ref", "")).removeprefix(_DEFS)
        if name not in single:
            return node
        target = rebuild(shared[name], inline)
        return {**target, **{key: value for key, value in node.items() if key != "$ref"}}

    whole: dict[str, Any] = rebuild(plain, inline)
    definitions = {name: rebuild(part, inline) for name, part in shared.items() if uses[name] and name not in single}
    return {**whole, "$defs": definitions} if definitions else whole


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _plainly(node: dict[str, Any], _path: str) -> dict[str, Any]:
    node.pop("title", None)
    if "default" in node and not _is_json(node["default"]):
        del node["default"]  # such as infinity: still optional, but no server accepts it
    node.pop("discriminator", None)  # OpenAPI's hint would name definitions that are inlined here
    if "properties" in node:
        node.setdefault("additionalProperties", False)
    return {"type": node.pop("type"), **node} if "type" in node else node


def _refs(schema: Any) -> list[str]:
    refs = (str(node.get("$ref", "")) for _, node in nodes(schema))
    return [ref.removeprefix(_DEFS) for ref in refs if ref.startswith(_DEFS)]


def _reaches(start: str, goal: str, shared: Mapping[str, Any]) -> bool:
    open_, seen = [start], set[str]()
    while open_:
        for name in _refs(shared.get(open_.pop(), {})):
            if name == goal:
                return True
            if name not in seen:
                seen.add(name)
                open_.append(name)
    return False
