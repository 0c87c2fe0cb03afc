"""Converts the schemas of an OpenAPI document to standalone JSON Schema (2020-12), including what they refer to.

Version 3.0 has its own keywords (`nullable`, boolean `exclusiveMinimum`) and allows nothing beside a `$ref`; since 3.1
a schema is JSON Schema already. Properties that a server fills in (`readOnly`) are left out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ...errors import InvalidTool
from ...schema.suggestions import numbered
from ...schema.tidy import folded
from ...schema.validators import judge
from ...schema.walk import nodes, rebuild
from .document import HOPS, Document

SAYS_NOTHING = ("xml", "externalDocs", "discriminator", "writeOnly", "title", "$schema", "$id", "$anchor")
"""Keywords that tell a model nothing, or have a meaning only inside their document."""
WIDTHS = frozenset({"int32", "int64", "float", "double", "password"})
"""Formats that describe the storage of a value, not its meaning."""
ANNOTATIONS = frozenset({"description", "default", "examples", "deprecated", "readOnly"})
"""Keywords without constraints, which may stand beside a reference."""
BESIDE = frozenset({"anyOf", "oneOf", "not", "if", "patternProperties", "dependentRequired", "dependentSchemas"})
"""Keywords that constrain an object's fields beyond a list of properties."""
EXAMPLE = 80
"""The most characters of an example that is passed on."""
FOLDED = 60
"""The most definitions of a tool for which those used once are inlined."""

_DEFS = "#/$defs/"
_Listed = tuple[dict[str, Any], list[str]]


class Schemas:
    """Converts the schemas of a document. Each definition is converted once."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._names: dict[str, str] = {}
        self._ref_by_name: dict[str, str] = {}
        self._definitions: dict[str, Any] = {}
        self._numbers: dict[str, int] = {}
        self._fields: dict[int, _Listed | None] = {}
        """The fields by the identity of a schema, because schemas may combine one another many times."""

    def translate(self, schema: Any, where: str) -> Any:
        """Return a converted schema, with references to `$defs` that `whole` adds."""
        return rebuild(schema, lambda node, path: self._node(node, where + path))

    def whole(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the same schema with everything that it refers to, directly or not, under `$defs`."""
        definitions: dict[str, Any] = {}
        waiting = list(_references(schema))
        while waiting:
            name = waiting.pop()
            if name not in definitions:
                definitions[name] = self._definition(name)
                waiting += _references(definitions[name])
        if not definitions:
            return schema
        whole = {**schema, "$defs": dict(sorted(definitions.items()))}
        return folded(whole) if len(definitions) <= FOLDED else whole

    def fields(self, schema: Any, where: str) -> _Listed | None:
        """Return the properties of an object schema and which are required; None if it has other constraints."""
        node = self.document.follow(schema, where)
        if id(node) not in self._fields:
            self._fields[id(node)] = None  # also for a schema that combines itself
            self._fields[id(node)] = self._fields_of(node, where)
        return self._fields[id(node)]

    def _fields_of(self, node: Mapping[str, Any], where: str) -> _Listed | None:
        if not _lists_its_fields(node):
            return None
        properties: dict[str, Any] = {}
        required: list[str] = []
        parts: Any = node.get("allOf", [])
        own: Any = node.get("properties", {})
        if not isinstance(own, Mapping) or not isinstance(parts, list) or where.count("/allOf/") > HOPS:
            return None
        for index, part in enumerate(cast("list[Any]", parts)):
            inner = self.fields(part, f"{where}/allOf/{index}")
            if inner is None or not _agree(properties, inner[0]):
                return None
            properties |= inner[0]
            required += inner[1]
        if not _agree(properties, cast("Mapping[str, Any]", own)):
            return None
        properties |= cast("Mapping[str, Any]", own)
        required += [name for name in _listed(node.get("required")) if isinstance(name, str)]
        return properties, list(dict.fromkeys(required))

    # one schema

    def _definition(self, name: str) -> Any:
        if name not in self._definitions:
            ref = self._ref_by_name[name]
            schema = self.translate(self.document.at(ref, ref), ref)
            if isinstance(schema, dict):
                cast("dict[str, Any]", schema).pop("readOnly", None)
            self._definitions[name] = schema
        return self._definitions[name]

    def _name(self, ref: str, where: str) -> str:
        """Return the name under `$defs` for a reference's target."""
        if ref not in self._names:
            self.document.at(ref, where)
            last = re.sub(r"[^A-Za-z0-9_.-]+", "_", ref.rpartition("/")[2])[:64] or "Part"
            name = last if last not in self._ref_by_name else numbered(last, self._ref_by_name, self._numbers)
            self._names[ref] = name
            self._ref_by_name[name] = ref
        return self._names[ref]

    def _node(self, node: dict[str, Any], where: str) -> Any:
        node = _without_annotations(node)
        null = node.pop("nullable", False) is True
        if "$dynamicRef" in node:
            raise self.document.error(where, "$dynamicRef is not understood")
        if "$ref" in node:
            return self._reference(node, where, null)
        _number_limits(node)
        if "properties" in node and "type" not in node:
            node["type"] = "object"
        if null:
            node = _or_null(node)
        return {"type": node.pop("type"), **node} if "type" in node else node

    def _reference(self, node: dict[str, Any], where: str, null: bool) -> dict[str, Any]:
        ref = node.pop("$ref")
        name = self._name(ref, where) if isinstance(ref, str) else self.document.at(ref, where)
        beside: dict[str, Any] = node
        if self.document.old:  # siblings are not allowed, but many documents have a description here
            beside = {"description": node["description"]} if isinstance(node.get("description"), str) else {}
        if self.document.follow({"$ref": ref}, where).get("readOnly") is True:
            beside = {**beside, "readOnly": True}
        one: dict[str, Any] = {"$ref": _DEFS + str(name)}
        if null:
            return {"anyOf": [one, {"type": "null"}], **beside}
        return {**one, **beside} if beside.keys() <= ANNOTATIONS else {"allOf": [one], **beside}


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two sets of properties agree on the names that both have."""
    return all(one.get(name, schema) == schema for name, schema in other.items())


def _without_annotations(node: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without annotations; `anyOf` instead of `oneOf` with a discriminator."""
    if "discriminator" in node and "oneOf" in node and "anyOf" not in node:
        node["anyOf"] = node.pop("oneOf")  # the discriminator selects one, although a value may match several
    node = {key: value for key, value in node.items() if not key.startswith("x-") and key not in SAYS_NOTHING}
    _drop_read_only(node)
    _examples(node)
    _drop_needless(node)
    if node.pop("deprecated", False) is True:
        node["deprecated"] = True
    return node


def _drop_needless(node: dict[str, Any]) -> None:
    """Remove number widths, and patterns that every text matches."""
    if str(node.get("format")) in WIDTHS:
        del node["format"]
    if isinstance(node.get("pattern"), str) and not _means_something(node["pattern"]):
        del node["pattern"]


def _number_limits(node: dict[str, Any]) -> None:
    """Convert `exclusiveMinimum: true` beside a bound into a numeric `exclusiveMinimum`, as in newer schemas."""
    for limit, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(node.get(limit), bool) and node.pop(limit) and bound in node:
            node[limit] = node.pop(bound)


def _drop_read_only(node: dict[str, Any]) -> None:
    """Remove properties that a server fills in. Inner schemas were converted before and still have the keyword."""
    properties = node.get("properties")
    if not isinstance(properties, Mapping):
        return
    fields = cast("Mapping[str, Any]", properties)
    writable = {
        name: fields[name]
        for name in fields
        if not (isinstance(fields[name], Mapping) and fields[name].get("readOnly") is True)
    }
    if len(writable) < len(fields):
        node["properties"] = writable
        required = [name for name in _listed(node.pop("required", None)) if name in writable]
        if required:
            node["required"] = required


def _references(schema: Any) -> Iterable[str]:
    for _, node in nodes(schema):
        ref = node.get("$ref")
        if isinstance(ref, str) and ref.startswith(_DEFS):
            yield ref.removeprefix(_DEFS)


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _or_null(node: dict[str, Any]) -> dict[str, Any]:
    if isinstance(node.get("enum"), list) and None not in node["enum"]:
        node["enum"] = [*node["enum"], None]
    kind = node.get("type")
    if isinstance(kind, str):
        return {**node, "type": [kind, "null"]} if kind != "null" else node
    if any(key in node for key in ("allOf", "anyOf", "oneOf")):
        annotations = {key: node.pop(key) for key in ("description", "default") if key in node}
        return {"anyOf": [node, {"type": "null"}], **annotations}
    return node


def _examples(node: dict[str, Any]) -> None:
    """Keep one short example: objects and long texts cost more tokens than they are worth."""
    example = node.pop("example", None)
    listed = node.pop("examples", None)
    first: Any = next(iter(_listed(listed)), None) if example is None else example
    if isinstance(first, (str, int, float)) and len(str(first)) <= EXAMPLE and "enum" not in node:
        node["examples"] = [first]


@functools.lru_cache(4096)
def _means_something(pattern: Any) -> bool:
    """Whether a regular expression is valid. An invalid one is left to the server."""
    try:
        judge({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}})
    except InvalidTool:
        return False
    return True


def _lists_its_fields(node: Mapping[str, Any]) -> bool:
    """Whether a schema describes a non-null object whose fields are given only by lists."""
    if node.get("type", "object") not in ("object", ["object"]) or node.get("nullable") is True:
        return False
    return BESIDE.isdisjoint(node) and node.get("additionalProperties", True) in (True, False, {})
