"""The user's folders, reading of text and JSON files, atomic replacement of files, and file locks.

A reader sees the old content of a replaced file or the new one, never a part.
"""

from __future__ import annotations

import importlib.util
import json
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
    return platform_folder("XDG_STATE_HOME", ".local/state", "Application Support", "LOCALAPPDATA")


def settings_folder() -> Path:
    """The folder for settings of this user: $XDG_CONFIG_HOME/toolspeak, or the platform's own place."""
    return platform_folder("XDG_CONFIG_HOME", ".config", "Application Support", "APPDATA")


def platform_folder(variable: str, usual: str, library: str, windows: str) -> Path:
    """A folder of this user: the one in `variable`, by default `usual` in the home folder.

    On macOS it is `library` in the user's Library, on Windows the folder in the variable `windows`.
    """
    if sys.platform == "darwin":
        return Path.home() / "Library" / library / "toolspeak"
    if sys.platform == "win32":
        return Path(os.environ.get(windows) or Path.home()) / "toolspeak"
    return Path(os.environ.get(variable) or Path.home() / usual) / "toolspeak"


def user_path(variable: str, folder: Callable[[], Path], name: str) -> Path | None:
    """The path in an environment variable, None if it is `off`; by default `name` in the given folder of the user."""
    if value := os.environ.get(variable):
        return None if value.strip().lower() == "off" else Path(value).expanduser()
    return folder() / name


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, without a byte order mark. Raises UsageError if it cannot be read."""
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None
    except (OSError, ValueError) as error:  # a ValueError: the name cannot be that of a file
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def read_json(path: Path) -> Any:
    """The value in a JSON file. Raises UsageError if it cannot be read."""
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a ValueError
        raise UsageError(f"{path} cannot be read: {error}") from None


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
