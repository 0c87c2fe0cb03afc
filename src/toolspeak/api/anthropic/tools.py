"""Reads the tools in a client's request: its functions, the tools that Anthropic defines and the client runs, and
Anthropic's server tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..field_schemas import cannot, set_fields
from ..json_stream import Payload
from .client_tools import client_tool
from .computer_toolsets import MEMBER, members
from .content import ContentReader, need

FIELDS = (
    "name", "type", "description", "input_schema", "strict", "defer_loading", "input_examples", "eager_input_streaming",
    "display_width_px", "display_height_px", "enable_zoom", "configs",
)  # fmt: skip
"""The fields of a tool that are read; any others are reported as ignored."""
SEARCH = "tool_search_tool_"
"""The prefixes of the types of Anthropic's tool search. Our own search replaces it."""


def read_tools(tools: Iterable[tuple[str, Payload]], reading: ContentReader) -> list[Payload]:
    """Return the functions, as dicts, for tools that are given with their places in the request.

    A toolset becomes several functions. A tool of an unknown type is one that the provider would run; it goes to
    `reading.hosted`. If such a tool has a schema, the client is to run it: that raises Refused.
    """
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
                raise cannot(f"{where}.type", f"tools of the type {kind[:50]!r} are not supported; leave the type out")
            reading.hosted.append((kind, f"{where}.{kind[:50]}"))
            continue
        reading.ignored.update(f"tools.{name}" for name in tool if name not in FIELDS)
        own = set_fields(tool, "strict", "description", "input_examples", "defer_loading")
        out.append({"name": need(tool, "name", where), **known, **own})
    return out


def searched_here(tools: list[Payload]) -> bool:
    """Whether the gateway searches deferred tools. A client that defers tools without offering Anthropic's search has
    its own search."""
    if not any(tool.get("defer_loading") is True for tool in tools):
        return True
    return any(str(tool.get("type")).startswith(SEARCH) for tool in tools)


def deferred(rows: list[Payload], places: Mapping[str, int]) -> dict[str, int | None]:
    """Return the names of the tools that are hidden until a message refers to them, each with the index of that message
    (None: no message does)."""
    return {row["name"]: places.get(row["name"]) for row in rows if row.get("defer_loading") is True}


def member_names(rows: list[Payload]) -> dict[str, tuple[str, Payload]]:
    """Return the reported type and name of calls, by the tools' names, for the tools that come from a toolset."""
    return {row["name"]: (MEMBER, row["member"]) for row in rows if "member" in row}


def eager(tools: Iterable[Payload]) -> frozenset[str]:
    """Return the names of the tools whose calls are to be streamed while they are written."""
    return frozenset(str(tool.get("name")) for tool in tools if tool.get("eager_input_streaming") is True)
