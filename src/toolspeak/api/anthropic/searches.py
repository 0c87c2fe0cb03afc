"""Results of a provider's own tools as blocks in an assistant's turn. They are written where a tool of the operator
replaced the provider's, and read where a client sends its conversation back.

A client keeps such a result and sends it back as it is. Its `encrypted_content` is for the server alone: what a search
gave here stands in it, so that the model reads it in later turns too. Of results that come from elsewhere the readable
fields are shown.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from ...types import Message, ToolResult
from ..base64_text import decode_base64
from ..json_stream import Payload, record, records

OURS = "toolspeak:"
"""How the content begins that was written here."""
TITLE = 80
"""Characters of a result that a client is shown as its title."""
CALLS = ("server_tool_use", "mcp_tool_use")
UNREADABLE = ("encrypted_content", "encrypted_stdout", "type", "page_age")


def result_block(result: ToolResult, key: str) -> Payload:
    """The block of a search that was made here: `key` is the id of its call."""
    text = base64.b64encode(result.text.encode("utf-8", "replace")).decode()
    title = next((line for line in result.text.splitlines() if line.strip()), result.name)
    row: Payload = {"type": "web_search_result", "title": title[:TITLE], "url": "", "page_age": None}
    kind = f"{result.name}_tool_result"
    return {"type": kind, "tool_use_id": key, "content": [{**row, "encrypted_content": OURS + text}]}


def split_at_results(blocks: list[Payload]) -> list[tuple[list[Payload], list[Message]]]:
    """The parts of an assistant's turn: each the blocks of one message, and the messages with the results of its calls. A
    call of a provider's tool becomes one of a function where its result follows."""
    results = {str(block.get("tool_use_id")): block for block in blocks if _is_result(block)}
    called = {str(block.get("id")) for block in blocks if block["type"] in CALLS}
    parts: list[tuple[list[Payload], list[Message]]] = [([], [])]
    for block in blocks:
        now, after = parts[-1]
        kind, key = block["type"], str(block.get("id"))
        if key in results and kind in CALLS:
            now.append({**block, "type": "tool_use"})
            after.append({"role": "tool", "tool_call_id": key, "content": _text(results[key].get("content"))})
        elif _is_result(block) and str(block.get("tool_use_id")) in called:
            pass
        elif after:
            parts.append(([block], []))
        else:
            now.append(block)
    return parts


def _is_result(block: Payload) -> bool:
    return re.fullmatch(r"(?!tool_search_tool).*_tool_result", str(block["type"])) is not None


def _text(content: Any) -> str:
    """What a result says to a model."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n\n".join(map(_row, records(content)))
    found = record(content)
    if code := found.get("error_code"):
        return json.dumps({"error": code}, ensure_ascii=False)
    return _row(found)


def _row(row: Payload) -> str:
    sealed = str(row.get("encrypted_content"))
    if sealed.startswith(OURS):
        return _opened(sealed)
    if isinstance(text := row.get("text"), str):
        return text
    return json.dumps({name: value for name, value in row.items() if name not in UNREADABLE}, ensure_ascii=False)


def _opened(sealed: str) -> str:
    return (decode_base64(sealed.removeprefix(OURS)) or b"").decode("utf-8", "replace")
