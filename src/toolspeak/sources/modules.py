"""Python modules and files as tools: what a module names in `__all__`, else its tools and the functions it defines."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
import traceback
import types
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..toolbox import Toolbox
from ..types import Tool


def module(source: types.ModuleType | str | Path, *names: str) -> Toolbox:
    """The public functions of a module, or those named, as a toolbox.

    `source` is a module, the name of one that can be imported (`package.module`), or the path of a .py file, which is
    run. UsageError says what is wrong with it, and where.
    """
    if isinstance(source, types.ModuleType):
        return Toolbox(*offered(source, names, source.__name__))
    if isinstance(source, Path) or source.endswith(".py"):
        path = Path(source).expanduser()
        return Toolbox(*offered(load(path), names, str(path)))
    return Toolbox(*offered(_imported(source), names, source))


def offered(found: types.ModuleType, names: Any, where: str) -> list[Any]:
    """What a module offers as tools, each once, or what it holds under `names`. UsageError names `where` it is."""
    if names:
        return [_named(found, name, where) for name in names]
    public = list({id(value): value for value in _public(found)}.values())
    if not public:
        raise UsageError(f"{where} holds no public function to offer. Expected at least one `def name(…):`")
    return public


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
        raise UsageError(_broken(str(path), error)) from error
    return module


def _imported(name: str) -> types.ModuleType:
    """The module of that name. UsageError where there is none, or where it breaks."""
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


def _public(found: types.ModuleType) -> list[Any]:
    names = vars(found).get("__all__")
    if names is not None:
        return [vars(found)[name] for name in names if name in vars(found)]
    return [
        value
        for name, value in vars(found).items()
        if not name.startswith("_")
        if isinstance(value, Tool) or (_is_function(value) and value.__module__ == found.__name__)
    ]


def _is_function(value: Any) -> bool:
    """Whether a value is a function with a name of its own."""
    return inspect.isfunction(value) and value.__name__ != "<lambda>"


def _named(found: types.ModuleType, name: str, where: str) -> Any:
    if name in vars(found):
        return vars(found)[name]
    public = [getattr(value, "__name__", "") for value in _public(found)]
    near = difflib.get_close_matches(name, public, n=2)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise UsageError(f"{where} holds no {name}.{hint} It offers: {', '.join(public) or 'nothing'}")


def _broken(where: str, error: BaseException) -> str:
    """What a module raised while it was loaded, at its innermost line in that file."""
    if isinstance(error, SyntaxError) and error.filename:  # of a file that this one imports
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == where]
    source = f"\n    {own[-1].line}" if own and own[-1].line else ""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SystemExit):
        said += ". It ends the program while it is loaded: put that under if __name__ == '__main__'"
    if isinstance(error, ModuleNotFoundError):
        said += f". Is it installed for {sys.executable}?"
    return f"{where}, line {own[-1].lineno}: {said}{source}" if own else f"{where}: {said}{source}"
