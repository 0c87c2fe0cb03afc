"""Environments for programs of others: made on demand in the user's cache, from pinned versions, kept for the next run.

Once one is there nothing is asked of the network. One that broke off carries no stamp and is made again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from toolspeak.models.embedded.weights import cache_dir

TIMEOUT = 900  # seconds
STAMP = "whole"
UV, UV_PIN = "uv", "uv==0.13.9"
"""What installs thirty times as fast as pip does."""


class Unavailable(Exception):
    """An environment that is not here and cannot be made, with the reason."""


@cache
def python(name: str, pins: tuple[str, ...], make: bool = True) -> Path:
    """The interpreter of a virtual environment that holds `pins`. Raises Unavailable; so too where it is not to be made."""

    def fill(home: Path) -> None:
        _run([sys.executable, "-m", "venv", str(home)], home.parent)
        interpreter = str(home / "bin" / "python")
        try:
            if name == UV:
                raise Unavailable(UV)
            program = str(python(UV, (UV_PIN,), make).with_name(UV))
            _run([program, "pip", "install", "-q", "--python", interpreter, *pins], home)
        except Unavailable:  # it knows of fewer indexes than pip may be configured with
            _run([interpreter, "-m", "pip", "install", "-q", "--disable-pip-version-check", *pins], home)

    return _made(name, (*pins, sys.version.split()[0]), fill, make) / "bin" / "python"


@cache
def node(name: str, pins: tuple[str, ...], make: bool = True) -> Path:
    """A folder in which node finds the packages `pins` (name@version). Raises Unavailable, as `python` does."""
    if shutil.which("npm") is None:
        raise Unavailable("there is no npm")

    def fill(home: Path) -> None:
        home.mkdir()
        (home / "package.json").write_text(json.dumps({"private": True, "type": "module"}), encoding="utf-8")
        _run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", *pins], home)

    return _made(name, pins, fill, make)


def _made(name: str, pins: Sequence[str], fill: Callable[[Path], None], make: bool) -> Path:
    """The folder of an environment, filled first where it is not there; why it could not be stands beside it."""
    told = hashlib.sha256("\n".join(pins).encode()).hexdigest()[:12]
    home = cache_dir() / "clients" / f"{name}-{told}"
    why = home.with_suffix(".why")
    if (home / STAMP).exists():
        return home
    if not make:
        raise Unavailable(why.read_text(encoding="utf-8") if why.exists() else "its environment has not been made")
    home.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(home, ignore_errors=True)
    try:
        fill(home)
    except Unavailable as error:
        why.write_text(str(error), encoding="utf-8")
        raise
    (home / STAMP).touch()
    return home


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{Path(command[0]).name} failed: {type(error).__name__}") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        raise Unavailable(f"not installed: {(said or ['no reason given'])[-1][:200]}")
