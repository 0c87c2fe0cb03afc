"""Repairs the schemas that people write in practice into valid JSON Schema. One without any meaning is rejected with
its place.

Accepted: type names of Python and other languages (`int`, `str`, `dict`, `STRING`), a type other than object on the
parameters themselves, missing `type` and `properties`, parameters without `properties` around them, a property given
only by a type's name, `required: true` inside a property, OpenAPI's `nullable`, draft-4's boolean `exclusiveMinimum`,
and draft-7's list of `items`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeGuard, cast

from ..errors import InvalidTool
from ..types import Schema
from .phrases import schema_of
from .suggestions import did_you_mean, near
from .walk import MANY, NAMED, ONE, anchors, by_name, escape, rebuild, resolve

TYPES = frozenset(["object", "array", "string", "integer", "number", "boolean", "null"])

_NAMES = {
    "integer": "int long int32 int64 integer",
    "number": "float double decimal number numeric",
    "string": "str text char string",
    "boolean": "bool boolean",
    "object": "dict map mapping struct record object",
    "array": "list tuple set sequence array",
    "null": "none nil nonetype null",
}
ALIASES = {alias: name for name, aliases in _NAMES.items() for alias in aliases.split()}
_ANYTHING = frozenset(("any", "enum", "mixed", "unknown"))

KEYWORDS = (
    ONE
    | MANY
    | NAMED
    | frozenset(
        [
            "type",
            "enum",
            "const",
            "required",
            "title",
            "description",
            "default",
            "examples",
            "example",
            "format",
            "pattern",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "uniqueItems",
            "minContains",
            "maxContains",
            "minProperties",
            "maxProperties",
            "dependentRequired",
            "nullable",
            "readOnly",
            "writeOnly",
            "deprecated",
            "contentEncoding",
            "contentMediaType",
            "strict",
            "$ref",
            "$schema",
            "$id",
            "$anchor",
            "$comment",
            "$dynamicRef",
            "$dynamicAnchor",
            "$vocabulary",
        ]
    )
)


def repair(parameters: Any, tool: str = "") -> dict[str, Any]:
    """A JSON Schema of an object, made from a tool's parameters as somebody wrote them. It is always a copy.

    Raises InvalidTool with `path`, a JSON pointer into the parameters.
    """
    if parameters is None:
        return {"type": "object", "properties": {}}
    if not isinstance(parameters, Mapping):
        _refuse(tool, "", f"the parameters must be a JSON Schema, a dict; got {parameters!r:.80}")
    repaired: dict[str, Any] = dict(cast("Mapping[str, Any]", parameters))
    repaired.pop("$schema", None)
    repaired = _as_object(repaired)
    fixed = repair_any(repaired, tool)
    if not _composed(fixed):
        if fixed.get("type") != "object":
            _refuse(tool, "/type", f"the parameters must be an object; got type {fixed.get('type')!r:.80}")
        fixed.setdefault("properties", {})
    return fixed


def repair_any(schema: Mapping[str, Any], tool: str = "") -> dict[str, Any]:
    """As `repair`, for a schema whose values need not be objects."""
    repaired = dict(schema)
    return rebuild(repaired, _Fixer(tool, repaired).fix)


def _as_object(schema: dict[str, Any]) -> dict[str, Any]:
    bare = schema and not any(key in KEYWORDS for key in schema)
    if bare and all(isinstance(value, Mapping) for value in schema.values()):
        return {"type": "object", "properties": schema}
    if schema.get("type") == "object" or ("type" not in schema and _composed(schema)):
        return schema
    kind = schema.get("type", "object")
    name = kind.strip().lower() if isinstance(kind, str) else ""
    # Some documents have "type": "int" on the parameters. If there are properties, an object is meant.
    shaped = "properties" in schema and (name in ALIASES or name in _ANYTHING)
    if shaped or ALIASES.get(name) == "object":
        return {**schema, "type": "object"}
    return schema


def _composed(schema: Mapping[str, Any]) -> bool:
    return any(key in schema for key in ("$ref", "anyOf", "oneOf", "allOf", "if"))


class _Fixer:
    def __init__(self, tool: str, root: Schema) -> None:
        self.tool = tool
        self.root = root
        self.anchors: dict[str, str] | None = None

    def fix(self, node: dict[str, Any], path: str) -> dict[str, Any]:
        self._type(node, path)
        self._nullable(node)
        self._properties(node, path)
        self._required(node, path)
        self._items(node)
        self._dependencies(node)
        self._enum(node, path)
        self._ref(node, path)
        for limit, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(node.get(limit), bool) and (node.pop(limit) and bound in node):
                node[limit] = node.pop(bound)
        return node

    def _type(self, node: dict[str, Any], path: str) -> None:
        if "type" not in node:
            if "properties" in node and not _composed(node):
                node["type"] = "object"
            return
        kind = node["type"]
        if isinstance(kind, list):
            node["type"] = [self._name(one, f"{path}/type/{i}") for i, one in enumerate(cast("list[Any]", kind))]
            if None in node["type"]:
                del node["type"]
            return
        name = self._name(kind, f"{path}/type")
        if name is None:
            del node["type"]
        else:
            node["type"] = name

    def _name(self, kind: Any, path: str) -> str | None:
        if not isinstance(kind, str):
            _refuse(self.tool, path, f"a type must be the name of one; got {kind!r:.80}")
        if kind in TYPES:
            return kind
        low = kind.strip().lower()
        if low in _ANYTHING:
            return None
        if low not in ALIASES:
            _refuse(
                self.tool,
                path,
                f"{kind!r} is no type of JSON Schema: object, array, string, integer, number, boolean or null."
                + did_you_mean(near(low, TYPES)),
            )
        return ALIASES[low]

    def _nullable(self, node: dict[str, Any]) -> None:
        if node.pop("nullable", False) is not True:
            return
        if isinstance(node.get("type"), str) and node["type"] != "null":
            node["type"] = [node["type"], "null"]
        if isinstance(node.get("enum"), list) and None not in node["enum"]:
            node["enum"] = [*node["enum"], None]

    def _properties(self, node: dict[str, Any], path: str) -> None:
        if "properties" not in node:
            return
        declared = node["properties"]
        if declared is None:
            declared = {}
        if not isinstance(declared, Mapping):
            _refuse(self.tool, f"{path}/properties", f"properties must be a dict by name; got {declared!r:.80}")
        properties: dict[str, Any] = {}
        wanted: list[str] = []
        for name, value in cast("Mapping[Any, Any]", declared).items():
            here = f"{path}/properties/{escape(str(name))}"
            if not isinstance(name, str):
                _refuse(self.tool, here, f"a property's name must be a string; got {name!r:.80}")
            properties[name], required = self._property(value, here)
            if required:
                wanted.append(name)
        node["properties"] = properties
        if wanted and isinstance(node.get("required", []), list):
            before: list[Any] = node.get("required", [])
            node["required"] = [*before, *(name for name in wanted if name not in before)]

    def _property(self, value: Any, path: str) -> tuple[dict[str, Any] | bool, bool]:
        """A property's schema without the `required` that some people write into it, and whether that was true."""
        if isinstance(value, str):
            kind = self._name(value, path)
            value = {} if kind is None else {"type": kind}
        if isinstance(value, bool):
            return value, False
        if not isinstance(value, dict):
            _refuse(self.tool, path, f"a property must be a schema, a dict; got {value!r:.80}")
        schema = cast("dict[str, Any]", value)
        if not isinstance(schema.get("required"), bool):
            return schema, False
        schema = dict(schema)
        return schema, schema.pop("required")

    def _required(self, node: dict[str, Any], path: str) -> None:
        if "required" not in node or (isinstance(node["required"], bool) and path):
            return  # a boolean here is handled with the enclosing object
        required = node["required"]
        if required is None or isinstance(required, bool):
            del node["required"]
            return
        if not _is_list_of_names(required):
            _refuse(self.tool, f"{path}/required", f"required must be a list of names; got {required!r:.80}")
        if not _takes_other_names(node, path):
            self._check_required(required, cast("Mapping[str, Any]", node.get("properties", {})), path)

    def _check_required(self, required: list[str], known: Mapping[str, Any], path: str) -> None:
        for i, name in enumerate(required):
            if name not in known:
                _refuse(
                    self.tool,
                    f"{path}/required/{i}",
                    f"required names {name!r}, which is not among the properties ({', '.join(known) or 'there are none'})."
                    + did_you_mean(near(name, known)),
                )

    def _items(self, node: dict[str, Any]) -> None:
        if isinstance(node.get("items"), list):
            # Draft 7's tuples: the list is prefixItems today, and the schema of further items is `items`.
            node["prefixItems"] = [rebuild(part, self.fix, "/items") for part in node.pop("items")]
            if "additionalItems" in node:
                node["items"] = node.pop("additionalItems")
        elif isinstance(node.get("items"), str) and node["items"].lower() in ALIASES:
            node["items"] = {"type": ALIASES[node["items"].lower()]}

    def _dependencies(self, node: dict[str, Any]) -> None:
        """Draft 7's `dependencies`: today, those with a list of names are apart from those with a schema."""
        depending = node.get("dependencies")
        if not isinstance(depending, Mapping):
            return
        del node["dependencies"]
        for name, part in cast("Mapping[str, Any]", depending).items():
            word = "dependentRequired" if isinstance(part, list) else "dependentSchemas"
            before: Any = node.get(word)
            named = cast("dict[str, Any]", before) if isinstance(before, dict) else {}
            node[word] = {**named, name: rebuild(part, self.fix, "/dependencies")}

    def _enum(self, node: dict[str, Any], path: str) -> None:
        enum = node.get("enum", [None])
        if not isinstance(enum, list) or not enum:
            _refuse(self.tool, f"{path}/enum", f"enum must list at least one value; got {enum!r:.80}")

    def _ref(self, node: dict[str, Any], path: str) -> None:
        for key in ("$ref", "$dynamicRef"):
            if key not in node:
                continue
            ref = node[key]
            if not isinstance(ref, str) or not ref.startswith("#"):
                _refuse(
                    self.tool,
                    f"{path}/{key}",
                    f"the reference {ref!r:.80} leaves the schema, and nothing is ever fetched: "
                    "put its target under $defs and refer to it as #/$defs/Name",
                )
            if name := by_name(ref):
                if self.anchors is None:
                    self.anchors = anchors(self.root)
                node[key] = self.anchors.get(name, ref)
            if resolve(self.root, node[key]) is None:
                _refuse(self.tool, f"{path}/{key}", f"the reference {ref!r} points to nothing in the schema")


def _refuse(tool: str, path: str, why: str) -> NoReturn:
    where = f", at {path}" if path else ""
    raise InvalidTool(f"{schema_of(tool)} is invalid{where}: {why}", tool=tool, path=path)


def _takes_other_names(node: dict[str, Any], path: str) -> bool:
    """Whether an object may have fields that its properties do not list."""
    return _composed(node) or "patternProperties" in node or (bool(path) and "properties" not in node)


def _is_list_of_names(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(name, str) for name in cast("list[Any]", value))
