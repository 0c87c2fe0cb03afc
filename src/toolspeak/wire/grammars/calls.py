"""The grammar of one call in a dialect, and of the section around calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...types import Tool
from ..dialect import (
    DEFAULT_SERVER,
    INDEX,
    NAME,
    SERVER,
    Dialect,
    JsonCall,
    Maybe,
    NumberedName,
    Part,
    Raw,
    Slot,
)
from ..holes import ARGUMENTS, json_call, numbered_name
from .rules import CALL_NUMBER, Lit, Node, Repeat, Rules, Seq, Token, alt, chars, opt, seq


def calls(d: Dialect, tools: Sequence[Tool[..., Any]], rules: Rules) -> list[tuple[Tool[..., Any], Node]]:
    """Each tool that the dialect can call, with the grammar of its call."""
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
        return _object(part, d, tool, rules)
    if isinstance(part, NumberedName):
        return numbered_name.grammar(part, tool.name)
    if isinstance(part, Maybe):
        inner = seq(*(_part(p, d, tool, rules) for p in part.parts))
        return inner if part.written else opt(inner)
    hole = ARGUMENTS[type(part)]
    if not hole.anywhere:
        return hole.grammar(part, tool.parameters, rules)
    body = _shared(lambda: hole.grammar(part, tool.parameters, rules), part, tool, rules)
    return seq(Lit(hole.prefix(part)), body)


def _object(hole: JsonCall, d: Dialect, tool: Tool[..., Any], rules: Rules) -> Node:
    node = json_call.grammar(hole, tool, rules, _id(d) if d.id_length else None)
    parts = node.parts if isinstance(node, Seq) else (node,)
    return seq(*(Lit(_indented(p.text, d)) if isinstance(p, Lit) else p for p in parts))


def _shared(make: Callable[[], Node], hole: Part, tool: Tool[..., Any], rules: Rules) -> Node:
    """The content of a hole as a rule, since a call may occur in several places."""
    return rules.ref((repr(hole), tool.name), "arguments", make)


def _indented(text: str, d: Dialect) -> str:
    """The text with the indentation of a list whose elements are on their own lines."""
    if d.items and len(d.items[0]) > 1:
        return text.replace("\n", "\n" + d.items[0].rpartition("\n")[2])
    return text


def _slot(slot: Slot, d: Dialect, tool: Tool[..., Any]) -> Node:
    if slot is NAME:
        return Lit(tool.name)
    if slot is SERVER:
        return Lit(DEFAULT_SERVER)
    if slot is INDEX:
        return CALL_NUMBER
    return _id(d)


def _id(d: Dialect) -> Node:
    """An id, with as many letters and digits as the dialect specifies."""
    if d.id_length:
        return Token(Repeat(chars("0-9", "A-Z", "a-z"), d.id_length, d.id_length))
    return Token(Repeat(chars("0-9", "A-Z", "a-z", "_", ".", ":", "-"), 1, 64))


def answer(d: Dialect) -> Node | None:
    """The object that has a text instead of a call, if the dialect has one."""
    return json_call.text_grammar(d.call[0]) if isinstance(d.call[0], JsonCall) else None


def section(d: Dialect, each: Sequence[Node], parallel: bool, rules: Rules) -> Node:
    """One call, or several if `parallel`, between the opener and the closer of the section."""
    opener, glue, closer = d.items or ("", d.between, "")
    close = Lit(closer + d.close)
    if parallel:
        more = seq(Repeat(alt(*(seq(Lit(glue), call) for call in each))), close)
        close = rules.ref("more", "more", lambda: more)
    return seq(alt(*(seq(Lit(d.open + opener), call) for call in each)), close)
