"""Files that appear whole, and a lock: who reads a file finds what it held before or what it holds now, never half of it."""

from __future__ import annotations

import importlib.util
import os
import secrets
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

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
    import fcntl

    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(message) from None
        yield
