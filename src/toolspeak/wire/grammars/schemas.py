"""JSON Schemas: as engines can read them, and of calls that are JSON."""

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
    """The schema without what makes engines refuse it whole: references to nowhere, patterns that look around."""

    def change(node: dict[str, Any], _: str) -> Any:
        ref, pattern = node.get("$ref"), node.get("pattern")
        if ref is not None and not (isinstance(ref, str) and resolve(schema, ref) is not None):
            del node["$ref"]
        if pattern is not None and (not isinstance(pattern, str) or "(?" in pattern):
            del node["pattern"]
        return node

    return rebuild(schema, change)


def json_schema(d: Dialect, tools: Sequence[Tool[..., Any]], choice: str, parallel: bool) -> dict[str, Any]:
    """The schema of a reply that is JSON: one call, with `parallel` a list of calls too, or the object of a text.

    Raises UsageError where the dialect's calls are no JSON, or where the reply may be words.
    """
    hole = _call_alone(d)
    answer = _answer(hole) if choice in ("auto", "none") else None
    if choice in ("auto", "none") and answer is None:
        raise UsageError(
            f"with choice {choice!r} a reply of {d.name} may be words, which are no JSON; use choice 'required' or the"
            " name of a tool, or form lark, gbnf or structural_tag"
        )
    defs: dict[str, Any] = {}
    calls = [_call(hole, tool, defs, f"tool{i}") for i, tool in enumerate(tools)] if choice != "none" else []
    shapes = _shapes(calls, d, defs, parallel) if calls else []
    shapes += [answer] if answer else []
    schema = _one_of(shapes)
    return {**schema, "$defs": defs} if defs else schema


def _call_alone(d: Dialect) -> JsonCall:
    """The object that is all of a call. Raises UsageError where more stands around it."""
    hole = d.call[0]
    marks = (d.open, d.close, *(d.items or ("[",))[0].strip().replace("[", "").split())
    if len(d.call) > 1 or not isinstance(hole, JsonCall) or d.header or any(mark.strip() for mark in marks):
        raise UsageError(
            f"no JSON Schema says what {d.name} writes: its calls stand between marks; use form lark, gbnf or structural_tag"
        )
    return hole


def _one_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _shapes(calls: list[dict[str, Any]], d: Dialect, defs: dict[str, Any], parallel: bool) -> list[dict[str, Any]]:
    """The shapes of a reply that calls: one call, a list of them, or either."""
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
    """The object of a call; what its arguments refer to goes to `place` among the definitions."""
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
    """The object that carries a text."""
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
"""The words of a schema that a grammar holds to in every form, or that ask for nothing."""


def says_all(schema: Any) -> bool:
    """Whether what a grammar of this schema lets through is sure to fit the schema."""
    if not isinstance(schema, Mapping):
        return isinstance(schema, bool)
    node = cast("Mapping[str, Any]", schema)
    inner = [*cast("Mapping[str, Any]", node.get("properties", {})).values()]
    inner += [node[key] for key in ("items", "additionalProperties") if key in node]
    return COVERED.issuperset(node) and all(map(says_all, inner))
