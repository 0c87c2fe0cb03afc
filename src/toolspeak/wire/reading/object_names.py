"""Finds a name that comes twice in one object. Either value could be meant, so the call is not whole; a parser of JSON
would take the last one and say nothing.

Names are compared as they are decoded: `"a"` and `"\\u0061"` are one. The note follows the name directly, wherever the
text is cut.
"""

from __future__ import annotations

import json

from .json_tokens import AddNote, Emit

LONG = 200
"""The most characters of a name in a note."""


def add_name(names: set[str], name: str, note: AddNote, place: int) -> None:
    """Adds the name of a key at this position; notes one that is there already."""
    if name in names:
        note("doubled-key", name[:LONG], place)
    names.add(name)


class KeyEmitter:
    """Emits a key in pieces, from its opening quote or before, and collects them. The key is at this position."""

    __slots__ = ("emit", "note", "pieces", "place")

    def __init__(self, emit: Emit, note: AddNote, place: int) -> None:
        self.emit, self.note, self.place = emit, note, place
        self.pieces: list[str] = []

    def __call__(self, piece: str) -> None:
        self.emit(piece)
        self.pieces.append(piece)

    def end(self, names: set[str]) -> Emit:
        """Adds the name, which is complete. Returns what the reader emitted with before it."""
        _, _, key = "".join(self.pieces).partition('"')
        add_name(names, json.loads('"' + key) if "\\" in key else key[:-1], self.note, self.place)
        return self.emit
