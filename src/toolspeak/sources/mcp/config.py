"""Finds the MCP server for a command line, an address, or an entry in another program's configuration file."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit, urlunsplit

from ...errors import MissingExtra, UsageError
from ...files import read_json
from ...schema.phrases import short
from ...schema.suggestions import did_you_mean, listed, near
from ...secret_removal import in_header
from .server_identity import identity, plain_url


@dataclass(frozen=True, slots=True)
class McpAddress:
    """One server: the `command` that starts it, for a connection over standard input and output, or its `url`.

    `env` is added to the few variables that a server gets; `headers` are sent with every request.
    """

    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def description(self) -> str:
        """The server's name in messages: its command line, or its address without user, password and query."""
        if not self.url:
            return shlex.join(self.command)
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @property
    def secrets(self) -> list[str]:
        """Return secrets that answers must not contain: headers, and the secret parts of the address."""
        parts = urlsplit(self.url)
        values = [value for pair in parts.query.split("&") if len(value := pair.partition("=")[2]) >= _KEY]
        if parts.password:
            values.append(parts.password)
        return [*(one for value in self.headers.values() for one in in_header(value)), *values, *map(unquote, values)]

    def seen_from(self, folder: Path) -> str:
        """Return the identity of the server in the lock file: see `server_identity`. Of an address it is the host and the
        path, without the query, which may be secret."""
        return plain_url(self.url) if self.url else identity(self.command, self.cwd, folder)


_KEY = 16
"""The shortest value in an address's query that may be a key; a shorter one is an ordinary word."""


def address(
    server: str | os.PathLike[str] | Sequence[str] | Mapping[str, Any],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> McpAddress:
    """Return the server for a command line (a string or a list of words), an http(s) address, or an entry of
    `mcpServers`.

    Raises UsageError for anything else.
    """
    result = _entry(server) if isinstance(server, Mapping) else _address(server)
    if result.url and (env or cwd):
        raise UsageError(f"{result.description} is not started here: env and cwd are for a command line")
    if result.command and headers:
        raise UsageError(f"headers go to an http address; {result.description} is a command line. Did you mean env?")
    return replace(
        result,
        env={**result.env, **_texts({"env": env}, "env")},
        cwd=os.fspath(cwd) if cwd is not None else result.cwd,
        headers={**result.headers, **_texts({"headers": headers}, "headers")},
    )


def _address(server: Any) -> McpAddress:
    words: list[str]
    if isinstance(server, str):
        if server.strip().lower().startswith(("http://", "https://")):
            return McpAddress(url=_url(server.strip()))
        try:
            words = shlex.split(server)
        except ValueError as error:
            raise UsageError(f"the command line {short(server)} cannot be read: {error}") from None
    elif isinstance(server, os.PathLike):
        words = [os.fspath(cast("os.PathLike[str]", server))]
    else:
        words = [str(word) for word in cast("Iterable[object]", server)] if isinstance(server, Iterable) else []
    if "://" in "".join(words[:1]):
        raise UsageError(f"{short(words[0])} is not an address; expected http://host:port/path")
    if not words:
        raise UsageError('which MCP server? Expected a command line ("npx -y NAME …") or an address ("http://…/mcp")')
    return McpAddress(command=tuple(words))


def _url(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        raise UsageError(f"{short(url)} is not an address; expected http://host:port/path")
    return url


def _entry(entry: Mapping[str, Any]) -> McpAddress:
    """Return the server for an entry in the files of other programs: command, args, env, cwd, or url and headers."""
    command, url = entry.get("command"), entry.get("url")
    if isinstance(url, str) and command is None:
        return McpAddress(url=_url(url), headers=_texts(entry, "headers"))
    if not isinstance(command, str) or not command.strip():
        raise UsageError(
            f"a server is described by its command (and args, env, cwd) or its url; got {short(dict(entry))}"
        )
    args: Any = entry.get("args") or ()
    if not isinstance(args, (list, tuple)) or not all(isinstance(one, str) for one in cast("list[Any]", args)):
        raise UsageError(f"the args of a server are a list of texts; got {short(args)}")
    if not isinstance(entry.get("cwd", ""), str):
        raise UsageError(f"the cwd of a server is the path of a folder; got {short(entry['cwd'])}")
    return McpAddress(command=(command, *cast("list[str]", args)), env=_texts(entry, "env"), cwd=entry.get("cwd"))


def _texts(entry: Mapping[str, Any], what: str) -> dict[str, str]:
    texts: Any = entry.get(what) or {}
    if not isinstance(texts, Mapping) or not all(isinstance(v, str) for v in cast("Mapping[Any, Any]", texts).values()):
        raise UsageError(f"the {what} of a server are texts by name; got {short(texts)}")
    return dict(cast("Mapping[str, str]", texts))


NO_SDK = "MCP servers need the official SDK: pip install 'toolspeak[mcp]'"


def check_there(address: McpAddress) -> None:
    """Raises UsageError for a command line whose program does not exist, and MissingExtra without the extra `mcp`."""
    if find_spec("mcp") is None:
        raise MissingExtra(NO_SDK)
    for program in address.command[:1]:
        if shutil.which(program, path=address.env.get("PATH")) is None:
            where = "" if os.path.dirname(program) else " on the PATH"
            what = "no program that may be executed" if os.path.exists(program) else "no program"
            message = "expected a command line or an address (http://host:port/path)"
            raise UsageError(f"there is {what} {short(program)}{where}; {message}")


def read_servers(path: str | os.PathLike[str]) -> dict[str, Mapping[str, Any]]:
    """Return the servers in a JSON file with `mcpServers` (or `servers`), as desktop programs and editors have it, by
    name. Disabled servers are left out."""
    file = Path(path).expanduser()
    return named_in(read_json(file), file)


def unmatched(patterns: Iterable[str], names: Collection[str], where: str) -> Iterator[str]:
    """Yield a text for each pattern that matches no name of a server's tools."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            yield f"no tool of {where} is named {pattern!r}.{did_you_mean(near(pattern, names)) or f' There are {listed(names)}'}"


def with_names(spec: str) -> tuple[str, list[str]]:
    """Split `http://…/mcp#a,b` into an MCP server and the names of the tools that are wanted."""
    head, mark, tail = spec.rpartition("#")
    names = tail.split(",") if mark else [""]
    return (head, names) if all(re.fullmatch(r"[\w.*\-/]+", name) for name in names) else (spec, [])


def named_in(value: Any, file: Path) -> dict[str, Mapping[str, Any]]:
    """Return the servers that a file's JSON names. UsageError if it names none."""
    servers = servers_in(value)
    if not servers:
        raise UsageError(
            f'{file} names no servers; expected {{"mcpServers": {{"NAME": {{"command": "…", "args": […]}}}}}}'
        )
    return servers


def servers_in(value: Any) -> dict[str, Mapping[str, Any]] | None:
    """Return the servers that a file's JSON names; None if it names none."""
    if not isinstance(value, Mapping):
        return None
    config = cast("Mapping[str, Any]", value)
    servers: Any = config.get("mcpServers", config.get("servers"))
    if not isinstance(servers, Mapping) or not all(
        isinstance(one, Mapping) for one in cast("Mapping[Any, Any]", servers).values()
    ):
        return None
    return {
        str(name): one
        for name, one in cast("Mapping[Any, Mapping[str, Any]]", servers).items()
        if not one.get("disabled")
    }
