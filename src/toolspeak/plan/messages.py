"""Adds text to a message."""

from __future__ import annotations

from ..types import Message


def with_text(message: Message, text: str) -> Message:
    """The message with a text after its own: as a new paragraph, or as a new part if the content is a list."""
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": text}]}
    return {**message, "content": f"{content}\n\n{text}" if content else text}
