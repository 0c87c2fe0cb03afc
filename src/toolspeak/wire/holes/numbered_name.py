"""One short text that is the call's id and contains its name and a number: `functions.f:0`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dialect import NumberedName
from ..reading.call import Call
from ..reading.marks import Marks
from ..reading.source import Malformed, Scan, token
from ..reading.state import NAMED, State

if TYPE_CHECKING:
    from ..grammars.rules import Node


def read(s: State, hole: NumberedName, call: Call, ends: Marks, followed: bool) -> Scan[None]:
    """Sets the call's id and name, up to one of `ends`, which must come if more of the call follows (`followed`). A
    number alone is a call of the only offered tool."""
    text, hit = yield from token(s, ends)
    text = text.strip()
    if followed and not hit:
        raise Malformed("no name")
    head, mid, tail = text.rpartition(hole.mid)
    name = (head if mid and tail.strip().isdigit() else text).removeprefix(hole.prefix)
    if len(s.tool_names) == 1 and (not name or name.isdigit()) and text[-1:].isdigit():
        s.note("meant-name", text)
        name = s.tool_names[0]
    if not NAMED(name):
        raise Malformed("no name")
    call.id, call.name = text, s.resolve_name(name)


def write(hole: NumberedName, name: str, index: int) -> str:
    """The id of the call with this number."""
    return f"{hole.prefix}{name}{hole.mid}{index}"


def grammar(hole: NumberedName, name: str) -> Node:
    """The id of any call of the tool."""
    from ..grammars.rules import CALL_NUMBER, Lit, seq

    return seq(Lit(hole.prefix + name + hole.mid), CALL_NUMBER)
