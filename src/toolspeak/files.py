"""Folders of the user's own, files that appear whole, and locks.

Who reads a file finds what it held before or what it holds now, never half of it.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from .errors import UsageError


def state_folder() -> Path:
    """Where the user's programs keep what they know: $XDG_STATE_HOME/toolspeak, or the platform's own place for that."""
    if base := os.environ.get("XDG_STATE_HOME"):
        return Path(base) / "toolspeak"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "toolspeak"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "toolspeak"
    return Path.home() / ".local" / "state" / "toolspeak"


def settings_folder() -> Path:
    """Where the user's programs keep how they are set: $XDG_CONFIG_HOME/toolspeak, or the platform's own place for that."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "toolspeak"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home()) / "toolspeak"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "toolspeak"


def user_path(variable: str, folder: Callable[[], Path], name: str) -> Path | None:
    """The path that an environment variable gives, None where it says off; without one, `name` in a folder of the user's."""
    if given := os.environ.get(variable):
        return None if given.strip().lower() == "off" else Path(given).expanduser()
    return folder() / name


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Generator[BinaryIO]:
    """A file of bytes that takes the place of `path` when the block ends well; else nothing is left of it.

    It is written beside `path`, under that name with a point before it and `-` and more behind it. Who may read it is what
    `mode` and the process's umask say, as for any new file. Raises OSError.
    """
    part = path.parent / f".{path.name}-{secrets.token_hex(8)}"
    try:
        with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, message: str) -> Generator[None]:
    """A lock that one process at a time holds, on a file that is made for it. UsageError with `message` where it is held.

    The lock ends with the process. Where the system has no such locks, there is none.
    """
    if importlib.util.find_spec("fcntl") is None:
        yield
        return
    with path.open("w") as lock:
        try:
            is_ours = take_lock(lock, wait=False)
        except OSError:
            is_ours = False
        if not is_ours:
            raise UsageError(message)
        yield


def take_lock(file: IO[Any], *, wait: bool) -> bool:
    """Whether this process now holds the lock on an open file, until that is closed; with `wait` it waits for the lock.

    True where the system has no such locks. Raises OSError.
    """
    if importlib.util.find_spec("fcntl") is None:
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
