"""MCP servers as sources of tools that run in the gateway."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from ..errors import ToolspeakError, UsageError
from ..sources.mcp import McpTools, mcp
from ..sources.mcp.config import unmatched, with_names
from ..types import Tool, ToolCall, ToolResult
from .config.settings import McpServer
from .errors import drop_traceback

log = logging.getLogger(__name__)

REST = 10.0
"""Seconds for which an unavailable server is not tried again."""
PREFIX = "mcp:"
NO_SERVERS: Mapping[str, McpServer] = {}


class ToolSource:
    """The tools of a server, which is connected on first use; `places` is how many calls it gets at once. `grants` are
    the patterns of its tools in the configuration, each with its place there."""

    def __init__(
        self, box: McpTools, prefix: str = "", places: int = 16, grants: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.box, self.prefix = box, prefix
        self._grants = grants
        self._names: list[str] = []
        self._places = asyncio.Semaphore(places)
        self._until = -math.inf

    async def tools(self, name: str) -> list[Tool[..., Any]]:
        """Return the tools. None if they are unavailable, which is logged under this name, and for a while after that."""
        now = asyncio.get_running_loop().time()
        if now < self._until:
            return []
        try:
            tools = list(await self.box.aopen())
        except ToolspeakError as error:
            log.warning("the tools of %s are unavailable: %s", name, error)
            self._until = asyncio.get_running_loop().time() + REST
            return []
        self._check_grants(name, tools)
        return tools

    def _check_grants(self, server: str, tools: Iterable[Tool[..., Any]]) -> None:
        """Log the patterns that match none of the server's tools, whenever these have changed."""
        names = [tool.name.removeprefix(self.prefix) for tool in tools]
        if names == self._names:
            return
        self._names = names
        for place, pattern in self._grants:
            for problem in unmatched((pattern,), names, server):
                log.warning("%s: %s", place, problem)

    def fitting(self, pattern: str, tools: Iterable[Tool[..., Any]]) -> Iterator[Tool[..., Any]]:
        """Yield the tools whose own names match a pattern."""
        return (tool for tool in tools if fnmatchcase(tool.name.removeprefix(self.prefix), pattern))

    async def run(self, call: ToolCall, name: str, longest: int) -> ToolResult:
        """Run a call of the tool with this name and return its result; a failure is a result with the error as text."""
        async with self._places:
            [result] = await self.box.arun([replace(call, name=name)], limit=longest)
        drop_traceback(result.error)
        return replace(result, id=call.id, name=call.name)


def box(source: str, servers: Mapping[str, McpServer] = NO_SERVERS) -> McpTools:
    """Return the tools of a source, not connected yet; it may be one of the servers. Raises UsageError."""
    server, only = with_names(source.removeprefix(PREFIX))
    if (len(only), source.startswith(PREFIX)) not in ((0, True), (1, True)):
        raise UsageError(f"expected a tool of an MCP server, such as mcp:http://host/mcp#NAME, got {source[:100]!r}")
    if server in servers:
        return connector(replace(servers[server], only=tuple(only)) if only else servers[server])
    return mcp(server, only=only)


def connector(server: McpServer) -> McpTools:
    """Return the tools of a configured server, not connected yet. Raises UsageError."""
    return mcp(
        server.server, prefix=server.prefix, only=server.only, without=server.without,
        env=server.env, cwd=server.cwd, headers=server.headers, timeout=server.timeout,
        pins=server.pins,
    )  # fmt: skip


def parted(grant: str) -> tuple[str, str]:
    """Split `NAME#PATTERN` into a server and the pattern of its tools."""
    name, _, pattern = grant.partition("#")
    return name, pattern or "*"
