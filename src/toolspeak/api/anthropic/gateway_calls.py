"""Writes calls that the gateway ran (hosted tools) as blocks of an assistant's turn, and reads them as messages.

A tool of the operator in place of one of Anthropic's is written like that one: `server_tool_use` and the result block
of its type. Any other is written like a tool of an MCP server: `mcp_tool_use` and `mcp_tool_result`. A client stores
these blocks and sends them back unchanged, so the model sees the results again in later turns.

The rows of a web search have a field that only the server reads, `encrypted_content`; our results are stored there. Of
results from other providers, the readable fields are used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ...types import Message, ToolResult
from ..base64_text import SEALED, seal, unseal
from ..json_stream import Payload, record, records
from ..tool_errors import error_text

TITLE = 80
"""The most characters of a result that are used as its title."""
CALLS = ("server_tool_use", "mcp_tool_use")
RAN = {"server_tool_use": "srvtoolu_", "mcp_tool_use": "mcptoolu_"}
"""The prefixes of ids of calls that no client runs."""
UNREADABLE = ("encrypted_content", "encrypted_stdout", "type", "page_age")


def call_block(name: str, key: str, server: str) -> Payload:
    """Return the block of a call without its input. `server` is the name of the MCP server, "" for a tool in place of
    one of Anthropic's."""
    if server == "" and name in CONTENTS:
        return {"type": "server_tool_use", "id": RAN["server_tool_use"] + key, "name": name}
    return {"type": "mcp_tool_use", "id": RAN["mcp_tool_use"] + key, "name": name, "server_name": server or name}


def result_block(result: ToolResult, server: str) -> Payload:
    """Return the block with a call's result."""
    call = call_block(result.name, result.id, server)
    if call["type"] == "mcp_tool_use":
        content = [{"type": "text", "text": result.text}]
        kind, failed = "mcp_tool_result", {"is_error": result.error is not None}
        return {"type": kind, "tool_use_id": call["id"], **failed, "content": content}
    content = CONTENTS[result.name](result)
    return {"type": f"{result.name}_tool_result", "tool_use_id": call["id"], "content": content}


def _searched(result: ToolResult) -> list[Payload]:
    title = next((line for line in result.text.splitlines() if line.strip()), result.name)
    row: Payload = {"type": "web_search_result", "title": title[:TITLE], "url": "", "page_age": None}
    return [{**row, "encrypted_content": seal(result.text.encode("utf-8", "replace"))}]


def _fetched(result: ToolResult) -> Payload:
    source = {"type": "text", "media_type": "text/plain", "data": result.text}
    document = {"type": "document", "source": source, "title": None, "citations": None}
    return {"type": "web_fetch_result", "url": "", "content": document, "retrieved_at": None}


def _executed(result: ToolResult) -> Payload:
    printed = ("stdout", "stderr") if result.error is None else ("stderr", "stdout")
    streams = dict(zip(printed, (result.text, ""), strict=True))
    code = int(result.error is not None)
    return {"type": "code_execution_result", **streams, "return_code": code, "content": []}


CONTENTS: Mapping[str, Callable[[ToolResult], Any]] = {
    "web_search": _searched,
    "web_fetch": _fetched,
    "code_execution": _executed,
}
"""The writer of a result's content, by the names of Anthropic's tools."""


# ------------------------------------------------------------------ read


def split_at_results(blocks: list[Payload]) -> list[tuple[list[Payload], list[Message]]]:
    """Split an assistant's turn at results. Returns for each part the blocks of one message, and the messages with the
    results of its calls. A call of a provider's tool becomes a function call if its result follows."""
    results = {str(block.get("tool_use_id")): block for block in blocks if _is_result(block)}
    called = {str(block.get("id")) for block in blocks if block["type"] in CALLS}
    parts: list[tuple[list[Payload], list[Message]]] = [([], [])]
    for block in blocks:
        now, after = parts[-1]
        kind, key = block["type"], str(block.get("id"))
        if key in results and kind in CALLS:
            own = key.removeprefix(RAN[kind])
            now.append({**block, "type": "tool_use", "id": own})
            after.append({"role": "tool", "tool_call_id": own, "content": _text(results[key])})
        elif _is_result(block) and str(block.get("tool_use_id")) in called:
            pass
        elif after:
            parts.append(([block], []))
        else:
            now.append(block)
    return parts


def _is_result(block: Payload) -> bool:
    return re.fullmatch(r"(?!tool_search_tool).*_tool_result", str(block["type"])) is not None


def _text(block: Payload) -> str:
    """Return a result as text for a model."""
    text = _content(block.get("content"))
    return error_text(text) if block.get("is_error") is True else text


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n\n".join(map(_row, records(content)))
    block = record(content)
    if code := block.get("error_code"):
        return json.dumps({"error": code}, ensure_ascii=False)
    return _row(block)


def _row(row: Payload) -> str:
    sealed = str(row.get("encrypted_content"))
    if sealed.startswith(SEALED):
        return unseal(sealed).decode("utf-8", "replace")
    for text in (row.get("text"), _printed(row), _document(row)):
        if isinstance(text, str):
            return text
    return json.dumps({name: value for name, value in row.items() if name not in UNREADABLE}, ensure_ascii=False)


def _printed(row: Payload) -> Any:
    """Return the text that code printed, if the row has nothing else."""
    printed = [row.get("stdout"), row.get("stderr")]
    if "" not in printed:
        return None
    text, failed = next(((one, at) for at, one in enumerate(printed) if one), ("", 0))
    return text if (row.get("return_code"), row.get("content")) == (failed, []) else None


def _document(row: Payload) -> Any:
    """The text of a page of no address."""
    source = record(record(row.get("content")).get("source"))
    return source.get("data") if (row.get("url"), source.get("type")) == ("", "text") else None
