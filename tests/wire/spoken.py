"""What a dialect can be asked to say: calls that its wire has words for, and the words themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hard_cases import TOOLS
from wire_cases import DIALECTS

from toolspeak.types import Tool, ToolCall
from toolspeak.wire.dialect import Dialect, Raw, Tagged, Tree
from toolspeak.wire.prompt.calls import write_calls
from toolspeak.wire.render import render

__all__ = ["TOOLS"]
CODE_ONLY = [d for d in DIALECTS if any(isinstance(part, Raw) for part in d.call)]
"""Dialects whose wire has but one call: a piece of code."""
TALKING = [d for d in DIALECTS if d not in CODE_ONLY]


def calls_of(*told: tuple[str, dict[str, Any]]) -> list[ToolCall]:
    return [ToolCall("", name, arguments) for name, arguments in told]


def wire(d: Dialect, *told: tuple[str, dict[str, Any]]) -> str:
    """The calls as the dialect writes them."""
    return write_calls(calls_of(*told), d)


def typed_by_schema(d: Dialect) -> bool:
    """Does the wire of the dialect leave it to the schema what a value is?"""
    return any(isinstance(p, Tree) or (isinstance(p, Tagged) and p.typed is None) for p in d.call)


def words(d: Dialect) -> Iterator[str]:
    """The literals around a call of the dialect, in order, without the white space around them."""
    hole_words = [
        word
        for part in d.call
        for word in ([part] if isinstance(part, str) else [getattr(part, key, "") for key in ("open", "mid", "close")])
    ]
    for literal in (d.open, *(d.items or ()), *hole_words, d.close, *_header(d)):
        if isinstance(literal, str) and literal.strip():
            yield literal.strip()


def _header(d: Dialect) -> Sequence[str]:
    return (d.header.start, d.header.stop, *d.header.ends) if d.header else ()


def schema_of(value: Any) -> dict[str, Any]:
    """A schema that the value fits, and no other type does."""
    match value:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case str():
            return {"type": "string"}
        case None:
            return {"type": "null"}
        case list():
            kinds = [schema_of(item) for item in value]
            same = kinds[0] if kinds and all(kind == kinds[0] for kind in kinds) else {}
            return {"type": "array", "items": same}
        case _:
            return {"type": "object", "properties": {key: schema_of(item) for key, item in value.items()}}


def tools_of(*told: tuple[str, dict[str, Any]]) -> list[Tool]:
    """Tools that the calls fit: the last call of a name gives the tool its schema."""
    return list({name: Tool(name, "", schema_of(arguments)) for name, arguments in told}.values())


def sayable(d: Dialect, told: Sequence[tuple[str, dict[str, Any]]], tools: Sequence[Tool[..., Any]]) -> bool:
    """Does rendering these calls tell of nothing that their wire has no words for?"""
    return "unsayable" not in rendered_rules(d, told, tools)


def rendered_rules(d: Dialect, told: Sequence[tuple[str, dict[str, Any]]], tools: Sequence[Tool[..., Any]]) -> set[str]:
    """The rules of the notes on these calls when they are rendered."""
    rows = [
        {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(told)
    ]
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": rows}]
    results = [{"role": "tool", "tool_call_id": row["id"], "content": "done"} for row in rows]
    return {note.rule for note in render([*talk, *results], tools, d).notes}
