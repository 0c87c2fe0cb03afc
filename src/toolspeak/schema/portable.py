"""Reduces a JSON Schema to the keywords that an engine's constrained decoding supports. Returns the reduced schema and
what was dropped.

An engine refuses a schema that it cannot read, or, as llama.cpp does beside a prompt, drops it without a word. So what
it does not know is left out, which lets more values through, and the reply is checked against the whole schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from ..types import Schema
from .walk import rebuild, resolve

SAYS_NOTHING = frozenset({"title", "description", "default", "examples", "$comment", "$schema", "$id", "deprecated"})
"""Words that ask for nothing: they stay."""
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
"""The words that each kind of engine holds to: llama.cpp (Ollama too), xgrammar (vLLM, SGLang), OpenAI's `strict`."""
FORMATS: Mapping[str, frozenset[str]] = {
    "llama.cpp": frozenset({"date", "time", "date-time", "uuid"}),
    "xgrammar": frozenset(
        {"date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"}
    ),
    "openai": frozenset({"date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}),
}
"""The formats of strings that each knows."""
TYPES = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
LOOKS = re.compile(r"\(\?|\\[bBpPAZzkG1-9]|[*+?}]\+")
"""What no grammar can say, or few engines know: looking around, classes by name, what was found before."""


def portable(schema: Schema, engine: str) -> tuple[Schema, tuple[str, ...]]:
    """The schema as far as the engine takes it, and the words left out with the place of each (`#/…/pattern`).

    Never stricter than the schema, but that OpenAI's has its objects closed. The very schema where nothing is to be
    left out, or the engine is not known.
    """
    if engine not in SUPPORTED:
        return schema, ()
    dropped: list[str] = []
    made = rebuild(schema, _change(schema, engine, dropped))
    return (made, tuple(dropped)) if made != schema else (schema, ())


def _change(root: Schema, engine: str, dropped: list[str]) -> Callable[[dict[str, Any], str], Any]:
    taken, anchored = SUPPORTED[engine] | SAYS_NOTHING, engine == "llama.cpp"

    def change(node: dict[str, Any], path: str) -> Any:
        if engine == "openai":
            _openai(node)
        for word in [word for word in node if word not in taken or not _read(word, node[word], root, engine, anchored)]:
            dropped.append(f"#{path}/{word}")
            del node[word]
        return node

    return change


def _read(word: str, value: Any, root: Schema, engine: str, anchored: bool) -> bool:
    """Whether an engine that knows the word can read what it says."""
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
    """What `strict` says in other words: one of several is any of them, all of one is that one."""
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
