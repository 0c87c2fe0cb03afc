"""The tools that a client of the Messages API offers: its own, those that it runs by their type, and Anthropic's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ...types import Schema
from ..body import FLAG, cannot, given
from ..payloads import Payload
from .client_tools import client_tool
from .content import Reading, need

TOOL: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 256},
        "type": {"type": ["string", "null"]},
        "description": {"type": ["string", "null"]},
        "input_schema": {"type": ["object", "null"]},
        "strict": FLAG,
        "defer_loading": FLAG,
        "input_examples": {"type": ["array", "null"], "maxItems": 100, "items": {"type": "object"}},
        "eager_input_streaming": FLAG,
    },
}
FIELDS = (
    "name", "type", "description", "input_schema", "strict", "defer_loading", "input_examples",
    "display_width_px", "display_height_px", "enable_zoom",
)  # fmt: skip
"""The fields of a tool that are read; the others are named as ignored."""
SEARCH = "tool_search_tool_"
"""How the types of tools begin that search among those that are deferred: a search of ours does that instead."""
DATED = re.compile(r"[a-z0-9_]+_\d{8}|mcp_toolset")
"""The types of tools that Anthropic defines, by the day. What of them no client runs is run by its servers: nobody runs
that here, so that it is left out."""


def read_tools(tools: list[Payload], reading: Reading) -> list[Payload]:
    """The tools as dicts of functions. Raises Refused for a type that means nothing."""
    out: list[Payload] = []
    for i, tool in enumerate(tools):
        kind = tool.get("type", "custom")
        if kind in (None, "custom", "function"):
            known: Payload | None = {"parameters": tool.get("input_schema") or {"type": "object"}}
        elif (known := client_tool(tool)) is None:
            if kind.startswith(SEARCH):
                continue
            if not DATED.fullmatch(kind):
                said = (
                    f"a tool of the type {kind[:50]!r} is not known here; leave the type out and give an input_schema"
                )
                raise cannot(f"tools.{i}.type", said)
            reading.hosted.append((kind, f"tools.{i}.{kind}"))
            continue
        reading.ignored.update(f"tools.{name}" for name in tool if name not in FIELDS)
        out.append({"name": need(tool, "name", f"tools.{i}"), **known, **given(tool, "strict"), **_described(tool)})
    return out


def _described(tool: Payload) -> Payload:
    """The description, with the examples of arguments behind it: that is where every model reads them."""
    examples = [json.dumps(one, ensure_ascii=False) for one in tool.get("input_examples") or ()]
    parts = [tool.get("description"), "\n".join(["Examples of its arguments:", *examples]) if examples else None]
    said = "\n\n".join(part for part in parts if part)
    return {"description": said} if said else {}


def searched_here(tools: list[Payload]) -> bool:
    """Whether tools that are not shown are searched for here: a client that defers tools and does not offer Anthropic's
    search has one of its own."""
    if not any(tool.get("defer_loading") is True for tool in tools):
        return True
    return any(str(tool.get("type")).startswith(SEARCH) for tool in tools)


def deferred(tools: list[Payload], references: Mapping[str, int]) -> dict[str, int | None]:
    """The names of the tools that are not shown before a message refers to them, each with the place of that message."""
    return {tool["name"]: references.get(tool["name"]) for tool in tools if tool.get("defer_loading") is True}
