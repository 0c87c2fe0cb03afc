"""Replaces images and other non-text parts of messages by marks while a prompt is rendered, and puts them back
afterwards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from ..errors import UsageError
from ..types import Message

MARK = "\ufffc"
"""The object replacement character, which stands for a part."""
PLACE = re.compile(f"{MARK}([0-9]{{1,6}}){MARK}")
Part = dict[str, Any]


def has_parts(messages: Sequence[Message]) -> bool:
    """Whether any message has a part that is not text."""
    return any(
        not isinstance(part.get("text"), str)
        for message in messages
        if isinstance(content := message.get("content"), list)
        for part in content
    )


def detach(messages: Sequence[Message]) -> tuple[list[Message], list[Part]]:
    """The messages with a mark for each non-text part, and these parts."""
    parts: list[Part] = []
    out: list[Message] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            message = cast("Message", {**message, "content": content.replace(MARK, "")})
        elif isinstance(content, list):
            message = cast("Message", {**message, "content": "".join(_marked(part, parts) for part in content)})
        out.append(message)
    return out, parts


def _marked(part: Part, parts: list[Part]) -> str:
    text = part.get("text")
    if isinstance(text, str):
        return text.replace(MARK, "")
    parts.append(part)
    return f"{MARK}{len(parts) - 1}{MARK}"


def put_back(messages: Sequence[Message], parts: Sequence[Part]) -> list[Message]:
    """The messages with each mark replaced by its part. Raises UsageError if a mark was lost."""
    if not parts:
        return list(messages)
    results: list[int] = []

    def filled(content: str) -> list[Part]:
        expanded: list[Part] = []
        for place, piece in enumerate(PLACE.split(content)):
            if place % 2 and int(piece) < len(parts):
                results.append(int(piece))
                expanded.append(parts[results[-1]])
            elif piece and not place % 2:
                expanded.append({"type": "text", "text": piece})
        return expanded

    out: list[Message] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, str) and MARK in content:
            message = cast("Message", {**message, "content": filled(content)})
        out.append(message)
    if sorted(results) != list(range(len(parts))):
        raise UsageError("this model accepts no image or other non-text part at that place of a message")
    return out
