"""The user's folders, atomic replacement of files, and file locks.

A reader sees the old content of a replaced file or the new one, never a part.
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
    """The folder for state of this user: $XDG_STATE_HOME/toolspeak, or the platform's own place."""
    if base := os.environ.get("XDG_STATE_HOME"):
        return Path(base) / "toolspeak"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "toolspeak"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "toolspeak"
    return Path.home() / ".local" / "state" / "toolspeak"


def settings_folder() -> Path:
    """The folder for settings of this user: $XDG_CONFIG_HOME/toolspeak, or the platform's own place."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "toolspeak"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home()) / "toolspeak"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "toolspeak"


def user_path(variable: str, folder: Callable[[], Path], name: str) -> Path | None:
    """The path in an environment variable, None if it is `off`; by default `name` in the given folder of the user."""
    if given := os.environ.get(variable):
        return None if given.strip().lower() == "off" else Path(given).expanduser()
    return folder() / name


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Generator[BinaryIO]:
    """A binary file that replaces `path` when the block succeeds. If the block fails, it is deleted.

    It is written beside `path` as a hidden temporary file, and gets the permissions `mode` less the process's umask,
    as any new file does. Raises OSError.
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
    """Holds an exclusive lock on a file, which is created for it. Raises UsageError with `message` if another process
    holds it.

    The lock ends with the process. On systems without such locks this does nothing.
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
    """Locks an open file until it is closed. Returns False if another process has the lock and `wait` is false.

    Always True on systems without such locks. Raises OSError.
    """
    if importlib.util.find_spec("fcntl") is None:
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
