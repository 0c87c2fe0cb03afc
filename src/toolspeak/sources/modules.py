"""Python modules and files as tools: the names in `__all__`, else the tools and functions that the module defines."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
import traceback
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..schema.suggestions import listed
from ..toolbox import Toolbox
from ..types import Tool


def module(source: types.ModuleType | str | Path, *names: str) -> Toolbox:
    """Return the public functions of a module, or those named, as a toolbox.

    `source` is a module, the name of an importable one (`package.module`), or the path of a .py file, which is
    executed. Raises UsageError, which says what is wrong and where.
    """
    if isinstance(source, types.ModuleType):
        return Toolbox(*offered(source, names, source.__name__))
    if isinstance(source, Path) or source.endswith(".py"):
        path = Path(source).expanduser()
        return Toolbox(*offered(load(path), names, str(path)))
    return Toolbox(*offered(_imported(source), names, source))


def load_type(spec: str) -> Any:
    """Return the type that `package.module:NAME` or `file.py:NAME` names. Raises UsageError."""
    source, colon, name = spec.rpartition(":")
    if not colon or not name.isidentifier():
        raise UsageError(f"expected MODULE:NAME or FILE.py:NAME, received {spec!r:.80}")
    module = load(Path(source).expanduser()) if source.endswith(".py") else _imported(source)
    return _named(module, name, source, {name: name for name in _types(module)}, "types")


def offered(module: types.ModuleType, names: Any, where: str) -> list[Any]:
    """Return the tools of a module, each once, or the objects with these `names`. Raises UsageError, which names
    `where`."""
    if names:
        return [_named(module, name, where, places(module), "functions") for name in names]
    public = list({id(value): value for value in _public(module) or _toolboxes(module)}.values())
    if not public:
        raise UsageError(
            f"{where} has no public function to offer. Expected at least one `def name(…):`, or a Toolbox as `name = …`"
        )
    return public


def places(module: types.ModuleType) -> dict[str, str]:
    """Return what follows the colon of `FILE:…` for each tool of a module, by its name: a variable, or `toolbox#name`."""
    public, boxes, by_name = _public(module), _toolboxes(module), dict[str, str]()
    for variable, value in vars(module).items():
        if any(value is one for one in boxes):
            by_name |= {tool.name: f"{variable}#{tool.name}" for tool in value}
    for variable, value in vars(module).items():
        if any(value is one for one in public) and not isinstance(value, Toolbox):
            by_name[value.name if isinstance(value, Tool) else getattr(value, "__name__", variable)] = variable
    return by_name


def _toolboxes(module: types.ModuleType) -> list[Any]:
    """Return the public toolboxes of a module, which count if it has no functions or tools."""
    return [value for name, value in vars(module).items() if name[0] != "_" if isinstance(value, Toolbox)]


def load(path: Path) -> types.ModuleType:
    """Execute a file as a module and return it. Raises UsageError with the file, the line and the error."""
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
    except (OSError, ValueError) as error:  # unreadable, or not source code
        raise UsageError(f"{path} cannot be read: {error}") from error
    sys.modules[name] = module  # needed to resolve annotations
    if str(full.parent) not in sys.path:
        sys.path.append(str(full.parent))  # for imports of neighboring files; last, so that they hide no library
    try:
        exec(code, module.__dict__)  # noqa: S102 - the user's own file, named by the user
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(_broken(str(path), error)) from error
    return module


def _imported(name: str) -> types.ModuleType:
    """Return the module of that name. Raises UsageError if it does not exist or fails."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"{name!r} is neither the name of a module nor the path of a .py file")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(f"there is no module {name}. Is it installed for {sys.executable}?") from error
        raise UsageError(_broken(name, error)) from error
    except (Exception, SystemExit) as error:
        raise UsageError(_broken(name, error)) from error


def _public(module: types.ModuleType) -> list[Any]:
    names = vars(module).get("__all__")
    if names is not None:
        return [vars(module)[name] for name in names if name in vars(module)]
    return [
        value
        for name, value in vars(module).items()
        if not name.startswith("_")
        if isinstance(value, Tool) or (_is_function(value) and value.__module__ == module.__name__)
    ]


def _is_function(value: Any) -> bool:
    """Whether a value is a named function."""
    return inspect.isfunction(value) and value.__name__ != "<lambda>"


def _types(module: types.ModuleType) -> list[str]:
    """Return the names of the types that a module defines: classes, and aliases such as a Literal or a union."""
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    classes = [name for name, value in public.items() if inspect.isclass(value) if value.__module__ == module.__name__]
    return classes + [name for name, value in public.items() if typing.get_origin(value)]


def _named(module: types.ModuleType, name: str, where: str, offers: Mapping[str, str], kind: str) -> Any:
    """Return the object with that name in a module. Raises UsageError, which lists what it `offers`: for each name, how it is
    written. `kind` says what these are."""
    if name in vars(module):
        return vars(module)[name]
    near = [offers[one] for one in difflib.get_close_matches(name, offers, n=2)]
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise UsageError(f"{where} has no {name}.{hint} It offers: {listed(tuple(offers.values())) or f'no {kind}'}")


def _broken(where: str, error: BaseException) -> str:
    """Return the exception that loading a module raised, with its innermost line in that file."""
    if isinstance(error, SyntaxError) and error.filename:  # in a file that this one imports
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = next((frame for frame in reversed(frames) if frame.filename == where), None)
    problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SystemExit):
        problem += ". It ends the program when it is loaded: put that under if __name__ == '__main__'"
    if isinstance(error, ModuleNotFoundError):
        problem += f". Is it installed for {sys.executable}?"
    if own is None:
        return f"{where}: {problem}"
    return f"{where}, line {own.lineno}: {problem}" + (f"\n    {own.line}" if own.line else "")
