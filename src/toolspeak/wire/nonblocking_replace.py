"""Replaces a pattern's matches in long texts piece by piece: `re.sub` is one C call during which no other thread runs.

A piece ends where no run of whitespace continues, and the text after its end is taken into account, so that the result
is the same as in one call. A text of endless whitespace is one piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable

PIECE = 100_000
"""Characters that are searched in one step."""
BLANKS = r" \t\xa0\u1680\u2000-\u200d\u202f\u205f\u2060\u3000\ufeff"
"""Invisible characters with a width, for a character class."""
BLANK = re.compile(f"[{BLANKS}]*")


def replaced(pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], text: str, ahead: int) -> str:
    """Like `pattern.sub`. A match, with the context that it looks at, must be at most `ahead` characters, not counting
    two runs of whitespace."""
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
    """The first position from `at` on at which no whitespace continues."""
    blank = BLANK.match(text, at)
    return blank.end() if blank else len(text)
