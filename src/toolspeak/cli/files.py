"""Tools out of files: the public functions of a Python file, OpenAI-style dicts in a JSON file, and MCP servers."""

from __future__ import annotations

import difflib
import inspect
import json
import re
import sys
import traceback
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ..errors import UsageError
from ..sources.mcp.address import servers_in
from ..toolbox import Toolbox
from ..types import Tool

MCP = "mcp:"
"""What an MCP server is told by, before its command line or address."""


def toolbox(specs: Sequence[str]) -> Toolbox:
    """The tools of every `FILE` or `FILE:name,name`. UsageError says what is wrong with which file, and where."""
    found: list[Any] = []
    for spec in specs:
        found += _offered(spec)
    return Toolbox(*found)


def runnable(box: Toolbox) -> Toolbox:
    """The same box, if each of its tools has a function and all that it needs. UsageError names those that do not."""
    if bare := [tool.name for tool in box if tool.function is None]:
        raise UsageError(
            f"{', '.join(bare)}: a schema without a function cannot be run. Offer the functions of a .py file, "
            "or add --dry-run or --explain"
        )
    box.check_injected()
    return box


def split(spec: str) -> tuple[Path, list[str]]:
    """`FILE:a,b` in its parts; a file whose own name holds a colon is that file."""
    whole = Path(spec).expanduser()
    head, colon, tail = spec.rpartition(":")
    if not colon or whole.is_file() or not all(part.isidentifier() for part in tail.split(",")):
        return whole, []
    return Path(head).expanduser(), tail.split(",")


def _offered(spec: str) -> list[Any]:
    if spec.startswith(MCP):
        return [_of_server(spec)]
    path, names = split(spec)
    if not path.is_file():
        raise UsageError(_missing(path))
    if path.suffix == ".json":
        return _from_json(path, names)
    if path.suffix != ".py":
        raise UsageError(f"{path}: tools come from a .py file (its functions) or a .json file (their schemas)")
    module = load(path)
    if names:
        return [_named(module, name, path) for name in names]
    found = list({id(value): value for value in _public(module)}.values())
    if not found:
        raise UsageError(f"{path} holds no public function to offer. Expected at least one `def name(…):`")
    return found


def _missing(path: Path) -> str:
    if path.is_dir():
        return f"{path} is a folder; expected a .py or .json file"
    beside = [one.name for one in path.parent.glob("*.py")] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, beside, n=2)
    hint = f". Did you mean {' or '.join(str(path.parent / name) for name in near)}?" if near else ""
    return f"there is no file {path}{hint}"


def _of_server(spec: str) -> Any:
    """The tools of `mcp:COMMAND LINE` or `mcp:http://…`; a `#a,b` at the end names those that are wanted."""
    from ..sources.mcp import mcp

    server, only = names_apart(spec.removeprefix(MCP))
    return mcp(server, only=only)


def names_apart(server: str) -> tuple[str, list[str]]:
    """A server and the names of its tools that are wanted, told behind it: `http://…/mcp#a,b`."""
    head, mark, tail = server.rpartition("#")
    names = tail.split(",")
    return (head, names) if mark and all(re.fullmatch(r"[\w.*\-/]+", name) for name in names) else (server, [])


def _public(module: types.ModuleType) -> list[Any]:
    """What a file offers: the names in `__all__`, else its tools and the functions that it defines itself."""
    names = vars(module).get("__all__")
    if names is not None:
        return [vars(module)[name] for name in names if name in vars(module)]
    return [
        value
        for name, value in vars(module).items()
        if not name.startswith("_")
        if isinstance(value, Tool) or (inspect.isfunction(value) and value.__module__ == module.__name__)
    ]


def _named(module: types.ModuleType, name: str, path: Path) -> Any:
    if name in vars(module):
        return vars(module)[name]
    offered = [getattr(value, "__name__", "") for value in _public(module)]
    near = difflib.get_close_matches(name, offered, n=2)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise UsageError(f"{path} holds no {name}.{hint} It offers: {', '.join(offered) or 'nothing'}")


# ------------------------------------------------------------------ Python


def load(path: Path) -> types.ModuleType:
    """The module that a file is, run like an import. UsageError with the file, the line and the error if it breaks."""
    full = path.resolve()
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else f"tools_{abs(hash(full))}"
    module = types.ModuleType(name)
    module.__file__ = str(full)
    try:
        code = compile(full.read_bytes(), str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        where = f"{path}, line {error.lineno}" if error.lineno else str(path)
        pointer = f"\n    {error.text.rstrip()}" if error.text else ""
        raise UsageError(f"{where}: {type(error).__name__}: {error.msg}{pointer}") from error
    except (OSError, ValueError) as error:  # unreadable, or bytes that are no source
        raise UsageError(f"{path} cannot be read: {error}") from error
    sys.modules[name] = module  # annotations are resolved through it
    if str(full.parent) not in sys.path:
        sys.path.append(str(full.parent))  # for the files beside it; last, so that it hides no library
    try:
        exec(code, module.__dict__)  # noqa: S102 - the user's own file, named by the user
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(_broken(path, error)) from error
    return module


def _broken(path: Path, error: BaseException) -> str:
    """What a file raised while it was loaded, at its innermost line in that file."""
    if isinstance(error, SyntaxError) and error.filename:  # of a file that this one imports
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == str(path)]
    where = f"{path}, line {own[-1].lineno}" if own else str(path)
    source = f"\n    {own[-1].line}" if own and own[-1].line else ""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SystemExit):
        said += ". It ends the program while it is loaded: put that under if __name__ == '__main__'"
    if isinstance(error, ModuleNotFoundError):
        said += f". Is it installed for {sys.executable}?"
    return f"{where}: {said}{source}"


# ------------------------------------------------------------------ JSON


def _of_servers(path: Path, servers: Mapping[str, Any], names: list[str]) -> Any:
    """The tools of the servers that a file of `mcpServers` names, or of those named."""
    from ..sources.mcp import mcp

    if absent := [name for name in names if name not in servers]:
        raise UsageError(f"{path} names no server {', '.join(absent)}. It names: {', '.join(servers)}")
    return mcp({"mcpServers": {name: one for name, one in servers.items() if not names or name in names}})


def _from_json(path: Path, names: list[str]) -> list[Any]:
    try:
        value: Any = json.loads(path.read_text("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}, line {error.lineno}, column {error.colno}: no JSON: {error.msg}") from error
    except (OSError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if servers := servers_in(value):
        return [_of_servers(path, servers, names)]
    if isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get("tools"), list):
        value = cast("dict[str, Any]", value)["tools"]
    listed = cast("list[Any]", value if isinstance(value, list) else [value])
    if not all(isinstance(one, dict) for one in listed):
        raise UsageError(f"{path}: expected a list of tools as OpenAI writes them, each with a name and parameters")
    if not names:
        return listed
    by_name = {(one.get("function") or one).get("name"): one for one in listed}
    if absent := [name for name in names if name not in by_name]:
        raise UsageError(f"{path} holds no {', '.join(absent)}. It offers: {', '.join(map(str, by_name))}")
    return [by_name[name] for name in names]
