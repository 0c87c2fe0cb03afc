"""Caches the KV state of prefixes that prompts share, on disk, so that a new process need not evaluate them again.

The worked examples that a decision begins with are the same in every process, and reading them is most of what a first
decision costs. A state is llama.cpp's memory of such a beginning. It is found by its content: the name of its file
tells the weights, the library and the tokens, and the file begins with a digest of that name and of all that follows.
What does not fit is removed and made anew. Files appear whole; the ones that were used longest ago give way.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import platform
from array import array
from collections.abc import Sequence
from pathlib import Path

from ...files import replacing
from .package_download import cache_dir

log = logging.getLogger(__name__)

MOST = 4
"""Files that are kept; of the embedded model each takes 10 MB."""
LEAST = 128
"""Tokens of a beginning that is worth a file."""
FORM = "1"
"""Goes up when what a file holds changes."""
SUFFIX = ".state"


def folder() -> Path:
    """Where states are kept."""
    return cache_dir() / "states"


class States:
    """The states of one model file under one library, in the folder `home`, which others may use too."""

    def __init__(self, home: Path, weights: Path, library: str) -> None:
        with weights.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        about = "\n".join((FORM, content, library, platform.machine()))
        self.key = hashlib.sha256(about.encode()).hexdigest()[:16]
        self.folder = home

    def longest(self, tokens: Sequence[int]) -> int:
        """How many of the first tokens a state is kept for, 0 for none."""
        lengths: set[int] = set()
        with contextlib.suppress(OSError):
            for path in self.folder.glob(f"{self.key}-*{SUFFIX}"):
                length = path.name.split("-")[1]
                lengths |= {int(length)} if length.isdecimal() else set()
        fitting = (length for length in sorted(lengths, reverse=True) if LEAST <= length <= len(tokens))
        return next((length for length in fitting if self._path(tokens[:length]).is_file()), 0)

    def read(self, tokens: Sequence[int]) -> bytes | None:
        """The state of exactly these tokens; None where there is none that is whole and theirs."""
        path = self._path(tokens)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        data = content[32:]
        if content[:32] != _digest(path.name, data):
            log.info("%s is broken and made anew", path)
            self.remove(tokens)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # it is the one used last
        return data

    def write(self, tokens: Sequence[int], data: bytes) -> None:
        """Keeps the state of these tokens, in place of those used longest ago; where that cannot be, nothing is
        kept."""
        path = self._path(tokens)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(_digest(path.name, data))
                file.write(data)
            stored = sorted(self.folder.glob(f"*{SUFFIX}"), key=lambda one: one.stat().st_mtime)
            for old in stored[:-MOST]:
                old.unlink(missing_ok=True)
        except OSError as error:
            log.info("no state is kept: %s", error)

    def remove(self, tokens: Sequence[int]) -> None:
        """Removes the state of these tokens."""
        with contextlib.suppress(OSError):
            self._path(tokens).unlink(missing_ok=True)

    def _path(self, tokens: Sequence[int]) -> Path:
        name = hashlib.sha256(array("i", tokens).tobytes()).hexdigest()[:32]
        return self.folder / f"{self.key}-{len(tokens)}-{name}{SUFFIX}"


def _digest(name: str, data: bytes) -> bytes:
    digest = hashlib.sha256(name.encode())
    digest.update(data)
    return digest.digest()
