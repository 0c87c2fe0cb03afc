"""Writes calls that the gateway ran (hosted tools) as items, and reads such items as calls.

A tool of the operator in place of one of the provider's is written like that one: `web_search_call`,
`file_search_call`, `code_interpreter_call`. Any other is written like a tool of an MCP server: `mcp_call`.

Data without a place in the item, such as the arguments and the results of a web search, goes into our own field
`toolspeak`. Clients that send items back unchanged keep it. Other clients drop unknown fields, but request reasoning
with `encrypted_content`, the API's field that only the server reads: they get such an item after each call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...schema.nonblocking_json import loads_or
from ...types import Tool, ToolResult
from ..base64_text import seal, unseal
from ..json_stream import Payload, record, records
from ..tool_errors import error_text

OURS = "toolspeak"
FAILED = "mcp_tool_execution_error"
SEALED_VALUES = 8
"""More values than `sealed_run` writes. A client can seal anything."""


@dataclass(frozen=True, slots=True)
class HostedItem:
    """How the API reports a call that the gateway runs.

    - `kind`: the type of the call's item.
    - `prefix`: the beginning of the item's id.
    - `words`: the names of the stream's events before the result.
    - `fields`: makes the item's fields from the arguments and the result, which is None while the call runs.
    - `written`: the event and the field for the arguments; "" and "" if the API has none.
    """

    kind: str
    prefix: str
    words: tuple[str, ...]
    fields: Callable[[str, ToolResult | None], Payload]
    written: tuple[str, str] = ("", "")

    def last_word(self, result: ToolResult | None) -> str:
        """Return the event of the end of a call; "" if the API has none."""
        if result and result.error:
            return "failed" if self.kind == "mcp_call" else ""
        return "completed"


def _searched(arguments: str, result: ToolResult | None) -> Payload:
    original = {"arguments": arguments, **({} if result is None else {"result": result.text})}
    return {"action": {"type": "search", "query": next(iter(_texts_in(arguments)), "")}, OURS: original}


def _files(arguments: str, result: ToolResult | None) -> Payload:
    row: Payload = {"attributes": {}, "file_id": "", "filename": "", "score": 0}
    rows = None if result is None else [{**row, "text": result.text}]
    return {"queries": _texts_in(arguments), "results": rows, OURS: {"arguments": arguments}}


def _code(arguments: str, result: ToolResult | None) -> Payload:
    outputs = None if result is None else [{"type": "logs", "logs": result.text}]
    code = next(iter(_texts_in(arguments)), "")
    return {"code": code, "container_id": OURS, "outputs": outputs, OURS: {"arguments": arguments}}


def _mcp(arguments: str, result: ToolResult | None) -> Payload:
    fields: Payload = {"arguments": arguments, "output": None, "error": None, "approval_request_id": None}
    if result is None:
        return fields
    if result.error is None:
        return {**fields, "output": result.text}
    return {**fields, "error": {"type": FAILED, "content": [{"type": "text", "text": result.text}]}}


MCP = HostedItem("mcp_call", "mcp", ("in_progress",), _mcp, ("response.mcp_call_arguments", "arguments"))
ITEMS: Mapping[str, HostedItem] = {
    "web_search": HostedItem("web_search_call", "ws", ("in_progress", "searching"), _searched),
    "file_search": HostedItem("file_search_call", "fs", ("in_progress", "searching"), _files),
    "code_interpreter": HostedItem(
        "code_interpreter_call", "ci", ("in_progress", "interpreting"), _code,
        ("response.code_interpreter_call_code", "code"),
    ),
}  # fmt: skip
"""The item types by the types of the provider's tools."""


def begun_events(hosted: HostedItem, value: Payload, at: Payload) -> Iterator[tuple[str, Payload]]:
    """Yield the types and fields of the events of a running call, before it has a result. `value` is the item so far,
    `at` its id and index."""
    first, *others = hosted.words
    yield "response.output_item.added", {"output_index": at["output_index"], "item": value}
    yield f"response.{hosted.kind}.{first}", at
    event, name = hosted.written
    if event:
        yield f"{event}.delta", {**at, "delta": value[name]}
        yield f"{event}.done", {**at, name: value[name]}
    for word in others:
        yield f"response.{hosted.kind}.{word}", at


def listing(key: str, label: str, tools: Sequence[Tool[..., Any]]) -> Payload:
    """Return the item with the tools of an MCP server that the client named; its id is `key`."""
    rows = [
        {"name": one.name, "description": one.description, "input_schema": dict(one.parameters), "annotations": None}
        for one in tools
    ]
    return {"id": key, "type": "mcp_list_tools", "server_label": label, "tools": rows, "error": None}


def listing_events(item: Payload, index: int) -> Iterator[tuple[str, Payload]]:
    """Yield the types and fields of the events of such an item."""
    at = {"item_id": item["id"], "output_index": index}
    yield "response.output_item.added", {"output_index": index, "item": {**item, "tools": []}}
    yield "response.mcp_list_tools.in_progress", at
    yield "response.mcp_list_tools.completed", at
    yield "response.output_item.done", {"output_index": index, "item": item}


def sealed_run(key: str, run: str, arguments: str, result: ToolResult) -> Payload:
    """Return a reasoning item that carries a call and its result, sealed in `encrypted_content`.

    Clients send that field back with the next request, also those that do not know the call's own item. `key` is the id
    of the reasoning item, `run` that of the call's item.
    """
    content = {"item": run, "name": result.name, "arguments": arguments, "result": result.text}
    return {"id": key, "type": "reasoning", "summary": [], "encrypted_content": seal(json.dumps(content).encode())}


def sealed_events(item: Payload, index: int) -> Iterator[tuple[str, Payload]]:
    """Yield the types and fields of the events of such an item."""
    for word in ("added", "done"):
        yield f"response.output_item.{word}", {"output_index": index, "item": item}


# ------------------------------------------------------------------ read


def opened_run(text: Any) -> tuple[str, str, str, str] | None:
    """Return the id of the call's item, the tool's name, the arguments and the result from `sealed_run`; None for
    anything else."""
    content = record(loads_or(unseal(str(text)).decode("utf-8", "replace"), None, values=SEALED_VALUES))
    texts = [text for field in ("item", "name", "arguments", "result") if isinstance(text := content.get(field), str)]
    return (texts[0], texts[1], texts[2], texts[3]) if len(texts) == 4 else None


def hosted_call(item: Payload) -> tuple[str, str, str] | None:
    """Return the tool's name, the arguments and the result of a call's item; None if the item has none."""
    name = str(item.get("type")).removesuffix("_call")
    arguments, result = _arguments_and_result(item)
    sealed = record(item.get(OURS)).get("arguments")
    arguments = sealed if isinstance(sealed, str) else arguments
    if not isinstance(result, str):
        return None
    return str(item.get("name") or name), arguments if isinstance(arguments, str) else "{}", result


def _arguments_and_result(item: Payload) -> tuple[Any, Any]:
    """Return the arguments and the result of a call, in the format of its type."""
    match item.get("type"):
        case "web_search_call":
            return None, record(item.get(OURS)).get("result")
        case "file_search_call" if item.get("results"):
            return _dumped(queries=item.get("queries")), _texts(item.get("results"), "text")
        case "code_interpreter_call" if item.get("outputs"):
            return _dumped(code=item.get("code")), _texts(item.get("outputs"), "logs")
        case "mcp_call":
            error = item.get("error")
            return item.get("arguments"), item.get("output") if error is None else _error(error)
        case _:
            return None, None


def _error(error: Any) -> str:
    """Return the error of a failed call as text for a model."""
    details = record(error)
    texts = _texts(details.get("content"), "text") if details.get("type") == FAILED else ""
    return error_text(texts) if texts else _dumped(error=error)


def _texts(rows: Any, name: str) -> str:
    return "\n\n".join(str(row[name]) for row in records(rows) if name in row)


def _texts_in(arguments: str) -> list[str]:
    """Return the strings among the arguments."""
    return [value for value in record(loads_or(arguments, None)).values() if isinstance(value, str)]


def _dumped(**values: Any) -> str:
    return json.dumps(values, ensure_ascii=False)
