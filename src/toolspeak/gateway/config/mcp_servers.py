"""Reads the MCP servers in the configuration, and which clients get their tools."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import ToolspeakError
from ...schema.suggestions import did_you_mean, listed, near
from ...sources.mcp.config import check_there
from ..mcp_sources import connector, parted
from .fields import Table, Unexpected, many, number, text, whole
from .settings import GatewaySettings, McpServer


def read_mcp_server(name: str, table: Table) -> McpServer:
    """Return the MCP server in a table. Errors are added to the file's."""
    folder = table.file.folder
    pins, cwd = table.take("pins", text, None), table.take("cwd", text, None)
    command, url = table.take("command", _command, ()), table.take("url", text, "")
    server = McpServer(
        url or command,
        env=_values(table.table("env")),
        cwd=None if cwd is None else str(folder / cwd),
        headers=_values(table.table("headers"), secret=True),
        only=table.take("only", many(text), ()),
        without=table.take("without", many(text), ()),
        prefix=table.take("prefix", text, f"{name}_"),
        timeout=table.take("timeout", number(0.001, 1e6), 60.0),
        running=table.take("running", whole(1, 10_000), 16),
        pins=True if pins is None else str(folder / pins),
    )
    if not re.fullmatch(r"[\w.-]{1,40}", name, re.ASCII):
        table.wrong("expected a name of up to 40 letters, digits, _, . and -")
    if table.has("command") == table.has("url"):
        table.wrong('expected either command or url, such as url = "http://127.0.0.1:9000/mcp"')
    elif server.server:
        _check(server, table)
    table.close()
    return server


def _check(server: McpServer, table: Table) -> None:
    """Find settings with which no connection is possible."""
    try:
        for one in connector(server).servers:
            check_there(one.address)
    except ToolspeakError as error:
        table.wrong(str(error))


def granted(servers: Mapping[str, Any]) -> Callable[[Any], str]:
    """Return a type: the name of a server, optionally with a pattern of its tools after `#`."""

    def take(value: Any) -> str:
        name, _ = parted(text(value))
        if name not in servers:
            meant = did_you_mean(near(name, servers))
            there = meant or (f" There are {listed([*servers])}" if servers else " There is none")
            raise Unexpected(f"the name of a table in [mcp], got {value[:80]!r}.{there}")
        return value

    return take


def mcp_lines(settings: GatewaySettings) -> list[str]:
    """Return the summary lines of the servers: where each one is, and who gets its tools."""
    lines: list[str] = []
    for name, server in settings.mcp.items():
        (address,) = (one.address.description for one in connector(server).servers)
        lines.append(f"mcp     {name}: {address}, for {', '.join(_owners(name, settings))}")
    return lines


def _owners(name: str, settings: GatewaySettings) -> list[str]:
    """Return the keys whose models get tools of this server."""
    grants = [("all", settings.offered), *((f"key {key.name}", key.mcp) for key in settings.keys if key.mcp)]
    owners = [owner for owner, servers in grants if name in (parted(one)[0] for one in servers)]
    return owners or ["nobody"]


def _command(value: Any) -> tuple[str, ...]:
    """A command line, as one string or as a list of words."""
    try:
        words = tuple(shlex.split(value)) if isinstance(value, str) else many(text)(value)
    except ValueError as error:
        raise Unexpected(f"a command line: {error}") from None
    if not words:
        raise Unexpected('a command line, such as "npx -y PACKAGE" or ["npx", "-y", "PACKAGE"]')
    return words


def _values(table: Table, *, secret: bool = False) -> dict[str, str]:
    """Return names with their values: strings or, with `secret`, also references to a variable or a file."""
    values: dict[str, str | None] = {}
    for name in table.names():
        plain = table.holds(name, str) > secret
        values[name] = table.take(name, text, None) if plain else table.secret(name)
    table.close()
    return {name: value for name, value in values.items() if value is not None}
