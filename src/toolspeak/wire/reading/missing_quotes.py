"""Finds strings whose closing quote may be missing.

A quote inside a string usually was not escaped. But if the string's own closing quote is missing, the string swallows
the next member of its bracket: `{"title": "Lunch, "body": "pizza"}`. The second reading is recognized by structure:
after a comma or a quote comes what begins a member. Only the content since the last comma or quote is kept, as long as
it may begin one, so that the result does not depend on how the text is cut.
"""

from __future__ import annotations

import re

from .source import CAP, GAP, SPACE, Search

DETAIL = "a quote inside a string is not escaped, or the quote that ends the string is missing"
BRACKETS = " \t\r\n[{("
"""What may stand between a comma and the next member."""
_OPENING = rf"[\s\[{{(]{{0,{GAP}}}"
QUOTED = re.compile(_OPENING).fullmatch
"""Matches what may stand before a quoted member."""
NAMED = re.compile(rf"{_OPENING}(?:[^\W\d]\w{{0,{CAP}}}\s{{0,{GAP}}}(?:[=:]\s{{0,{GAP}}})?)?").fullmatch
"""Matches what may stand before a quoted value, with its unquoted name; or the beginning of that."""


class Watch:
    """Watches the content of one string after another. `member` is the content since the last comma or quote, None if
    it begins no member; `key`: the last quote may have begun the key of one."""

    __slots__ = ("_begins", "key", "member")

    def __init__(self, named: bool) -> None:
        self._begins = NAMED if named else QUOTED
        self.member: str | None = None
        self.key = False

    def begin(self, piece: str = "") -> None:
        """A string begins, with this piece of its content."""
        self.member, self.key = None, False
        if piece:
            self.add(piece)

    def add(self, piece: str) -> None:
        """More content, without quotes that could end the string."""
        if "," in piece:
            member = piece.rpartition(",")[2]
        elif self.member is None:
            return
        else:
            member = self.member + piece
        self.member = member if self._begins(member) else None

    def lane(self, search: Search) -> Search | None:
        """The search for what needs a look in the content. None while all of it does."""
        return search if self.member is None else None

    def quote(self, text: str, i: int) -> tuple[bool, bool, str | None]:
        """A quote before `i` that does not end the string: whether it may begin a member, whether it may end the key of
        one, and the unquoted name before it with its `=` or `:` (None if there is none)."""
        after = _visible(text, i)
        name = None if self.member is None else self.member.strip(BRACKETS)
        begins, ends = name == "", self.key & (after == ":")
        self.member, self.key = "", begins | (after == ",")
        return begins, ends, name


def _visible(text: str, i: int) -> str:
    """The first visible character from `i` on."""
    end = SPACE(text, i).end()
    return text[end : end + 1]
