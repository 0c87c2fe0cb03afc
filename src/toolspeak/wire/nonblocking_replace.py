"""Replaces a pattern's matches in long texts piece by piece: `re.sub` is one C call during which no other thread runs.

A piece ends where no run of whitespace continues, and the text after its end is taken into account, so that the result
is the same as in one call. A text of endless whitespace is one piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable

PIECE = 100_000
"""Characters that are searched in one step."""
IGNORABLE = (
    r"\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    r"\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that print as nothing: Unicode's categories Cc (without those that begin a line) and Cf, and its property
Default_Ignorable_Code_Point. For a character class."""
BLANKS = rf" \t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000{IGNORABLE}"
"""Spaces (category Zs), tabs and characters that print as nothing, for a character class."""
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
