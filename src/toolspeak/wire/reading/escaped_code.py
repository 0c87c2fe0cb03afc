"""Decides whether a string is code that was certainly escaped, although escapes of its regular expressions are none.

Models often write `re.sub(r\\"\\d+\\", \\"\\", s)\\n` in JSON: they escape quotes and lines, and forget it before the `d`. The text
is certain if its quotes are escaped, if lines end outside of its quotations, one of them before no word (so it is no path,
as in `temp\\new`), and if only escapes of regular expressions are wrong. Everything else may be text that was not escaped
at all. The content is read piece by piece, and what its continuation may change is left for the next piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

LONG = 512
"""The most characters of a quotation in code."""
SIGN, OTHER = "\\-", "\\?"
"""Stand in the content for an escape of a sign, and for one that code does not have."""
CLASSES = "dswDSWABZ123456789"
"""Characters that a backslash precedes in regular expressions, and rarely in paths if the word ends there."""
_REGEX = rf"\\-|\\[{CLASSES}](?!\w"
CODE = {
    q: cast(
        "Callable[[str, int], re.Match[str]]",
        re.compile(
            rf"(?:[^\\{other}\x00-\x1f]++|{_REGEX}|\Z)|\\n(?:\\t)*+(?!\Z)|\\{q}\\{q}(?:\\{q}|(?!\\{q}|\Z))"
            rf"|\\{q}(?:[^\\\x00-\x1f]|{_REGEX})){{1,{LONG}}}+\\{q}"
            rf"|{other}(?:[^\\{other}\x00-\x1f]|\\{q}|{_REGEX})){{0,{LONG}}}+{other})*+"
        ).match,
    )
    for q, other in ('"' + "'", "'" + '"')
}
"""By the quotes of the string: code, as far as it is complete."""
ESCAPED_QUOTE = re.compile(r"\\[\"']").search
LINE_END = re.compile(rf"\\n(?!\w|\\[{CLASSES}]|\Z)").search


def stand_in(pair: str, unknown: bool, size: int) -> str:
    """What stands in the content for an escape of this size that begins with this pair, and may be `unknown`."""
    if not pair[1:].isalnum():
        return SIGN
    return pair[:size] if unknown and pair[1] in CLASSES else OTHER


class EscapedCode:
    """The content of a string between these quotes, read as code. `rest` is not read yet."""

    __slots__ = ("lines", "match", "quoted", "rest")

    def __init__(self, quote: str) -> None:
        self.match, self.rest = CODE.get(quote), ""
        self.lines = self.quoted = False

    def read(self, piece: str) -> None:
        """Reads more of the content."""
        if self.match is None:
            return
        text = self.rest + piece
        end = self.match(text, 0).end()
        line_end = LINE_END(text)
        self.lines |= line_end is not None and line_end.start() < end
        self.quoted |= ESCAPED_QUOTE(text, 0, end) is not None
        self.rest = text[end:]
        if len(self.rest) > 4 * LONG:  # more than what may go on
            self.match = None

    def certain(self, piece: str) -> bool:
        """Whether the content is certainly escaped code, with this last piece of it."""
        self.read(piece + " ")
        return all((self.match, self.lines, self.quoted, not self.rest))
