"""Environments for programs of others: made on demand in the user's cache, from pinned versions, kept for the next run.

Once one is there nothing is asked of the network. One that broke off carries no stamp and is made again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from toolspeak.models.weights import cache_dir

TIMEOUT = 900  # seconds
STAMP = "whole"


class Unavailable(Exception):
    """An environment that is not here and cannot be made, with the reason."""


@cache
def python(name: str, pins: tuple[str, ...]) -> Path:
    """The interpreter of a virtual environment that holds `pins`. Raises Unavailable."""
    home = _home(name, (*pins, sys.version.split()[0]))
    interpreter = home / "bin" / "python"
    if not (home / STAMP).exists():
        shutil.rmtree(home, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(home)], Path.cwd())
        _run([str(interpreter), "-m", "pip", "install", "-q", "--disable-pip-version-check", *pins], Path.cwd())
        (home / STAMP).touch()
    return interpreter


@cache
def node(name: str, pins: tuple[str, ...]) -> Path:
    """A folder in which node finds the packages `pins` (name@version). Raises Unavailable."""
    if shutil.which("npm") is None:
        raise Unavailable("there is no npm")
    home = _home(name, pins)
    if not (home / STAMP).exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        (home / "package.json").write_text(json.dumps({"private": True, "type": "module"}), encoding="utf-8")
        _run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", *pins], home)
        (home / STAMP).touch()
    return home


def _home(name: str, pins: Sequence[str]) -> Path:
    told = hashlib.sha256("\n".join(pins).encode()).hexdigest()[:12]
    return cache_dir() / "clients" / f"{name}-{told}"


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{Path(command[0]).name} failed: {type(error).__name__}") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        raise Unavailable(f"not installed: {(said or ['no reason given'])[-1][:200]}")
