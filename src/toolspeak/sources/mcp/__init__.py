"""Tools of MCP servers, as any other tools: `ts.mcp("npx -y @modelcontextprotocol/server-everything")`.

with ts.mcp("http://127.0.0.1:8000/mcp") as tools:
    print(ts.run("What is the weather in Xiamen?", tools=tools).text)
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from ...errors import MissingExtra, UsageError
from ...schema.infer import AnyTool, unique
from ...toolbox import Toolbox
from .. import background_loop
from ..pins import Pins, default_path
from .config import NO_SDK, address, read_servers, servers_in, unmatched
from .session import Server

if TYPE_CHECKING:
    from .server_questions import Elicit


def mcp(
    server: str | os.PathLike[str] | Sequence[str] | Mapping[str, Any],
    *,
    prefix: str = "",
    only: str | Sequence[str] = (),
    without: str | Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    pins: str | os.PathLike[str] | bool = True,
    accept: bool | str | Collection[str] = False,
    elicit: Elicit | None = None,
) -> McpTools:
    """Return the tools of an MCP server as a Toolbox, which connects on first use, or by `with` or `async with`.

    `server` is a command line (a string or a list of words), an http(s) address, an entry of a file with `mcpServers`,
    or such a file (a path that ends in .json). Of a file, all servers are used, and each tool is named `SERVER_TOOL`.
    `env` and `cwd` are for a command line, `headers` for an address. `only` and `without` are names, or patterns of
    names, as the server has them; each must match a tool. `prefix` is put before each name. `timeout` is in seconds,
    for connecting and for each call. `elicit(message, schema)` answers a question that a server asks during a call: it
    returns the fields that the schema describes, or None to decline, and may be async. Without it, the server learns
    that nobody answers questions.

    Definitions are pinned in the file `pins` (True: the user's own; False: none) when they are first seen. A changed
    definition is refused with an InvalidTool that shows the change, until `accept` names it (True: all).
    """
    path = _pins_path(pins)
    if not timeout > 0:
        raise UsageError(f"timeout: expected seconds above 0, got {timeout!r}")
    shared: dict[str, Any] = {
        "only": _listed(only),
        "without": _listed(without),
        "timeout": timeout,
        "pins": Pins(path) if path else None,
        "accept": accept if isinstance(accept, bool) else _listed(accept),
        "elicit": elicit,
    }
    several = _several(server)
    if several is None:
        return McpTools([Server(address(server, env=env, cwd=cwd, headers=headers), prefix=prefix, **shared)])
    return McpTools(
        [
            Server(address(one, env=env, cwd=cwd, headers=headers), prefix=prefix + _prefix(name), **shared)
            for name, one in several.items()
        ]
    )


def _pins_path(pins: object) -> Path | None:
    """The file of the pins; None if they are switched off, which nothing but False does."""
    if isinstance(pins, bool):
        return default_path() if pins else None
    if isinstance(pins, str | os.PathLike):
        return Path(cast("str | os.PathLike[str]", pins))
    raise UsageError(f"pins: expected True, False or the path of a file, got {pins!r:.80}")


def accept(
    server: str | os.PathLike[str] | Sequence[str] | Mapping[str, Any],
    *names: str,
    pins: str | os.PathLike[str] | bool = True,
    **how: Any,
) -> dict[str, str]:
    """Accept what a server offers now, for the named tools or all. Returns the changes by name, as diffs, "" for a new
    tool.

    `how` are the options with which `mcp` finds the server (`env`, `cwd`, `headers`, …). Raises UsageError if pins are
    switched off, and for a name that has not changed.
    """
    path = _pins_path(pins)
    if path is None:
        raise UsageError("pins are switched off: there is nothing to accept")
    store, sources = Pins(path), dict[str, str]()
    with mcp(server, pins=False, **how) as tools:
        for one in tools.servers:
            key = one.key(store)
            changed = store.differences(key, one.offered)
            wanted = {name: tool for name, tool in changed.items() if not names or name in names}
            store.accept(key, [tool for tool in one.offered if tool["name"] in wanted])
            sources |= wanted
    if absent := [name for name in names if name not in sources]:
        raise UsageError(f"nothing has changed in {', '.join(absent)}")
    return sources


def _listed(names: str | Collection[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _prefix(server: str) -> str:
    """Return the prefix for the tools of a server, whose name may be any text: "My notes" becomes My_notes_."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", server).strip("_") + "_"


def _several(server: Any) -> dict[str, Mapping[str, Any]] | None:
    """Return the servers that a file, or the content of one, names; None for a single server. UsageError for no
    servers."""
    if isinstance(server, (str, os.PathLike)) and _is_file(os.fspath(cast("str", server))):
        return read_servers(cast("str", server))
    servers = servers_in(server)
    if servers is not None and not servers:
        raise UsageError("mcpServers names no servers, or disables them all")
    return servers


def _is_file(server: str) -> bool:
    """Whether a file of servers is meant. A command line or an address may also end in .json."""
    if not server.endswith(".json") or server.startswith(("http://", "https://")):
        return False
    return not re.search(r"\s", server) or Path(server).expanduser().is_file()


class McpTools(Toolbox):
    """The tools of MCP servers, kept current: when a server reports a change, its tools are listed again.

    A Toolbox that is derived from it (`|`, `only`, `prefix`, …) has the tools of that moment; closing this one closes
    it too.
    """

    def __init__(self, servers: Sequence[Server]) -> None:
        self.inject = {}
        self.servers = tuple(servers)
        self._own: dict[str, AnyTool] = {}
        for one in self.servers:
            one.on_change = self._renewed

    def __getattr__(self, name: str) -> Any:
        if name != "_tools":  # the tools are known once it has connected
            raise AttributeError(f"{type(self).__name__} has no {name}")
        self.open()
        return self.__dict__["_tools"]

    def __repr__(self) -> str:
        names = ", ".join(one.address.description for one in self.servers)
        return f"<tools of {names}: {', '.join(self._tools)}>" if "_tools" in self.__dict__ else f"<tools of {names}>"

    def open(self) -> Self:
        """Connect to the servers, unless connected. Raises ToolError, UsageError, InvalidTool or DuplicateTool."""
        background_loop.wait(self._open())
        return self

    async def aopen(self) -> Self:
        """Connect to the servers like `open`, without blocking."""
        await background_loop.there(self._open())
        return self

    def close(self) -> None:
        """Disconnect. Servers that were started here have ended when this returns."""
        background_loop.wait(self._close())

    async def aclose(self) -> None:
        """Disconnect like `close`, without blocking."""
        await background_loop.there(self._close())

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await self.aopen()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _open(self) -> None:
        try:
            import mcp as _  # noqa: F401  # pyright: ignore[reportUnusedImport]
        except ImportError as error:
            raise MissingExtra(NO_SDK) from error
        outcomes = await asyncio.gather(*(one.open() for one in self.servers), return_exceptions=True)
        failed = [one for one in outcomes if isinstance(one, BaseException)] or self._amiss()
        if failed:
            await self._close()
            raise failed[0]
        self._gather()

    async def _close(self) -> None:
        self.__dict__.pop("_tools", None)
        await asyncio.gather(*(one.close() for one in self.servers))

    def _amiss(self) -> list[UsageError]:
        """Return errors for patterns of `only` and `without` that match no tool of any server: a misspelled name would
        hide or show the wrong tools."""
        patterns = dict.fromkeys(one for server in self.servers for one in (*server.only, *server.without))
        names = dict.fromkeys(name for server in self.servers for name in server.names)
        where = ", ".join(one.address.description for one in self.servers)
        return list(map(UsageError, unmatched(patterns, names, where)))

    def _renewed(self) -> None:
        """Handle changed tools of a server. Until all servers are connected, partial results are not published."""
        if "_tools" in self.__dict__:
            self._gather()

    def _gather(self) -> None:
        """Publish the tools of all servers. Raises DuplicateTool for a name that two servers have."""
        self._tools = unique([tool for one in self.servers for tool in one.tools.values()])
