"""What an assistant said, as its dialect writes it: texts and calls in one turn, or each in a message of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..types import Note, Tool, ToolCall
from .decode import parse
from .syntax import Dialect, Raw
from .turns import Turn
from .write import arguments_of, write_calls


def said(text: str, calls: Sequence[ToolCall], d: Dialect, first: int = 0) -> str:
    """A whole turn of the assistant: its text, then its calls; `first` is the number of calls before it in the chat."""
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


def example(d: Dialect, taken: Sequence[str] = ()) -> str:
    """A call as the dialect writes it, of a tool that is not there: who repeats it has called nothing.

    `taken` are the names of the tools that are.
    """
    raw = next((part for part in d.call if isinstance(part, Raw)), None)
    if raw:
        return write_calls((ToolCall("", raw.tool, {raw.key: "value"}),), d)
    name = "example_tool"
    while name in taken:
        name += "_"
    return write_calls((ToolCall("", name, {"first_parameter": "value", "second_parameter": 2}),), d)


def unsayable(turns: Sequence[Turn], d: Dialect, tools: Sequence[Tool[..., Any]]) -> list[Note]:
    """Calls of offered tools that the dialect writes in such a way that something else is read."""
    offered = {tool.name for tool in tools}
    notes: list[Note] = []
    for turn in turns:
        calls = [call for call in turn.calls if call.name in offered]
        for call in calls:
            read = parse(write_calls((call,), d), d, tools, "").calls
            if [(c.name, c.arguments) for c in read] != [(call.name, arguments_of(call))]:
                notes.append(Note("unsayable", f"message {turn.at}: {call.name}"))
    return notes
