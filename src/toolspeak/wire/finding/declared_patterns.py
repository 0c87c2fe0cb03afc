"""Parses the regular expressions that a tokenizer declares, into literals, named groups and gaps.

No pattern is ever executed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

GAP = "\ue005"
"""Any text, as short as possible."""
TOKEN = re.compile(
    r"\(\?P<(?P<group>\w+)>(?P<inner>(?:\\.|\[(?:\\.|[^\]\\])*\]|[^()\\\[])*)\)"
    r"|(?P<start>\(\?:\^\|)"
    r"|\(\?:(?P<maybe>(?:\\[^\w]|[^()\\\[\]|*+?^$.])*)\)\?"
    r"|(?P<space>(?:\\[snrt]|[ \n\t])[*+?]\??)"
    r"|(?P<gap>(?:\.|\[\^(?:\\.|[^\]\\])*\])[*+]\??)"
    r"|\\(?P<white>[nrt])"
    r"|\\(?P<escaped>\W)"
    r"|(?P<literal>[^\\()\[\]{}|*+?^$.])(?![*+?{])",
    re.DOTALL,
)
WHITE = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class PatternGroup:
    """A named group. Its own pattern is ignored: the pieces around it show where it ends."""

    name: str


Piece = str | PatternGroup


def pattern_pieces(pattern: str) -> tuple[Piece, ...]:
    """The literals, groups and gaps of a regular expression.

    Optional whitespace becomes a line break: that is what models write, and readers accept any. Optional groups and
    gaps before the first literal are dropped. Raises ValueError for anything else.
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
            pieces.append(PatternGroup(m["group"]))
        elif kind == "gap":
            pieces += [GAP] if pieces else []
        elif kind == "maybe":
            if pieces:
                raise ValueError(f"cannot be said in literals: {m[0]!r}")
        else:
            _add(pieces, WHITE.get(m["white"] or "", m["escaped"] or m["literal"] or "\n"))
    return tuple(pieces)


def _add(pieces: list[Piece], text: str) -> None:
    """Appends a literal, merged with the one before."""
    last = pieces[-1] if pieces else None
    if isinstance(last, str) and last != GAP:
        pieces[-1] = last + text
    else:
        pieces.append(text)


def _begun(pattern: str) -> str:
    """The pattern without an alternative between the start of the text and an opener: (?:^|opener)."""
    return pattern[5:-1] if pattern.startswith("(?:^|") and pattern.endswith(")") else pattern
