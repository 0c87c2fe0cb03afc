"""Turns an MCP server's result into a tool's value: text, structured content, and descriptions of other content.

The limit on the length of a result is the same for all tools: `tool_results.LIMIT`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import ToolError
from ...schema import nonblocking_json
from ...tool_results import plain_size
from .limits import VALUES

if TYPE_CHECKING:
    from mcp.types import CallToolResult


def value_of(result: CallToolResult) -> Any:
    """Return the value of a result: its structured content if the text says the same, else its text.

    Images, audio and resources become a line each. Raises ToolError with the text if the server reports a failure.
    """
    text = "\n".join(map(_block_text, result.content))
    if result.is_error:
        raise ToolError(text or "its server did not say why")
    if result.structured_content is not None and (not text.strip() or _same(text, result.structured_content)):
        return result.structured_content
    return text


def result_size(result: CallToolResult) -> int:
    """Estimate the characters that `value_of` reads."""
    texts = [getattr(getattr(block, "resource", block), "text", "") for block in result.content]
    return plain_size([result.structured_content, *texts])


def _same(text: str, data: Any) -> bool:
    try:
        return bool(nonblocking_json.loads(text, values=VALUES) == data)
    except (ValueError, RecursionError):
        return False


def _block_text(block: Any) -> str:
    """Return a content block as text; other content is described."""
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
