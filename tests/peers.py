"""The packages that the compat layer stands in for, to compare with: fetched once, loaded in parts.

`python tests/peers.py` fetches them with pip, by pip's own configuration, into `.cache/peers`, without
their dependencies and without building anything. A test asks for one with `peer(...)` and is skipped,
with the reason, where it is not there and cannot be had.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import subprocess
import sys
import tarfile
import tempfile
import types
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "peers"
PINS = {"trivialai": "trivialai==0.7.18", "empower_functions": "empower-functions==0.1.7"}
LLAMA_CPP = ("llama_cpp", "llama_cpp.llama", "llama_cpp.llama_types", "llama_cpp.llama_chat_format")
TIMEOUT = 120  # seconds


class Unavailable(Exception):
    """A package that is not here and cannot be fetched."""


def folder(name: str) -> Path:
    """Where a package's sources lie, fetched first if they are not there."""
    home = CACHE / PINS[name].replace("==", "-")
    if not home.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
            unpacked = Path(temporary) / "unpacked"
            unpack(download(PINS[name], Path(temporary)), unpacked)
            with contextlib.suppress(OSError):  # another process was faster
                unpacked.rename(home)
    return next(home.rglob(f"{name}/__init__.py")).parent


def download(pin: str, into: Path) -> Path:
    # pip asks a source archive for its metadata; neither package compiles anything for that.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(into), pin]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{pin} could not be fetched within {TIMEOUT} seconds") from error
    if done.returncode:
        last = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise Unavailable(f"{pin} could not be fetched with pip: {last}")
    return next(path for path in into.iterdir() if path.is_file())


def unpack(archive: Path, into: Path) -> None:
    if archive.suffix == ".whl":
        zipfile.ZipFile(archive).extractall(into)
    else:
        with tarfile.open(archive) as tar:
            tar.extractall(into, filter="data")


@cache
def found(name: str) -> Path | str:
    """Where a package lies, or why it does not; tried once."""
    try:
        return folder(name)
    except Unavailable as error:
        return str(error)


@cache
def peer(name: str, module: str) -> types.ModuleType:
    """A module of a peer, such as `peer("trivialai", "util")`; skips the test where there is none."""
    path = found(name)
    if isinstance(path, str):
        pytest.skip(path)
    return load_by_path(path, module) if name == "empower_functions" else load_whole(path, module)


def load_by_path(package: Path, module: str) -> types.ModuleType:
    """One file on its own: the package itself would load a compiled library."""
    spec = importlib.util.spec_from_file_location(f"{package.name}.{module}", package / f"{module}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    with standing_in(package.name, f"{package.name}.prompt", *LLAMA_CPP):
        spec.loader.exec_module(loaded)
    return loaded


def load_whole(package: Path, module: str) -> types.ModuleType:
    """A module with the package around it; the HTTP client that it imports is never used here."""
    sys.path.insert(0, str(package.parent))
    before = set(logging.root.manager.loggerDict)
    try:
        with standing_in("httpx"):
            return importlib.import_module(f"{package.name}.{module}")
    finally:
        sys.path.remove(str(package.parent))
        for name in set(logging.root.manager.loggerDict) - before:
            logging.getLogger(name).handlers.clear()


class Anything(types.ModuleType):
    """A module in which every name is there and means nothing."""

    __path__ = ()

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return object


@contextlib.contextmanager
def standing_in(*names: str) -> Iterator[None]:
    """Modules that are imported but not needed, for as long as it takes to load what imports them."""
    absent = [name for name in names if name not in sys.modules]
    for name in absent:
        sys.modules[name] = Anything(name)
    for name in absent:
        parent, _, child = name.rpartition(".")
        if parent in absent:
            setattr(sys.modules[parent], child, sys.modules[name])
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def main() -> int:
    for name in PINS:
        try:
            folder(name)
        except Unavailable as error:
            print(f"{error}; the tests that compare with it will be skipped", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
