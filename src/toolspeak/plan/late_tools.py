"""Places tools that were added during a conversation: the prompt describes them there, so that its beginning stays the
same and a server's prefix cache keeps working."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..schema.examples import in_words
from ..types import Message, Tool
from .messages import with_text

LATE = "Tools that can be called from here on:"


def _added(tools: Sequence[Tool[..., Any]], late: Mapping[str, int], end: int) -> dict[int, list[Tool[..., Any]]]:
    """The tools to describe after each message, by its index."""
    added: dict[int, list[Tool[..., Any]]] = {}
    for tool in tools:
        if (at := late.get(tool.name)) is not None and at < end:
            added.setdefault(at, []).append(tool)
    return added


def apart(
    messages: Sequence[Message], tools: Sequence[Tool[..., Any]], late: Mapping[str, int]
) -> tuple[Sequence[Tool[..., Any]], Sequence[Message]]:
    """The tools for the head of the prompt, and the messages with descriptions of the others. `late` maps a tool's
    name to the index of the message that it follows."""
    added = _added(tools, late, len(messages))
    if not added or sum(map(len, added.values())) == len(tools):
        return tools, messages
    names = {tool.name for row in added.values() for tool in row}
    rows = [
        with_text(message, _definitions(added[at])) if at in added else message for at, message in enumerate(messages)
    ]
    return [tool for tool in tools if tool.name not in names], rows


def _definitions(tools: Sequence[Tool[..., Any]]) -> str:
    rows = [
        {"name": one.name, "description": one.description, "parameters": dict(one.parameters)}
        for one in in_words(tools)
    ]
    return "\n".join([LATE, *(json.dumps(row, ensure_ascii=False, default=str) for row in rows)])
