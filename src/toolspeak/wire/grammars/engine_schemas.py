"""JSON Schemas for inference engines: tools' schemas without what engines reject, and the schema of replies that are
JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...errors import UsageError
from ...schema.walk import rebuild, resolve
from ...types import Schema, Tool
from ..dialect import ARGS, ID, INDEX, NAME, TEXT, Dialect, JsonCall, Kind, Slot
from ..holes.json_call import text_keys
from .arguments import an_object, moved


def readable(schema: Schema) -> dict[str, Any]:
    """The schema without parts for which engines reject all of it: dangling references, patterns with lookaround."""

    def change(node: dict[str, Any], _: str) -> Any:
        ref, pattern = node.get("$ref"), node.get("pattern")
        if ref is not None and not (isinstance(ref, str) and resolve(schema, ref) is not None):
            del node["$ref"]
        if pattern is not None and (not isinstance(pattern, str) or "(?" in pattern):
            del node["pattern"]
        return node

    return rebuild(schema, change)


def json_schema(d: Dialect, tools: Sequence[Tool[..., Any]], choice: str, parallel: bool) -> dict[str, Any]:
    """The schema of a JSON reply: one call, with `parallel` also a list of calls, or the object with a text.

    Raises UsageError if the dialect's calls are no JSON, or if the reply may be text.
    """
    hole = _call_alone(d)
    answer = _answer(hole) if choice in ("auto", "none") else None
    if choice in ("auto", "none") and answer is None:
        raise UsageError(
            f"with choice {choice!r} a reply of {d.name} may be text, which is not JSON; use choice 'required' or the"
            " name of a tool, or form lark, gbnf or structural_tag"
        )
    defs: dict[str, Any] = {}
    calls = [_call(hole, tool, defs, f"tool{i}") for i, tool in enumerate(tools)] if choice != "none" else []
    shapes = _shapes(calls, d, defs, parallel) if calls else []
    shapes += [answer] if answer else []
    schema = _one_of(shapes)
    return {**schema, "$defs": defs} if defs else schema


def _call_alone(d: Dialect) -> JsonCall:
    """The object that is a whole call. Raises UsageError if there are literals around it."""
    hole = d.call[0]
    marks = (d.open, d.close, *(d.items or ("[",))[0].strip().replace("[", "").split())
    if len(d.call) > 1 or not isinstance(hole, JsonCall) or d.header or any(mark.strip() for mark in marks):
        raise UsageError(
            f"no JSON Schema can express {d.name}: its calls are between markers; use form lark, gbnf or structural_tag"
        )
    return hole


def _one_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _shapes(calls: list[dict[str, Any]], d: Dialect, defs: dict[str, Any], parallel: bool) -> list[dict[str, Any]]:
    """The possible shapes of a reply with calls: one call, a list of them, or either."""
    one = _one_of(calls)
    if parallel and len(calls) > 1:
        defs["call"] = one
        one = {"$ref": "#/$defs/call"}
    many = {"type": "array", "items": one, "minItems": 1, **({} if parallel else {"maxItems": 1})}
    if d.items:
        return [many]
    return [one, many] if parallel else [one]


def _object(rows: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": rows, "required": list(rows), "additionalProperties": False}


def _call(hole: JsonCall, tool: Tool[..., Any], defs: dict[str, Any], place: str) -> dict[str, Any]:
    """The object of a call. Definitions that its arguments refer to are placed under `place`."""
    arguments = readable(an_object(tool.parameters))
    if hole.encoded == "always":
        arguments = {"type": "string"}
    elif (there := moved(arguments, f"#/$defs/{place}")) != arguments:
        defs[place], arguments = there, {"$ref": f"#/$defs/{place}"}
    values: dict[Slot, Any] = {
        NAME: {"const": tool.name},
        ARGS: arguments,
        ID: {"type": "string"},
        INDEX: {"type": "string"},
        TEXT: {"const": ""},
    }
    return _object(
        {
            tool.name if isinstance(key, Slot) else key: {"const": slot.call}
            if isinstance(slot, Kind)
            else values[slot]
            for key, slot in hole.keys
            if isinstance(slot, Kind) or slot in values
        }
    )


def _answer(hole: JsonCall) -> dict[str, Any] | None:
    """The object that has a text."""
    keys = text_keys(hole)
    if keys is None:
        return None
    values: dict[str, Any] = {}
    for key, slot in keys:
        kind = {"const": slot.text} if isinstance(slot, Kind) else {"type": "string" if slot is TEXT else "null"}
        values[key] = kind
    return _object(values)


COVERED = frozenset({
    "type", "properties", "required", "items", "enum", "const", "additionalProperties", "description", "title",
    "default", "examples", "$comment",
})  # fmt: skip
"""Schema keywords that every grammar form enforces, or that constrain nothing."""


def says_all(schema: Any) -> bool:
    """Whether every value that a grammar of this schema allows is certain to match the schema."""
    if not isinstance(schema, Mapping):
        return isinstance(schema, bool)
    node = cast("Mapping[str, Any]", schema)
    inner = [*cast("Mapping[str, Any]", node.get("properties", {})).values()]
    inner += [node[key] for key in ("items", "additionalProperties") if key in node]
    return COVERED.issuperset(node) and all(map(says_all, inner))
