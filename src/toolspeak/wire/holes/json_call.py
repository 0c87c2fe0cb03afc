"""Reads and writes a whole call as one JSON object (`dialect.JsonCall`), with its keys in any order, and gives its
grammar.

The same object may have a text instead of a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...types import Schema, Tool, ToolCall
from ..dialect import ARGS, ID, INDEX, NAME, TEXT, JsonCall, Kind, Slot
from ..reading.call import Call
from ..reading.json_tokens import quoted
from ..reading.source import Scan
from ..reading.state import State
from . import json_args, json_call_fast_path, json_call_reader

if TYPE_CHECKING:
    from ..grammars.rules import Node, Pattern, Rules

QUOTE = "\"'"


def read(s: State, hole: JsonCall, call: Call, beyond: tuple[str, ...] = ()) -> Scan[None]:
    """Reads the object after its brace: in one step if it has arrived completely and is written exactly in the
    dialect, otherwise key by key. The words `beyond` end it."""
    if not json_call_fast_path.read(s, hole, call):
        yield from json_call_reader.read(s, hole, call, beyond)


def write(hole: JsonCall, call: ToolCall) -> str:
    """The object of a call. Arguments that are text already stay unchanged."""
    encoded = hole.encoded == "always" or (hole.encoded == "text" and bool(call.json))
    laid_out = hole.indent is not None and call.arguments and not encoded
    source = call.arguments if laid_out else call.json or call.arguments
    call_id, arguments = quoted(call.id), json_args.write(source, encoded, hole.indent)
    values = {NAME: quoted(call.name), ID: call_id, INDEX: call_id, ARGS: arguments, TEXT: '""'}
    rows: list[str] = []
    for key, slot in hole.keys:
        value = quoted(slot.call) if isinstance(slot, Kind) else values.get(slot)
        if value is not None:
            rows.append(f"{quoted(call.name if isinstance(key, Slot) else key)}: {value}")
    if hole.indent is None:
        return "{" + ", ".join(rows) + "}"
    pad = "\n" + " " * hole.indent
    return "{" + pad + ("," + pad).join(row.replace("\n", pad) for row in rows) + "\n}"


def grammar(hole: JsonCall, tool: Tool[..., Any], rules: Rules, call_id: Node | None) -> Node:
    """The object of a call of the tool; `call_id` is the grammar of an id, None for any string."""
    from ..grammars.rules import Lit, seq

    pad = "" if hole.indent is None else "\n" + " " * hole.indent
    rows: list[Node] = []
    for key, slot in hole.keys:
        if value := _value(slot, hole, tool, rules, call_id):
            name = tool.name if isinstance(key, Slot) else key
            rows += [Lit((("," + (pad or " ")) if rows else "") + quoted(name) + ": "), value]
    return seq(Lit("{" + pad), *rows, Lit(("\n" if pad else "") + "}"))


def _value(slot: Slot | Kind, hole: JsonCall, tool: Tool[..., Any], rules: Rules, call_id: Node | None) -> Node | None:
    from ..grammars.arguments import an_object
    from ..grammars.rules import CALL_NUMBER, Lit, Token, seq
    from ..grammars.value_grammar import JSON

    if isinstance(slot, Kind):
        return Lit(quoted(slot.call))
    if slot is TEXT:
        return Lit('""')
    if slot is NAME:
        return Lit(quoted(tool.name))
    if slot is ARGS:
        key = (repr(hole), tool.name)
        return rules.ref(key, "arguments", lambda: _arguments(hole, an_object(tool.parameters), rules))
    if slot is ID:
        return JSON.string() if call_id is None else Token(seq(Lit('"'), call_id, Lit('"')))
    return Token(seq(Lit('"'), CALL_NUMBER, Lit('"'))) if slot is INDEX else None


def _arguments(hole: JsonCall, schema: Schema, rules: Rules) -> Node:
    from ..grammars.rules import JsonNode, Lit, alt, seq
    from ..grammars.value_grammar import ENCODED, Values

    if not hole.encoded:
        return JsonNode(schema)
    text = seq(Lit('"'), Values(rules, ENCODED, schema).of(schema), Lit('"'))
    return text if hole.encoded == "always" else alt(text, JsonNode(schema))


def text_grammar(hole: JsonCall) -> Node | None:
    """The object that has a text instead of a call; None if there is none."""
    from ..grammars.rules import Lit, seq
    from ..grammars.value_grammar import JSON

    keys = text_keys(hole)
    if keys is None:
        return None
    rows: list[Node] = []
    for key, slot in keys:
        value = Lit(quoted(slot.text)) if isinstance(slot, Kind) else JSON.string() if slot is TEXT else Lit("null")
        rows += [Lit((", " if rows else "{") + quoted(key) + ": "), value]
    return seq(*rows, Lit("}"))


def text_keys(hole: JsonCall) -> list[tuple[str, Slot | Kind]] | None:
    """The keys of the object that has a text instead of a call, with their slots; None if there is none."""
    kind = next(((key, slot) for key, slot in hole.keys if isinstance(slot, Kind) and slot.text), None)
    text = next((key for key, slot in (*hole.keys, *hole.also) if slot is TEXT), None)
    if kind and text:
        return [(str(kind[0]), kind[1]), (str(text), TEXT)]
    if any(slot is TEXT for _, slot in hole.keys):
        return [(key, slot) for key, slot in hole.keys if isinstance(key, str)]
    return None


def openings(hole: JsonCall, names: Sequence[str]) -> list[Pattern]:
    """How calls of these tools may begin if they have no mark of their own."""
    keys = [*hole.keys, *hole.also]
    named = _name_keys(keys)
    patterns: list[Pattern] = [(QUOTE, named, QUOTE, "", ":", "", QUOTE, tuple(names), QUOTE)] if named else []
    if NAME in dict(keys) and len(patterns) < len(keys):
        patterns.append(("{", "", QUOTE, tuple(names), QUOTE))
    return patterns


def first_keys(hole: JsonCall) -> list[Pattern]:
    """How an object may begin that is a call of any name, and a list of such objects."""
    keys = _name_keys(hole.keys)
    return [("", *list_of, "{", "", QUOTE, keys, QUOTE) for list_of in ((), ("[", ""))]


def _name_keys(keys: Sequence[tuple[str | Slot, Slot | Kind]]) -> tuple[str, ...]:
    """The keys that have the tool's name, or that say that the object is a call."""
    return tuple(key for key, slot in keys if isinstance(key, str) and (slot is NAME or isinstance(slot, Kind)))
