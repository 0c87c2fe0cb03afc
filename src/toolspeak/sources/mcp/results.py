"""Turns an MCP server's answer into a tool's value: text, structured content, and a description of the rest.

How long a result may be is the same for all tools: `tool_results.LIMIT`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...errors import ToolError

if TYPE_CHECKING:
    from mcp.types import CallToolResult


def value_of(result: CallToolResult) -> Any:
    """The value of a result: its structured content where its text says no more than that, else its text.

    Images, sounds and resources are told in a line each. Raises ToolError with the text where the server says that the
    tool failed.
    """
    text = "\n".join(map(_block_text, result.content))
    if result.is_error:
        raise ToolError(text or "its server did not say why")
    if result.structured_content is not None and (not text.strip() or _same(text, result.structured_content)):
        return result.structured_content
    return text


def _same(text: str, data: Any) -> bool:
    try:
        return bool(json.loads(text) == data)
    except (ValueError, RecursionError):
        return False


def _block_text(block: Any) -> str:
    """One block of content: text as it is, everything else described."""
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type}, {block.mime_type}, {_size(block.data)}]"
        case "resource_link":
            more = ", ".join(filter(None, (block.mime_type, block.description)))
            return f"[resource {block.name}: {block.uri}{f' ({more})' if more else ''}]"
        case "resource":
            inner = block.resource
            if hasattr(inner, "text"):
                return f"[resource {inner.uri}]\n{inner.text}"
            return f"[resource {inner.uri}, {inner.mime_type or 'binary'}, {_size(inner.blob)}]"
        case other:
            return f"[{other}]"


def _size(base64: str) -> str:
    return f"{len(base64) * 3 // 4 - base64[-2:].count('='):,} bytes"
