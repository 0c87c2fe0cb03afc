"""Reads one part of a configuration file, for commands that need no more.

What is wrong in the other parts does not concern them, such as the secret of a model's server that is not set here.
"""

from __future__ import annotations

from pathlib import Path

from ...errors import UsageError
from ...files import read_text
from ...schema.suggestions import listed
from .fields import Table, top_table
from .mcp_servers import read_mcp_server
from .settings import McpServer


def key_names(path: str) -> list[str]:
    """Return the names of the keys in a file. Raises UsageError if it cannot be read."""
    return _table(path, "keys").names()


def mcp_server(path: str, name: str) -> McpServer:
    """Return the MCP server of that name in a file. Raises UsageError for a missing or wrong one."""
    servers = _table(path, "mcp")
    if not servers.has(name):
        there = f"There are {listed(servers.names())}" if servers.names() else "There is none"
        raise UsageError(f"{path} has no table [mcp.{name}]. {there}")
    server = read_mcp_server(name, servers.table(name))
    servers.file.done()
    return server


def _table(path: str, name: str) -> Table:
    """Return the table of that name; an empty one if it is missing."""
    file = Path(path)
    table = top_table(read_text(file), path, file.parent).table(name)
    table.file.done()
    return table
