"""Notes the keys of a call's object that are no part of what was read from it, neither of a call nor of a text.

A key that may stand beside any call (QUIET) is noted only if it has a value, since servers and models add it to every
call. If the tool has a parameter of that name, it may have been meant as an argument: the call is then not whole.
"""

from __future__ import annotations

from collections.abc import Collection

from ..reading.state import State

QUIET = frozenset(["type", "id", "index", "object"])
"""Keys that are not part of a call."""
FUNCTION = ('"function"', '""', "null")
"""Types of a call that only say that it is one."""
EMPTY = ("", "null", '""', "{}")
LONG = 200
"""The most characters of a value in a note."""

Quiet = tuple[str, str, int]
"""A key that is not part of a call, its value, and its position."""


def note_ignored(s: State, key: str, value: str, place: int | None = None) -> None:
    """Notes a value that is not part of the call, unless it is empty."""
    if value not in EMPTY:
        s.note("ignored-key", f"{key}: {value[:LONG]}", place)


def note_quiet(s: State, quiet: list[Quiet], parameters: Collection[str]) -> None:
    """Notes the quiet keys of a call of a tool with these parameters, at their positions. Clears the list."""
    for key, value, place in quiet:
        if key in parameters:
            s.note("unknown-key", key, place)
        else:
            note_ignored(s, key, value, place)
    quiet.clear()
