"""Reads what a command names as the source of its tools: a Python file with functions, a JSON file with OpenAI-style
dicts, an OpenAPI document, or MCP servers. Also reads the type or the JSON Schema that `--schema` names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ..errors import UnknownTool, UsageError
from ..files import read_json
from ..plan.extract import extraction
from ..sources.mcp.config import named_in, servers_in, with_names
from ..sources.modules import load, load_type, offered, places
from ..toolbox import Toolbox

MCP, OPENAPI = "mcp:", "openapi:"
"""The prefixes of MCP servers and of OpenAPI documents, before the command line or address."""

ADDRESS = r"(?:localhost|[\w-]+(?:\.[\w-]+)+):\d+/|localhost/|\d+(?:\.\d+){3}/"
"""How an address begins that lacks `http://`."""
ARGUMENT = r"(?<![\w-])[a-z_]+=(?:…|[\"'\[{(])"
"""An argument of a Python function in an error, such as `server="https://…"`."""
SUGGESTED = 5
"""Up to so many tools of a file are suggested, if a command wants one of them."""


def toolbox(specs: Sequence[str]) -> Toolbox:
    """Return the tools of every `FILE`, `FILE:name,name`, `FILE.py:toolbox#name` or `openapi:URL`.

    Raises UsageError, which says what is wrong in which file and where.
    """
    tools: list[Any] = []
    for spec in specs:
        tools += _offered(spec)
    return Toolbox(*tools)


def runnable(box: Toolbox, otherwise: str = "") -> Toolbox:
    """Return the same box if every tool can be run. Raises UsageError with the names of those that cannot; `otherwise` is
    what else the command can do with them."""
    if bare := [tool.name for tool in box if tool.function is None]:
        raise UsageError(
            f"{', '.join(bare)}: a schema without a function cannot be run. Offer the functions of a .py file{otherwise}"
        )
    box.check_injected()
    return box


def names_in(spec: str) -> list[str]:
    """Return the names of tools that follow the source in a specification."""
    if spec.startswith(MCP):
        return with_names(spec.removeprefix(MCP))[1]
    if spec.startswith(OPENAPI):
        return _of_document(spec.removeprefix(OPENAPI))[1]
    source, only = _of_module(spec)
    return [*only, *_of_file(source)[1]]


def named_targets(spec: str) -> tuple[str, ...]:
    """Return `FILE:NAME` or `FILE:TOOLBOX#NAME` for each of a few tools of a file; empty if it has many, cannot be read or
    names MCP servers, which are not started for it. It is not read unless it is a file on this machine."""
    path = Path(spec).expanduser()
    if not path.is_file():
        return ()
    try:
        if path.suffix == ".json" and servers_in(read_json(path)):
            return ()
        names = places(load(path)).values() if path.suffix == ".py" else [tool.name for tool in toolbox([spec])]
    except UsageError:
        return ()
    return tuple(f"{spec}:{name}" for name in names) if len(names) <= SUGGESTED else ()


def narrowed(spec: str, name: str) -> str:
    """Return how one tool of those that a specification names is written."""
    if spec.startswith(MCP):
        return f"{MCP}{with_names(spec.removeprefix(MCP))[0]}#{name}"
    if spec.startswith(OPENAPI):
        return f"{OPENAPI}{_of_document(spec.removeprefix(OPENAPI))[0]}:{name}"
    source, _ = _of_module(spec)
    path, _ = _of_file(source)
    return f"{source}#{name}" if path.suffix == ".py" else f"{path}:{name}"


def _of_module(spec: str) -> tuple[str, list[str]]:
    """Split `FILE.py:box#a,b` into what a Python file offers and the names of the tools wanted of it."""
    source, only = with_names(spec)
    if Path(spec).expanduser().is_file():
        return spec, []
    return (source, only) if _of_file(source)[0].suffix == ".py" else (spec, [])


def _of_file(spec: str) -> tuple[Path, list[str]]:
    """Split `FILE:a,b`. A colon in the name of an existing file does not split it."""
    whole = Path(spec).expanduser()
    head, colon, tail = spec.rpartition(":")
    if not colon or whole.is_file() or not re.fullmatch(r"[^\W\d][\w-]*(?:,[^\W\d][\w-]*)*", tail):
        return whole, []
    return Path(head).expanduser(), tail.split(",")


def _of_document(spec: str) -> tuple[str, list[str]]:
    """Split `pets.json:list_pets` into an OpenAPI document (a file or URL) and the operations wanted."""
    named = re.fullmatch(r"(.*[^:/]):([A-Za-z_*][\w*-]*(?:,[A-Za-z_*][\w*-]*)*)", spec)
    if not named or Path(spec).expanduser().is_file():
        return spec, []
    return named[1], named[2].split(",")


def _offered(spec: str) -> list[Any]:
    if spec.startswith(OPENAPI):
        return _operations(*_of_document(spec.removeprefix(OPENAPI)))
    if spec.startswith(MCP):
        from ..sources.mcp import mcp

        server, only = with_names(spec.removeprefix(MCP))
        return [mcp(server, only=only)]
    source, only = _of_module(spec)
    if only:
        return list(_only(source, only))
    path, names = _of_file(spec)
    if re.match("https?://", spec):
        raise UsageError(f"{spec}: expected openapi:{spec} for an OpenAPI document, or mcp:{spec} for an MCP server")
    if not path.is_file():
        raise UsageError(_missing(path))
    if path.suffix in (".yaml", ".yml"):
        return _operations(*_of_document(spec))
    if path.suffix == ".json":
        return _from_json(path, names)
    if path.suffix != ".py":
        raise UsageError(
            f"{path}: tools come from a .py file (its functions), a .json file (their schemas) or an OpenAPI document"
        )
    return offered(load(path), names, str(path))


def _only(source: str, names: list[str]) -> Toolbox:
    """Return these tools of a source. Raises UsageError for a name that it does not have."""
    try:
        return toolbox([source]).only(*names)
    except UnknownTool as error:
        raise UsageError(f"{source}: {error}") from None


def _operations(document: str, names: list[str]) -> list[Any]:
    """Return the operations of an OpenAPI document, or those named. An error that names an argument of Python says how to
    give it here."""
    from ..sources.openapi import openapi

    if re.match(ADDRESS, document) and not Path(document).expanduser().exists():
        raise UsageError(f"{document}: expected a file or an address. Did you mean openapi:http://{document}?")
    try:
        return list(openapi(document, only=names))
    except UsageError as error:
        if not re.search(ARGUMENT, str(error)):
            raise
        raise UsageError(
            f"{error}. Here, give it in a Python file: write `api = toolspeak.openapi({document!r}, …)` into api.py, and name "
            "api.py:api instead"
        ) from None


def _missing(path: Path) -> str:
    if path.is_dir():
        return f"{path} is a folder; expected a .py or .json file"
    beside = {one.stem: one for one in path.parent.glob("*.py")} if path.parent.is_dir() else {}
    near = difflib.get_close_matches(path.stem, beside, n=2)  # the suffix alone makes no name similar
    hint = f". Did you mean {' or '.join(str(beside[stem]) for stem in near)}?" if near else ""
    return f"there is no file {path}{hint}"


def kind_of(schema: str) -> Any:
    """Return the type, or the JSON Schema in a file, that `--schema` names. Raises UsageError."""
    path = Path(schema).expanduser()
    if path.suffix != ".json":
        return load_type(schema)
    value = read_json(path)
    if not isinstance(value, dict):
        raise UsageError(f"{path}: expected a JSON Schema, which is an object, received {type(value).__name__}")
    try:
        extraction(value)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return cast("dict[str, Any]", value)


# ------------------------------------------------------------------ JSON


def _of_servers(path: Path, servers: Mapping[str, Any], names: list[str]) -> Any:
    """Return the tools of the servers in a file of `mcpServers`, or of those named."""
    from ..sources.mcp import mcp

    if absent := [name for name in names if name not in servers]:
        raise UsageError(f"{path} has no server {', '.join(absent)}. It has: {', '.join(servers)}")
    return mcp({"mcpServers": {name: one for name, one in servers.items() if not names or name in names}})


def _from_json(path: Path, names: list[str]) -> list[Any]:
    value = read_json(path)
    if isinstance(value, dict):
        document = cast("dict[str, Any]", value)
        if {"openapi", "swagger"} & document.keys():
            return _operations(str(path), names)
        if "mcpServers" in document or servers_in(document):
            return [_of_servers(path, named_in(document, path), names)]
        value = document["tools"] if isinstance(document.get("tools"), list) else document
    return _listed_tools(path, cast("list[Any]", value if isinstance(value, list) else [value]), names)


def _listed_tools(path: Path, listed: list[Any], names: list[str]) -> list[Any]:
    """Return the tools of a list in OpenAI's format; only those in `names`, if it is not empty."""
    if not all(isinstance(one, dict) for one in listed):
        raise UsageError(f"{path}: expected a list of tools as OpenAI writes them, each with a name and parameters")
    if not names:
        return listed
    by_name = {(one.get("function") or one).get("name"): one for one in listed}
    if absent := [name for name in names if name not in by_name]:
        raise UsageError(f"{path} has no {', '.join(absent)}. It has: {', '.join(map(str, by_name))}")
    return [by_name[name] for name in names]
