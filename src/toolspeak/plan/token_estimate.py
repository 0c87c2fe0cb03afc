"""Estimates the tokens of a text, a message, a tool or a request, independent of the model. There is no other
estimate.

The model's own tokenizer is used where it is available (`models.http.counting`). Elsewhere this estimate decides: for
the cost of a request, whether a result fits, and when old results are cleared.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ..api.json_stream import record, records
from ..types import Message, Reply, Request, Tool, Usage

LETTERS = 4
"""ASCII characters per token, on average. Any other character counts as one token."""
IMAGE = 1_000
"""Tokens of an image, roughly."""
AROUND = 4
"""Tokens that a template adds to a message, roughly."""


def about(text: str | None) -> int:
    """The estimated tokens of a text."""
    if not text:
        return 0
    wide = 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))
    return wide + -(-(len(text) - wide) // LETTERS)


def about_message(message: Message) -> int:
    """The estimated tokens of a message, with its calls and its thought."""
    total = AROUND + _content(message.get("content")) + about(message.get("reasoning_content"))
    for call in records(message.get("tool_calls")):
        function = record(call.get("function"))
        total += about(f"{function.get('name', '')}{function.get('arguments', '')}")
    return total


def about_tool(tool: Tool[..., Any]) -> int:
    """The estimated tokens of a tool's definition."""
    data = (json.dumps(one, ensure_ascii=False, default=str) for one in (tool.parameters, *tool.examples))
    return about(f"{tool.name}{tool.description}{''.join(data)}")


def about_request(request: Request) -> int:
    """The estimated tokens of a request, at least one."""
    total = sum(map(about_tool, request.tools or ())) + about(request.prompt)
    return max(1, total + sum(map(about_message, request.messages)))


def with_estimate(reply: Reply, request: Request) -> Usage:
    """The usage of a reply. What the model did not report is estimated, because clients manage their context by it."""
    usage, missing = reply.usage, dict[str, int]()
    if not usage.prompt_tokens:
        missing["prompt_tokens"] = about_request(request)
    if not usage.completion_tokens:
        calls = "".join(f"{call.name}{call.json}" for call in reply.calls)
        missing["completion_tokens"] = about(f"{reply.text}{reply.thought}{calls}")
    return replace(usage, **missing, estimated=True) if any(missing.values()) else usage


def _content(content: Any) -> int:
    if isinstance(content, str):
        return about(content)
    return sum(about(part["text"]) if isinstance(part.get("text"), str) else IMAGE for part in records(content))
