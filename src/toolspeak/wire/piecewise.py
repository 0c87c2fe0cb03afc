"""Replacing in long texts in pieces: `re.sub` is one step of C code, in which no other thread gets a turn.

A piece ends where no run of blanks goes on, and what stands behind its end is looked at, so that what is replaced is the same as in one
go. A text without an end to its blanks is one piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable

PIECE = 100_000
"""Characters that are looked through in one step."""
BLANKS = r" \t\xa0\u1680\u2000-\u200d\u202f\u205f\u2060\u3000\ufeff"
"""What takes room in a line and is not seen, for a class of a pattern."""
BLANK = re.compile(f"[{BLANKS}]*")


def replaced(pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], text: str, ahead: int) -> str:
    """What `pattern.sub` gives, for a pattern whose match has at most `ahead` characters, with what it looks at, besides
    two runs of blanks."""
    if len(text) <= PIECE:
        return pattern.sub(replace, text)
    pieces: list[str] = []
    at = 0
    while at < len(text):
        end = _behind_blanks(text, at + PIECE)
        parts: list[str] = []
        for match in pattern.finditer(text, at, _behind_blanks(text, end + ahead) + 1):
            if match.start() >= end:
                break
            parts += (text[at : match.start()], replace(match))
            at = match.end()
        pieces += ("".join(parts), text[at : max(at, end)])
        at = max(at, end)
    return "".join(pieces)


def _behind_blanks(text: str, at: int) -> int:
    """The first place from `at` on where no blank goes on."""
    blank = BLANK.match(text, at)
    return blank.end() if blank else len(text)
