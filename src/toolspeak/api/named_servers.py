"""MCP servers that a client names in a request, expecting its provider to call their tools.

The gateway never connects to an address that a client sends. If the operator has configured the same server, the client
gets the tools that it wants from that one. Tools whose calls the client wants to approve are left out, because the
gateway does not support that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from .json_stream import Payload, record, records

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NamedServer:
    """A server with the client's `label` for it, and its address.

    `where` are the names of the fields to report as ignored if the operator has no such server. The client wants the
    tools in `only` (None: all) that are not in `without`, and wants to approve the calls of tools that are not in
    `free` (None: of none). `listed`: it knows the tools already.
    """

    label: str
    url: str
    where: tuple[str, ...]
    only: frozenset[str] | None = None
    without: frozenset[str] = NOBODY
    free: frozenset[str] | None = None
    listed: bool = True

    def means(self, name: str, server: Any) -> bool:
        """Whether this is the server with that name or address."""
        return name == self.label or str(server).rstrip("/") == self.url.rstrip("/")

    def offers(self, *names: str) -> bool:
        """Whether a tool with one of these names is offered: it is wanted, and needs no approval."""
        limits = [one for one in (self.only, self.free) if one is not None]
        return self.without.isdisjoint(names) and all(one & {*names} for one in limits)


def in_responses(tools: Any, items: Any) -> tuple[NamedServer, ...]:
    """Return the servers among the tools of the Responses API; `items` are those of the conversation."""
    known = {str(item.get("server_label")) for item in records(items) if item.get("type") == "mcp_list_tools"}
    rows = [(at, tool) for at, tool in enumerate(records(tools)) if tool.get("type") == "mcp"]
    return tuple(_of_tool(tool, f"tools.{at}.mcp", known) for at, tool in rows)


def _of_tool(tool: Payload, where: str, known: set[str]) -> NamedServer:
    label, asks = str(tool.get("server_label")), tool.get("require_approval")
    only = _names(tool.get("allowed_tools"))
    free = None if asks == "never" else frozenset(_names(record(asks).get("never")) or ())
    url = str(tool.get("server_url", ""))
    return NamedServer(label, url, (where,), only=only, free=free, listed=label in known)


def in_messages(servers: Any, tools: Any) -> tuple[NamedServer, ...]:
    """Return the servers that a request of the Messages API names, with its toolsets of them."""
    sets = {
        str(tool.get("mcp_server_name")): (f"tools.{at}.mcp_toolset", tool)
        for at, tool in enumerate(records(tools))
        if tool.get("type") == "mcp_toolset"
    }
    return tuple(_of_server(server, f"mcp_servers.{at}", sets) for at, server in enumerate(records(servers)))


def _of_server(server: Payload, where: str, sets: dict[str, tuple[str, Payload]]) -> NamedServer:
    name, url = str(server.get("name")), str(server.get("url", ""))
    if name in sets:
        place, toolset = sets[name]
        only, without = _enabled(toolset)
        return NamedServer(name, url, (where, place), only=only, without=without)
    old = record(server.get("tool_configuration"))
    if old.get("enabled") is False:
        return NamedServer(name, url, (where,), only=NOBODY)
    return NamedServer(name, url, (where,), only=_names(old.get("allowed_tools")))


def _enabled(toolset: Payload) -> tuple[frozenset[str] | None, frozenset[str]]:
    """Return the tools of a toolset that are wanted (None: all), and those that are not."""
    configs = {name: record(config).get("enabled") for name, config in record(toolset.get("configs")).items()}
    on, off = (frozenset(name for name, wanted in configs.items() if wanted is word) for word in (True, False))
    if record(toolset.get("default_config")).get("enabled") is False:
        return on, off
    return None, off


def _names(value: Any) -> frozenset[str] | None:
    """Return the names in a list, which may be inside an object; None if there is none."""
    names: Any = record(value).get("tool_names", value)
    return frozenset(map(str, cast("list[Any]", names))) if isinstance(names, list) else None
