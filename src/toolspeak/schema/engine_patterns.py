"""Rewrites patterns that the engine compiles badly, or not at all, into others with the same meaning.

- A pattern that only counts the characters of a whole text, such as `^.{1,4000}$`, becomes a length and a short pattern. The
  engine compiles a counted part once for each repetition: this one takes 10 MB, `^.*$` a thousandth. `minLength` and
  `maxLength` count the same characters.
- A character in two escapes of UTF-16, such as `\\uD83D\\uDE00`, becomes that character. ECMA's flag `u` reads it so, and
  no engine takes half a character.
"""

from __future__ import annotations

import re
from typing import Any

from .walk import rebuild

COUNTED = re.compile(
    r"""\^(?P<part>\[\^?\]?(?:\\.|[^\]\[\\])*\]|\\[pP]\{[^}]*\}|\\[wWdDsS]|\.)
    \{(?P<least>\d+)(?P<comma>,)?(?P<most>\d*)\}\$""",
    re.VERBOSE,
)
"""Matches a pattern for a whole text of one set, class or any character, repeated so often."""
MANY = 50
"""Repetitions from which a count becomes a length. Below, the whole pattern is the better message for a model."""
PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")

LOCATING = frozenset(["$id", "$schema", "$anchor", "$dynamicAnchor", "dependencies"])
"""Keywords that the engine does not get: they could lead a reference to another place than `walk.resolve` does, or give it
work that nothing counts. `repair` makes JSON pointers of the names of anchors, and translates `dependencies`."""


def for_engine(schema: Any) -> Any:
    """The schema as the engine gets it: with its patterns, and without LOCATING."""

    def changed(node: dict[str, Any], path: str) -> dict[str, Any]:
        if not LOCATING.isdisjoint(node):
            node = {key: value for key, value in node.items() if key not in LOCATING}
        return _rewritten(node, path)

    return rebuild(schema, changed)


def length_of(pattern: str) -> tuple[str, int, int | None] | None:
    """(the pattern without its count, the least length, the greatest or None) of a pattern that counts many characters;
    None for others."""
    counted = COUNTED.fullmatch(pattern)
    if counted is None:
        return None
    least = int(counted["least"])
    most = int(counted["most"]) if counted["most"] else None if counted["comma"] else least
    return (f"^{counted['part']}*$", least, most) if max(least, most or 0) >= MANY else None


def _rewritten(node: dict[str, Any], _: str) -> dict[str, Any]:
    pattern = node.get("pattern")
    if not isinstance(pattern, str):
        return node
    node = {**node, "pattern": PAIR.sub(_character, pattern)}
    if length := length_of(node["pattern"]):
        pattern, least, most = length
        limits = [*_tighter(node, "minLength", max, least), *_tighter(node, "maxLength", min, most)]
        node = {**node, "pattern": pattern, **dict(limits)}
    return node


def _tighter(node: dict[str, Any], name: str, tighter: Any, limit: int | None) -> list[tuple[str, Any]]:
    """A limit of the length, unless the schema's own is tighter, or is no number and so an error of the schema."""
    own = node.get(name, limit)
    if limit is None or not isinstance(own, int | float):
        return []
    return [(name, tighter(own, limit))]


def _character(pair: re.Match[str]) -> str:
    return re.escape(bytes.fromhex(pair[1] + pair[2]).decode("utf-16-be"))
