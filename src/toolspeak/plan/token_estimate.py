"""About how many tokens a text, a message, a tool or a request has, whatever the model: the one estimate there is.

A model's own tokenizer is asked where that can be (`models.http.counting`). Everywhere else this decides: what a request
costs, whether a result fits, when old results are cleared."""

from __future__ import annotations

import json
from typing import Any

from ..api.json_stream import record, records
from ..types import Message, Request, Tool

LETTERS = 4
"""Characters of ASCII in a token, about; any other character is taken for a token of its own."""
IMAGE = 1_000
"""Tokens of an image, about."""
AROUND = 4
"""Tokens that a template puts around a message, about."""


def about(text: str) -> int:
    """About how many tokens a text has."""
    wide = 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))
    return wide + -(-(len(text) - wide) // LETTERS)


def about_message(message: Message) -> int:
    """About how many tokens a message has, with its calls and its thought."""
    total = AROUND + _content(message.get("content")) + about(message.get("reasoning_content") or "")
    for call in records(message.get("tool_calls")):
        function = record(call.get("function"))
        total += about(f"{function.get('name', '')}{function.get('arguments', '')}")
    return total


def about_tool(tool: Tool[..., Any]) -> int:
    """About how many tokens the definition of a tool has."""
    data = (json.dumps(one, ensure_ascii=False, default=str) for one in (tool.parameters, *tool.examples))
    return about(f"{tool.name}{tool.description}{''.join(data)}")


def about_request(request: Request) -> int:
    """About how many tokens a request has, never less than one."""
    total = sum(map(about_tool, request.tools or ())) + about(request.prompt or "")
    return max(1, total + sum(map(about_message, request.messages)))


def _content(content: Any) -> int:
    if isinstance(content, str):
        return about(content)
    return sum(about(part["text"]) if isinstance(part.get("text"), str) else IMAGE for part in records(content))
