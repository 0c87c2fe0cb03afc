"""Counts the values in a JSON text before it is parsed: a value takes far more memory, and time, than its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

PIECE = 262_144
"""Characters that are counted in one step, so that other threads can run between steps."""
BACKSLASHES = re.compile(r"\\*")


def has_more(text: str, values: int) -> bool:
    """Whether a JSON text has more than so many values."""
    if len(text) <= values:
        return False
    return marks(text) > values and values_in(text) > values


def values_in(text: str) -> int:
    """Estimate the number of values in a JSON text: one per comma, and one per bracket, outside of its strings."""
    return sum(map(marks, outside_strings(text)))


class ValueCounter:
    """Counts the values in a JSON text that arrives in pieces of bytes."""

    def __init__(self) -> None:
        self.count = 0
        self._inside = False
        self._rest = b""

    def add(self, piece: bytes) -> None:
        """Count the values in the next piece."""
        text = self._rest + piece
        end = len(text) - (len(text) - len(text.rstrip(b"\\"))) % 2  # do not cut an escape sequence in two
        self._rest = text[end:]
        parts = text[:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        self.count += sum(map(marks, parts[self._inside :: 2]))
        self._inside ^= len(parts) % 2 == 0


def marks(text: Any) -> int:
    """The commas and opening brackets in a str or bytes."""
    return sum(map(text.count, (",", "{", "[") if isinstance(text, str) else (b",", b"{", b"[")))


def outside_strings(text: str) -> Iterator[str]:
    """Yield the parts of a JSON text outside of its strings. In pieces, because one step of C code over the whole text
    would block the interpreter."""
    at, inside = 0, False
    while at < len(text):
        end = at + PIECE
        if text[end - 1 : end] == "\\":  # do not cut an escape sequence in two
            end = BACKSLASHES.match(text, end).end() + 1  # type: ignore[union-attr]
        parts = text[at:end].replace("\\\\", "").replace('\\"', "").split('"')
        yield "".join(parts[inside::2])
        inside ^= len(parts) % 2 == 0
        at = end
