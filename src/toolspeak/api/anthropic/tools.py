"""Reads the tools that a client of the Messages API offers: its own, those that it runs by their type, and Anthropic's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..field_schemas import cannot, set_fields
from ..json_stream import Payload
from .client_tools import client_tool
from .content import Reading, need
from .toolsets import MEMBER, members

FIELDS = (
    "name", "type", "description", "input_schema", "strict", "defer_loading", "input_examples", "eager_input_streaming",
    "display_width_px", "display_height_px", "enable_zoom", "configs",
)  # fmt: skip
"""The fields of a tool that are read; the others are named as ignored."""
SEARCH = "tool_search_tool_"
"""How the types of tools begin that search among those that are deferred: a search of ours does that instead."""


def read_tools(tools: Iterable[tuple[str, Payload]], reading: Reading) -> list[Payload]:
    """The tools, each with where it stands, as dicts of functions; a toolset is several. One of an unknown type runs at its
    provider, like those that are known. Raises Refused for one of an unknown type that has a schema: it was meant for the
    client."""
    out: list[Payload] = []
    for where, tool in tools:
        kind = tool.get("type", "custom")
        if kind in (None, "custom", "function"):
            known: Payload | None = {"parameters": tool.get("input_schema") or {"type": "object"}}
        elif (set_of := members(tool, where)) is not None:
            reading.ignored.update(f"tools.{name}" for name in tool if name not in FIELDS)
            out += set_of
            continue
        elif (known := client_tool(tool)) is None:
            if kind.startswith(SEARCH):
                continue
            if tool.get("input_schema") is not None:
                raise cannot(f"{where}.type", f"a tool of the type {kind[:50]!r} is not known here; leave the type out")
            reading.hosted.append((kind, f"{where}.{kind[:50]}"))
            continue
        reading.ignored.update(f"tools.{name}" for name in tool if name not in FIELDS)
        own = set_fields(tool, "strict", "description", "input_examples", "defer_loading")
        out.append({"name": need(tool, "name", where), **known, **own})
    return out


def searched_here(tools: list[Payload]) -> bool:
    """Whether tools that are not shown are searched for here: a client that defers tools and does not offer Anthropic's
    search has one of its own."""
    if not any(tool.get("defer_loading") is True for tool in tools):
        return True
    return any(str(tool.get("type")).startswith(SEARCH) for tool in tools)


def deferred(rows: list[Payload], places: Mapping[str, int]) -> dict[str, int | None]:
    """The names of the tools that are not shown before a message refers to them, each with the place of that
    message."""
    return {row["name"]: places.get(row["name"]) for row in rows if row.get("defer_loading") is True}


def member_names(rows: list[Payload]) -> dict[str, tuple[str, Payload]]:
    """By the names of members of toolsets how their calls are told."""
    return {row["name"]: (MEMBER, row["member"]) for row in rows if "member" in row}


def eager(tools: Iterable[Payload]) -> frozenset[str]:
    """The names of the tools whose calls are to be told while they are written."""
    return frozenset(str(tool.get("name")) for tool in tools if tool.get("eager_input_streaming") is True)
