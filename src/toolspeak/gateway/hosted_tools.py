"""Runs tools in the gateway: those of the operator's MCP servers.

There are two ways to offer them. The configuration may map the type of a provider's hosted tool (`web_search`) to a
tool of an MCP server: a request that offers the hosted tool then offers the operator's tool to the model, under the
name of the type. And it may name servers whose tools the models of some keys get besides the client's own, if the model
is free to choose its calls.

Their calls are run here: see `hosted_rounds`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..api.choice import not_run
from ..api.incoming import IncomingRequest
from ..api.named_servers import NamedServer
from ..types import Request, Tool
from .mcp_sources import NO_SERVERS, ToolSource, box, connector, parted

if TYPE_CHECKING:
    from .config.settings import Key, McpServer

log = logging.getLogger(__name__)

HOSTED_TYPES = ("web_search", "web_fetch", "code_execution", "code_interpreter", "file_search", "image_generation")
"""The types of tools that providers run today, without a date. The configuration may name newer ones."""


@dataclass(frozen=True, slots=True)
class Running:
    """A tool that runs here: its source, and its name there."""

    source: ToolSource
    name: str


class HostedTools:
    """The operator's tools: `sources` by the types that they stand for, and those of `servers`. The servers in
    `offered` are for all clients, unless a key says otherwise."""

    def __init__(
        self,
        sources: Mapping[str, str],
        servers: Mapping[str, McpServer] = NO_SERVERS,
        offered: Sequence[str] = (),
        keys: Sequence[Key] = (),
    ) -> None:
        grants = [("server.mcp", offered), *((f"keys.{key.name}.mcp", key.mcp or ()) for key in keys)]
        patterns = [(place, *parted(one)) for place, listed in grants for one in listed]
        self._types = {name: ToolSource(box(source, servers)) for name, source in sources.items()}
        self._servers = {
            name: ToolSource(
                connector(one), one.prefix, one.running,
                [(place, pattern) for place, server, pattern in patterns if server == name],
            )
            for name, one in servers.items()
        }  # fmt: skip
        self._addresses = {name: one.server for name, one in servers.items()}
        self._offered = offered

    async def aclose(self) -> None:
        """Disconnect from the servers; those that were started here have ended afterwards."""
        await asyncio.gather(*(one.box.aclose() for one in (*self._types.values(), *self._servers.values())))

    def close(self) -> None:
        """`aclose`, for code that does not await."""
        if {**self._types, **self._servers}:
            asyncio.run(self.aclose())

    async def add(
        self, incoming: IncomingRequest, running: Mapping[str, Running], key: Key | None
    ) -> tuple[IncomingRequest, dict[str, Running]]:
        """Return the request with the tools of the servers that its client gets, and the sources of all tools that run
        here.

        A tool of the client's own keeps its name.
        """
        granted = self._granted(key)
        if not granted or not _takes_more(incoming):
            return incoming, {**running}
        grants, request = list(map(parted, granted)), incoming.request
        names = list(dict.fromkeys(server for server, _ in grants))
        offers = dict(zip(names, await asyncio.gather(*(self._servers[one].tools(one) for one in names)), strict=True))
        named = {name: self._named(incoming, name) for name in names}
        ran, tools = {**running}, {tool.name: tool for tool in _tools(request)}
        labels: dict[str, str] = {}
        for server, pattern in grants:
            source = self._servers[server]
            for tool in source.fitting(pattern, offers[server]):
                if tool.name not in tools and named[server].offers(tool.name, tool.name.removeprefix(source.prefix)):
                    tools[tool.name] = tool
                    ran[tool.name] = Running(source, tool.name)
                    labels[tool.name] = named[server].label
        offering = replace(incoming, request=replace(request, tools=tuple(tools.values())))
        return _with_servers(offering, labels), ran

    def _named(self, incoming: IncomingRequest, name: str) -> NamedServer:
        """Return an operator's server with the label that the client uses, or with its own name."""
        address = self._addresses[name]
        return next((one for one in incoming.servers if one.means(name, address)), NamedServer(name, "", ()))

    def _granted(self, key: Key | None) -> Sequence[str]:
        """Return the servers, or some of their tools, that the owner of a key gets."""
        own = key.mcp if key else None
        return self._offered if own is None else own

    async def join(self, incoming: IncomingRequest) -> tuple[IncomingRequest, dict[str, Running]]:
        """Return the request with the operator's tools in place of the hosted ones that it asks for, and the sources of
        these tools."""
        running: dict[str, Running] = {}
        if not any((incoming.hosted, incoming.demanded)):
            return incoming, running
        tools = [*_tools(incoming.request)]
        left = set(incoming.ignored)
        used = {tool.name for tool in tools}
        for kind, where in incoming.hosted:
            name = next((one for one in self._types if f"{kind}_".startswith(f"{one}_")), "")
            if name in used:
                continue
            if own := await self._tool(name):
                used.add(name)
                running[name] = Running(self._types[name], own.name)
                tools.append(replace(own, name=name))
                left.discard(where)
        choice = _choice(incoming, running)
        if not running:
            return incoming, running
        request = replace(incoming.request, tools=tuple(tools), choice=choice)
        return replace(incoming, request=request, ignored=tuple(sorted(left))).with_runs(
            dict.fromkeys(running, "")
        ), running

    async def _tool(self, name: str) -> Tool[..., Any] | None:
        """Return the tool for a type; None if there is none, or if its server is unavailable, which is logged."""
        if name not in self._types:
            return None
        tools = await self._types[name].tools(name)
        if len(tools) == 1:
            return tools[0]
        if tools:
            log.warning("the server for %s has %d tools: name one of them (mcp:SERVER#NAME)", name, len(tools))
        return None


def _tools(request: Request) -> tuple[Tool[..., Any], ...]:
    """Return the tools that a request offers already."""
    return tuple(request.tools or ())


def _takes_more(incoming: IncomingRequest) -> bool:
    """Whether the operator's tools may be added: unless the request demands a call, forbids calls, or wants only a value
    of a schema. A client that offers no tool and names no server expects that value from one reply."""
    request = incoming.request
    if request.schema and not (request.tools or incoming.servers):
        return False
    return (request.choice, request.prompt, incoming.several) == ("auto", None, ())


def _with_servers(incoming: IncomingRequest, labels: Mapping[str, str]) -> IncomingRequest:
    """Return the request with the servers that its client named, so that calls of their tools can be reported; `labels`
    are the servers' labels by the names of the tools. A server that offers no tool stays in the list of ignored fields.
    """
    by_label = {label: list[Tool[..., Any]]() for label in labels.values()}
    for tool in _tools(incoming.request):
        if tool.name in labels:
            by_label[labels[tool.name]].append(tool)
    ignored, listings = {*incoming.ignored}, dict[str, tuple[Tool[..., Any], ...]]()
    for one in incoming.servers:
        if one.label in by_label:
            ignored -= {*one.where}
            listings |= {} if one.listed else {one.label: tuple(by_label[one.label])}
    reported = replace(incoming, ignored=tuple(sorted(ignored)), listings=listings)
    return reported.with_runs(labels) if incoming.tells_servers else reported


def _choice(incoming: IncomingRequest, running: Mapping[str, Running]) -> str:
    """Return the tool choice, which may name one of these tools. Raises Refused if it demands a tool that nobody runs."""
    kind = incoming.demanded
    if not kind:
        return incoming.request.choice
    fitting = [name for name in running if kind == "required" or f"{kind}_".startswith(f"{name}_")]
    if not fitting:
        raise not_run(kind)
    return "required" if kind == "required" else fitting[0]
