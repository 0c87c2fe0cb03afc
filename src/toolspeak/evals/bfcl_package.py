"""Downloads the package `bfcl-eval` (the Berkeley leaderboard's data and checker) once, and loads its parts
unmodified.

The package (Apache-2.0) depends on the libraries of every provider, which neither its data nor its checker needs. So
only its own wheel is downloaded, and the one module that imports those libraries is replaced by a stand-in while the
checker is loaded. `python -m toolspeak.evals` downloads it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import threading
import types
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..models.embedded.package_download import Parts

PACKAGE = "bfcl-eval==2026.3.23"
ROOT = "bfcl_eval"
INCLUDED = ("data/", "constants/", "eval_checker/", "__init__.py")
LEFT_OUT = ("data/unused_datasets/", "__pycache__/")
DIGEST = "37bf4b0a4e65dc33212473807c0faf1518c85d0b023572f9d54101e1260c0429"
MODEL, PLAIN = "toolspeak", "toolspeak-plain"
"""Model names for the checker's table: with the first, function names keep their dots; with the second, `a.b` is
`a_b`."""

Checker = Callable[..., dict[str, Any]]


def _used(name: str) -> bool:
    return name.startswith(INCLUDED) and not any(part in name for part in LEFT_OUT)


PARTS = Parts(
    PACKAGE,
    ROOT,
    _used,
    DIGEST,
    about="the leaderboard's data and checker (2 MB, once)",
    instead="Your own cases need none of it",
)


home, present, ensure = PARTS.home, PARTS.present, PARTS.ensure


# ------------------------------------------------------------------ its code


@dataclass(frozen=True, slots=True)
class _Style:
    """An entry of the checker's table of models: whether the model writes `a_b` for the function `a.b`."""

    underscore_to_dot: bool = False


_loading = threading.Lock()


@functools.cache
def checker() -> Checker:
    """The package's `ast_checker`, with its enumeration value for the language `Python`, `Java` or `JavaScript`."""
    return loaded("eval_checker.ast_eval.ast_checker").ast_checker


def languages() -> Any:
    """The checker's enumeration of languages."""
    return loaded("eval_checker.ast_eval.ast_checker").Language


@functools.cache
def loaded(name: str) -> Any:
    """A module of the package, imported with a stand-in for the table of models, whose import would load every
    provider's library."""
    table = types.ModuleType(f"{ROOT}.constants.model_config")
    vars(table)["MODEL_CONFIG_MAPPING"] = {MODEL: _Style(), PLAIN: _Style(underscore_to_dot=True)}
    with _loading, _imported_from(ensure()):
        sys.modules[table.__name__] = table
        return importlib.import_module(f"{ROOT}.{name}")


@contextlib.contextmanager
def _imported_from(folder: Path) -> Generator[None]:
    """Makes `import bfcl_eval` use the files in `folder` during the block, whatever is installed, and undoes it
    afterwards."""

    def installed_modules() -> dict[str, types.ModuleType]:
        return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == ROOT}

    before = installed_modules()
    for name in before:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in installed_modules():
            del sys.modules[name]
        sys.modules.update(before)
