"""Writes an assistant's turn in its dialect: text and calls in one turn, or each in a message of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from typing import Any

from ...types import Note, Tool, ToolCall
from ..decode import parse
from ..dialect import Dialect, Raw
from ..holes.hole import arguments_of
from .calls import write_calls
from .turns import Turn


def assistant_turn(text: str, calls: Sequence[ToolCall], d: Dialect, first: int = 0) -> str:
    """A whole turn of the assistant: its text, then its calls. `first` is the number of earlier calls in the
    conversation."""
    if not calls:
        return _text(text, d)
    wire = write_calls(calls, d, first)
    text = text.strip()
    if not text or d.speech.exclusive:
        return wire
    return _text(text, d) + (d.before or d.between if d.header else d.before) + wire


def _text(text: str, d: Dialect) -> str:
    if d.header:
        text = d.header.start + d.header.text + d.header.stop + text
    return d.speech.text + text + d.speech.text_end


def example(d: Dialect, tool_names: Sequence[str] = ()) -> str:
    """A call in the dialect of a tool that does not exist: a model that copies it calls nothing.

    `tool_names` are the names of the tools that exist.
    """
    raw = next((part for part in d.call if isinstance(part, Raw)), None)
    if raw:
        return write_calls((ToolCall("", raw.tool, {raw.key: "value"}),), d)
    name = "example_tool"
    while name in tool_names:
        name += "_"
    return write_calls((ToolCall("", name, {"first_parameter": "value", "second_parameter": 2}),), d)


def worked_calls(tools: Sequence[Tool[..., Any]], d: Dialect) -> str:
    """The examples of tools as calls in the dialect, after a line that introduces them; "" if there are none."""
    calls = [ToolCall("", tool.name, dict(arguments)) for tool in tools for arguments in tool.examples]
    names = frozenset(tool.name for tool in tools)
    good = [call for call in calls if _is_sayable((id(d), names, call.name, _digest(call.arguments)), call, d, tools)]
    return "\n".join(["\n\nExamples of calls:", *(write_calls((call,), d) for call in good)]) if good else ""


def unsayable(turns: Sequence[Turn], d: Dialect, tools: Sequence[Tool[..., Any]]) -> list[Note]:
    """Notes on calls of offered tools that would be read differently from how the dialect writes them."""
    offered = {tool.name: tool for tool in tools}
    names = frozenset(offered)
    schemas: dict[str, bytes] = {}
    notes: list[Note] = []
    for turn in turns:
        for call in turn.calls:
            tool = offered.get(call.name)
            if tool is None:
                continue
            if call.name not in schemas:
                schemas[call.name] = _digest(tool.parameters)
            key = (id(d), names, call.name, schemas[call.name], _digest([call.json, call.arguments]))
            if not _is_sayable(key, call, d, tools):
                notes.append(Note("unsayable", f"message {turn.at}: {call.name}"))
    return notes


_sayable: dict[Hashable, tuple[Dialect, bool]] = {}
"""Caches whether a call is read as it is written, since every turn of a conversation repeats all earlier calls."""
_CACHE_SIZE = 2_048


def _is_sayable(key: Hashable, call: ToolCall, d: Dialect, tools: Sequence[Tool[..., Any]]) -> bool:
    known = _sayable.get(key)
    if known is None:
        read = parse(write_calls((call,), d), d, tools, "").calls
        known = d, [(c.name, c.arguments, c.whole) for c in read] == [(call.name, arguments_of(call), True)]
        while len(_sayable) >= _CACHE_SIZE:
            _sayable.pop(next(iter(_sayable)), None)
        _sayable[key] = known  # keeping the dialect alive keeps its id unique
    return known[1]


def _digest(value: object) -> bytes:
    return hashlib.sha256(json.dumps(value, default=str).encode()).digest()
