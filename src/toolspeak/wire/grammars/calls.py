"""One call of a tool as a dialect writes it, and the section that calls stand in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...types import Tool
from ..jsonscan import quoted
from ..syntax import (
    ARGS,
    ID,
    INDEX,
    NAME,
    TEXT,
    Dialect,
    JsonCall,
    Keywords,
    Kind,
    Maybe,
    NumberedName,
    Part,
    Raw,
    Slot,
)
from .arguments import an_object, arguments
from .rules import Json, Lit, Node, Repeat, Rules, Seq, Token, alt, chars, opt, seq
from .values import ENCODED, JSON, Schema, Values

NUMBER = Token(Repeat(chars("0-9"), 1, 9))
STRING = JSON.string()


def calls(d: Dialect, tools: Sequence[Tool[..., Any]], rules: Rules) -> list[tuple[Tool[..., Any], Node]]:
    """Each tool that the dialect can call, and a call of it."""
    raw = next((part for part in d.call if isinstance(part, Raw)), None)
    return [(tool, _call(d, tool, rules)) for tool in tools if raw is None or tool.name == raw.tool]


def _call(d: Dialect, tool: Tool[..., Any], rules: Rules) -> Node:
    call = seq(*(_part(part, d, tool, rules) for part in d.call))
    if d.header is None:
        return call
    head = "".join(tool.name if part is NAME else str(part) for part in d.header.call)
    opener, _, closer = d.items or ("", "", "")
    return seq(Lit(d.header.start + head + d.header.stop + d.open + opener), call, Lit(closer + d.close))


def _part(part: Part, d: Dialect, tool: Tool[..., Any], rules: Rules) -> Node:
    if isinstance(part, str):
        return Lit(_indented(part, d))
    if isinstance(part, Slot):
        return _slot(part, d, tool)
    if isinstance(part, JsonCall):
        return json_call(part, d, tool, rules)
    if isinstance(part, NumberedName):
        return seq(Lit(part.prefix + tool.name + part.mid), NUMBER)
    if isinstance(part, Maybe):
        inner = seq(*(_part(p, d, tool, rules) for p in part.parts))
        return inner if part.written else opt(inner)
    opener = Lit(part.open if isinstance(part, Keywords) else "")
    return seq(opener, _shared(lambda: arguments(part, tool.parameters, rules), part, tool, rules))


def _shared(make: Callable[[], Node], hole: Part, tool: Tool[..., Any], rules: Rules) -> Node:
    """What a hole holds, as a rule of its own: a call may stand in several places. A text knows its end by its place."""
    return make() if isinstance(hole, Raw) else rules.ref((repr(hole), tool.name), "arguments", make)


def _indented(text: str, d: Dialect) -> str:
    """What is inside a list that stands on lines of its own moves with them."""
    if d.items and len(d.items[0]) > 1:
        return text.replace("\n", "\n" + d.items[0].rpartition("\n")[2])
    return text


def _slot(slot: Slot, d: Dialect, tool: Tool[..., Any]) -> Node:
    if slot is NAME:
        return Lit(tool.name)
    if slot is INDEX:
        return NUMBER
    letters = chars("0-9", "A-Z", "a-z") if d.id_length else chars("0-9", "A-Z", "a-z", "_", ".", ":", "-")
    return Token(Repeat(letters, d.id_length or 1, d.id_length or 64))


def json_call(hole: JsonCall, d: Dialect, tool: Tool[..., Any], rules: Rules) -> Node:
    """The object of a call."""
    pad = "" if hole.indent is None else "\n" + " " * hole.indent
    rows: list[Node] = []
    for key, slot in hole.keys:
        if value := _value(slot, hole, d, tool, rules):
            name = tool.name if isinstance(key, Slot) else key
            rows += [Lit((("," + (pad or " ")) if rows else "") + quoted(name) + ": "), value]
    node = seq(Lit("{" + pad), *rows, Lit(("\n" if pad else "") + "}"))
    parts = node.parts if isinstance(node, Seq) else (node,)
    return seq(*(Lit(_indented(p.text, d)) if isinstance(p, Lit) else p for p in parts))


def _value(slot: Slot | Kind, hole: JsonCall, d: Dialect, tool: Tool[..., Any], rules: Rules) -> Node | None:
    if isinstance(slot, Kind):
        return Lit(quoted(slot.call))
    if slot is TEXT:
        return Lit('""')
    if slot is NAME:
        return Lit(quoted(tool.name))
    if slot is ARGS:
        return _shared(lambda: _arguments(hole, an_object(tool.parameters), rules), hole, tool, rules)
    if slot is ID:
        return Token(seq(Lit('"'), _slot(ID, d, tool), Lit('"'))) if d.id_length else STRING
    return Token(seq(Lit('"'), NUMBER, Lit('"'))) if slot is INDEX else None


def _arguments(hole: JsonCall, schema: Schema, rules: Rules) -> Node:
    if not hole.encoded:
        return Json(schema)
    text = seq(Lit('"'), Values(rules, ENCODED, schema).of(schema), Lit('"'))
    return text if hole.encoded == "always" else alt(text, Json(schema))


def spoken(hole: JsonCall) -> list[tuple[str, Slot | Kind]] | None:
    """The keys of the object that carries a text instead of a call, and what they hold; None where there is none."""
    kind = next(((key, slot) for key, slot in hole.keys if isinstance(slot, Kind) and slot.text), None)
    text = next((key for key, slot in (*hole.keys, *hole.also) if slot is TEXT), None)
    if kind and text:
        return [(str(kind[0]), kind[1]), (str(text), TEXT)]
    if any(slot is TEXT for _, slot in hole.keys):
        return [(key, slot) for key, slot in hole.keys if isinstance(key, str)]
    return None


def answer(d: Dialect) -> Node | None:
    """The object that carries a text instead of a call, in a dialect that has one."""
    keys = spoken(d.call[0]) if isinstance(d.call[0], JsonCall) else None
    if keys is None:
        return None
    rows: list[Node] = []
    for key, slot in keys:
        value = Lit(quoted(slot.text)) if isinstance(slot, Kind) else STRING if slot is TEXT else Lit("null")
        rows += [Lit((", " if rows else "{") + quoted(key) + ": "), value]
    return seq(*rows, Lit("}"))


def section(d: Dialect, each: Sequence[Node], parallel: bool, rules: Rules) -> Node:
    """The calls, one or with `parallel` several, between what opens and closes the section."""
    opener, glue, closer = d.items or ("", d.between, "")
    close = Lit(closer + d.close)
    if parallel:
        more = seq(Repeat(alt(*(seq(Lit(glue), call) for call in each))), close)
        close = rules.ref("more", "more", lambda: more)
    return seq(alt(*(seq(Lit(d.open + opener), call) for call in each)), close)
