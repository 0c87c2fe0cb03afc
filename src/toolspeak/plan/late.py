"""Tools that came up in the middle of a conversation: a prompt tells them there, so that its beginning stays as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..types import Message, Tool

LATE = "Tools that can be called from here on:"


def apart(
    messages: Sequence[Message], tools: Sequence[Tool[..., Any]], late: Mapping[str, int]
) -> tuple[Sequence[Tool[..., Any]], Sequence[Message]]:
    """The tools that stand at the head of a prompt, and the messages with the others, of which `late` tells behind which
    message each came."""
    added: dict[int, list[Tool[..., Any]]] = {}
    for tool in tools:
        if (at := late.get(tool.name)) is not None and at < len(messages):
            added.setdefault(at, []).append(tool)
    if not added or sum(map(len, added.values())) == len(tools):
        return tools, messages
    names = {tool.name for row in added.values() for tool in row}
    rows = [_with(message, added[at]) if at in added else message for at, message in enumerate(messages)]
    return [tool for tool in tools if tool.name not in names], rows


def _with(message: Message, tools: Sequence[Tool[..., Any]]) -> Message:
    """The message with the definitions of the tools behind its text."""
    rows = [{"name": one.name, "description": one.description, "parameters": dict(one.parameters)} for one in tools]
    text = "\n".join([LATE, *(json.dumps(row, ensure_ascii=False, default=str) for row in rows)])
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": text}]}
    return {**message, "content": f"{content}\n\n{text}" if content else text}
