"""Decides where a quoted value ends: `<![CDATA[value]]>` before the closer of its parameter."""

from __future__ import annotations

from ..reading.lookahead import ahead
from ..reading.source import Scan
from ..reading.state import State
from .tag_words import TagWords


class QuotedValue:
    """The value of one parameter between the marks `quote`, the first of which was read. A quotation in the value hides
    where it ends, unless that has its own end: then the call is doubtful."""

    __slots__ = ("inside", "quote", "s", "words")

    def __init__(self, s: State, words: TagWords, quote: tuple[str, str]) -> None:
        self.s, self.words, self.quote = s, words, quote
        self.inside = 0

    def closes(self, hit: str) -> Scan[str | None]:
        """Whether a mark ends the value: None if it does."""
        if hit == self.quote[0]:
            self.inside += 1
            return hit
        if not (yield from ahead(self.s, 0, (self.words.close, *self.words.legal))):
            self.inside = max(0, self.inside - 1)
            return hit
        if self.inside:
            self.s.note("trailing-text", hit)
            self.s.call_inside = self.s.offset + self.s.pos
        return None
