"""MCP servers as sources of tools that run in the gateway."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from ..errors import ToolspeakError, UsageError
from ..sources.mcp import McpTools, mcp
from ..sources.mcp.config import with_names
from ..types import Tool, ToolCall, ToolResult
from .config.settings import McpServer

log = logging.getLogger(__name__)

REST = 10.0
"""Seconds for which a server that could not be had is not asked again."""
PREFIX = "mcp:"
NO_SERVERS: Mapping[str, McpServer] = {}


class Source:
    """The tools of a server, which is connected when it is first needed; `places` is how many calls it gets at once."""

    def __init__(self, box: McpTools, prefix: str = "", places: int = 16) -> None:
        self.box, self.prefix = box, prefix
        self._places = asyncio.Semaphore(places)
        self._until = -math.inf

    async def tools(self, name: str) -> list[Tool[..., Any]]:
        """The tools; none where they cannot be had, which the log tells by this name, and for a while after that."""
        now = asyncio.get_running_loop().time()
        if now < self._until:
            return []
        try:
            found = list(await self.box.aopen())
        except ToolspeakError as error:
            log.warning("the tools of %s cannot be had: %s", name, error)
            self._until = asyncio.get_running_loop().time() + REST
            return []
        return found

    def fitting(self, pattern: str, tools: Iterable[Tool[..., Any]]) -> Iterator[Tool[..., Any]]:
        """Those of its tools whose own names fit a pattern."""
        return (tool for tool in tools if fnmatchcase(tool.name.removeprefix(self.prefix), pattern))

    async def run(self, call: ToolCall, name: str, longest: int) -> ToolResult:
        """The result of a call of the tool with this name; one that failed has its error as the text."""
        async with self._places:
            [result] = await self.box.arun([replace(call, name=name)], limit=longest)
        return replace(result, id=call.id, name=call.name)


def box(source: str, servers: Mapping[str, McpServer] = NO_SERVERS) -> McpTools:
    """The tools of a source, which may be one of the servers; nothing is connected yet. Raises UsageError for what is none."""
    server, only = with_names(source.removeprefix(PREFIX))
    if (len(only), source.startswith(PREFIX)) not in ((0, True), (1, True)):
        raise UsageError(f"expected a tool of an MCP server, such as mcp:http://host/mcp#NAME, got {source[:100]!r}")
    if server in servers:
        return connector(replace(servers[server], only=tuple(only)) if only else servers[server])
    return mcp(server, only=only)


def connector(server: McpServer) -> McpTools:
    """The tools of a server in the configuration; nothing is connected yet. Raises UsageError for what is none."""
    return mcp(
        server.server, prefix=server.prefix, only=server.only, without=server.without,
        env=server.env, cwd=server.cwd, headers=server.headers, timeout=server.timeout,
        pins=server.pins,
    )  # fmt: skip


def parted(grant: str) -> tuple[str, str]:
    """`NAME#PATTERN` in its parts: a server, and which of its tools are meant."""
    name, _, pattern = grant.partition("#")
    return name, pattern or "*"
