"""Simple regular expressions as what they say: literals, named groups, and gaps. No pattern is ever run."""

from __future__ import annotations

import re
from dataclasses import dataclass

GAP = "\ue005"
"""Stands for any text, as short as may be."""
TOKEN = re.compile(
    r"\(\?P<(?P<group>\w+)>(?P<inner>(?:\\.|\[(?:\\.|[^\]])*\]|[^()\\\[])*)\)"
    r"|(?P<start>\(\?:\^\|)"
    r"|\(\?:(?P<maybe>(?:\\[^\w]|[^()\\\[\]|*+?^$.])*)\)\?"
    r"|(?P<space>(?:\\[snrt]|[ \n\t])[*+?]\??)"
    r"|(?P<gap>(?:\.|\[\^(?:\\.|[^\]])*\])[*+]\??)"
    r"|\\(?P<white>[nrt])"
    r"|\\(?P<escaped>\W)"
    r"|(?P<literal>[^\\()\[\]{}|*+?^$.])(?![*+?{])",
    re.DOTALL,
)
WHITE = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Group:
    """A named group: what it may hold is not kept, its neighbours tell where it ends."""

    name: str


Piece = str | Group


def pattern_pieces(pattern: str) -> tuple[Piece, ...]:
    """The literals, groups and gaps of a regular expression.

    White space that may be there is a line break: that is what models write, and readers do not mind. What may
    stand before the first literal is no part of it: an optional group, a gap. Raises ValueError for what is no such
    pattern.
    """
    pieces: list[Piece] = []
    pattern, at = _begun(pattern), 0
    while at < len(pattern):
        m = TOKEN.match(pattern, at)
        if m is None or m["start"]:
            raise ValueError(f"cannot be said in literals: {pattern[at : at + 12]!r}")
        at = m.end()
        kind = m.lastgroup
        if kind in ("group", "inner"):
            pieces.append(Group(m["group"]))
        elif kind == "gap":
            pieces += [GAP] if pieces else []
        elif kind == "maybe":
            if pieces:
                raise ValueError(f"cannot be said in literals: {m[0]!r}")
        else:
            _add(pieces, WHITE.get(m["white"] or "", m["escaped"] or m["literal"] or "\n"))
    return tuple(pieces)


def _add(pieces: list[Piece], text: str) -> None:
    """Adds a literal, to the one before where there is one."""
    last = pieces[-1] if pieces else None
    if isinstance(last, str) and last != GAP:
        pieces[-1] = last + text
    else:
        pieces.append(text)


def _begun(pattern: str) -> str:
    """The pattern without a choice between the beginning of the text and an opener: (?:^|opener)."""
    return pattern[5:-1] if pattern.startswith("(?:^|") and pattern.endswith(")") else pattern
