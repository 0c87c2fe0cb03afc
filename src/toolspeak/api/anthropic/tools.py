"""Reads the tools that a client of the Messages API offers: its own, those that it runs by their type, and Anthropic's."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...types import Schema
from ..field_schemas import FLAG, cannot, set_fields
from ..json_stream import Payload
from .client_tools import client_tool
from .content import Reading, need
from .toolsets import MEMBER, members

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
        "configs": {"type": ["object", "null"]},
    },
}
FIELDS = (
    "name", "type", "description", "input_schema", "strict", "defer_loading", "input_examples", "eager_input_streaming",
    "display_width_px", "display_height_px", "enable_zoom", "configs",
)  # fmt: skip
"""The fields of a tool that are read; the others are named as ignored."""
SEARCH = "tool_search_tool_"
"""How the types of tools begin that search among those that are deferred: a search of ours does that instead."""
DATED = re.compile(r"[a-z0-9_]+_\d{8}|mcp_toolset")
"""The types of tools that Anthropic defines, by the day. What of them no client runs is run by its servers: nobody runs
that here, so that it is left out."""


def read_tools(tools: list[Payload], reading: Reading) -> list[Payload]:
    """The tools as dicts of functions; a toolset is several. Raises Refused for a type that means nothing."""
    out: list[Payload] = []
    for i, tool in enumerate(tools):
        kind = tool.get("type", "custom")
        if kind in (None, "custom", "function"):
            known: Payload | None = {"parameters": tool.get("input_schema") or {"type": "object"}}
        elif (set_of := members(tool, f"tools.{i}")) is not None:
            reading.ignored.update(f"tools.{name}" for name in tool if name not in FIELDS)
            out += set_of
            continue
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
        own = set_fields(tool, "strict", "description", "input_examples", "defer_loading")
        out.append({"name": need(tool, "name", f"tools.{i}"), **known, **own})
    return out


def searched_here(tools: list[Payload]) -> bool:
    """Whether tools that are not shown are searched for here: a client that defers tools and does not offer Anthropic's
    search has one of its own."""
    if not any(tool.get("defer_loading") is True for tool in tools):
        return True
    return any(str(tool.get("type")).startswith(SEARCH) for tool in tools)


def deferred(rows: list[Payload], references: Mapping[str, int]) -> dict[str, int | None]:
    """The names of the tools that are not shown before a message refers to them, each with the place of that
    message."""
    return {row["name"]: references.get(row["name"]) for row in rows if row.get("defer_loading") is True}


def member_names(rows: list[Payload]) -> dict[str, tuple[str, Payload]]:
    """By the names of members of toolsets how their calls are told."""
    return {row["name"]: (MEMBER, row["member"]) for row in rows if "member" in row}


def eager(tools: list[Payload]) -> frozenset[str]:
    """The names of the tools whose calls are to be told while they are written."""
    return frozenset(str(tool.get("name")) for tool in tools if tool.get("eager_input_streaming") is True)
