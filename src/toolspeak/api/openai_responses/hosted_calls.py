"""Calls of tools that a provider runs, as items: a search that was made here is written as one, and what such items hold
is read where a client sends its conversation back.

The item of a search has no place for what was found. It stands in a field of our own, `toolspeak`, which clients keep
that send items back as they came; without it, the item says nothing to a model.
"""

from __future__ import annotations

import json
from typing import Any

from ..json_stream import Payload, record, records

SEARCH = "web_search_call"
"""The item of a search in the web that was made for a client."""
STEPS = {SEARCH: ("in_progress", "searching", "completed")}
"""What a stream tells of it."""
OURS = "toolspeak"


def search_fields(arguments: str, result: str) -> Payload:
    """What the item of a search says: the first text among the arguments is what was searched for."""
    query = next((value for value in _object(arguments).values() if isinstance(value, str)), "")
    return {"action": {"type": "search", "query": query}, OURS: {"arguments": arguments or "{}", "result": result}}


def hosted_call(item: Payload) -> tuple[str, str, str] | None:
    """The name of the tool that an item is a call of, its arguments and its result; None where nothing of it is told."""
    name = str(item.get("type")).removesuffix("_call")
    arguments, result = _told(item)
    if not isinstance(result, str):
        return None
    return str(item.get("name") or name), arguments if isinstance(arguments, str) else "{}", result


def _told(item: Payload) -> tuple[Any, Any]:
    """The arguments and the result of a call, as its type has them."""
    match item.get("type"):
        case "web_search_call":
            kept = record(item.get(OURS))
            return kept.get("arguments"), kept.get("result")
        case "file_search_call" if item.get("results"):
            return _dumped(queries=item.get("queries")), _texts(item.get("results"), "text")
        case "code_interpreter_call" if item.get("outputs"):
            return _dumped(code=item.get("code")), _texts(item.get("outputs"), "logs")
        case "mcp_call":
            error = item.get("error")
            return item.get("arguments"), item.get("output") if error is None else _dumped(error=error)
        case _:
            return None, None


def _texts(rows: Any, name: str) -> str:
    return "\n\n".join(str(row[name]) for row in records(rows) if row.get(name))


def _object(text: str) -> Payload:
    try:
        return record(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _dumped(**values: Any) -> str:
    return json.dumps(values, ensure_ascii=False)
