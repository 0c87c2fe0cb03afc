"""Reduces a JSON Schema to the keywords that an engine's constrained decoding supports. Returns the reduced schema and
the dropped keywords.

An engine rejects a schema that it cannot read, or drops it silently, as llama.cpp does beside a prompt. So unsupported
keywords are removed, which allows more values, and the reply is validated against the full schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from ..types import Schema
from .walk import rebuild, resolve

SAYS_NOTHING = frozenset({"title", "description", "default", "examples", "$comment", "$schema", "$id", "deprecated"})
"""Annotation keywords, which constrain nothing: they are kept."""
PLAIN = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs",
    "definitions", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern",
    "format", "nullable",
})  # fmt: skip
SUPPORTED: Mapping[str, frozenset[str]] = {
    "llama.cpp": PLAIN | {"oneOf", "allOf", "prefixItems", "minLength", "maxLength"},
    "xgrammar": PLAIN | {
        "oneOf", "allOf", "prefixItems", "minLength", "maxLength", "patternProperties", "propertyNames",
        "minProperties", "maxProperties", "unevaluatedProperties", "unevaluatedItems",
    },
    "openai": PLAIN - {"nullable"} | {"multipleOf"},
}  # fmt: skip
"""The keywords that each kind of engine enforces: llama.cpp (also Ollama), xgrammar (vLLM, SGLang), OpenAI's `strict`.
"""
FORMATS: Mapping[str, frozenset[str]] = {
    "llama.cpp": frozenset({"date", "time", "date-time", "uuid"}),
    "xgrammar": frozenset(
        {"date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"}
    ),
    "openai": frozenset({"date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}),
}
"""The string formats that each kind of engine supports."""
TYPES = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
LOOKS = re.compile(r"\(\?|\\[bBpPAZzkG1-9]|[*+?}]\+")
"""Matches parts of a regular expression that grammars cannot express or few engines support: lookaround, named
classes, back-references, possessive quantifiers."""


def portable(schema: Schema, engine: str) -> tuple[Schema, tuple[str, ...]]:
    """The schema reduced for the engine, and the dropped keywords with their places (`#/…/pattern`).

    It is never stricter than the original, except that OpenAI needs closed objects. If nothing is dropped, or if the
    engine is unknown, it is the same object.
    """
    if engine not in SUPPORTED:
        return schema, ()
    dropped: list[str] = []
    changed = rebuild(schema, _change(schema, engine, dropped))
    return (changed, tuple(dropped)) if changed != schema else (schema, ())


def _change(root: Schema, engine: str, dropped: list[str]) -> Callable[[dict[str, Any], str], Any]:
    supported, anchored = SUPPORTED[engine] | SAYS_NOTHING, engine == "llama.cpp"

    def change(node: dict[str, Any], path: str) -> Any:
        if engine == "openai":
            _openai(node)
        for word in [
            word for word in node if word not in supported or not _read(word, node[word], root, engine, anchored)
        ]:
            dropped.append(f"#{path}/{word}")
            del node[word]
        return node

    return change


def _read(word: str, value: Any, root: Schema, engine: str, anchored: bool) -> bool:
    """Whether an engine that supports the keyword can read this value of it."""
    match word:
        case "pattern":
            if not isinstance(value, str) or LOOKS.search(value):
                return False
            return not anchored or (value.startswith("^") and value.endswith("$"))
        case "format":
            return value in FORMATS[engine]
        case "$ref":
            return isinstance(value, str) and value.startswith("#") and resolve(root, value) is not None
        case "type":
            return all(kind in TYPES for kind in (cast("list[Any]", value) if isinstance(value, list) else [value]))
        case _:
            return True


def _openai(node: dict[str, Any]) -> None:
    """Replaces keywords that `strict` does not support by equivalent ones: `oneOf` by `anyOf`, and `allOf` of one by
    that one."""
    if "oneOf" in node and "anyOf" not in node:
        node["anyOf"] = node.pop("oneOf")
    parts = node.get("allOf")
    if isinstance(parts, list) and len(cast("list[Any]", parts)) == 1 and isinstance(parts[0], dict):
        part = cast("dict[str, Any]", node.pop("allOf")[0])
        if part.keys().isdisjoint(node):
            node |= part
        else:
            node["allOf"] = [part]
    if "properties" in node and "additionalProperties" not in node:
        node["additionalProperties"] = False
