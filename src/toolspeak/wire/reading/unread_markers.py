"""Recognizes the markers of a call around something that is no call of the dialect.

A model that writes `<tool_call>ls -la</tool_call>` tried to call, although nothing can be run. The text stays text, and
the note `unread-call` says so. Talk about the markers is no such attempt:

- The opener stands at the beginning of a line, where a call may begin: not quoted, not in a fence or a thought.
- The closer ends its line, and the two begin or end the reply. Between texts they are an example.
- In a dialect without closers, the opener begins the reply, and no words follow as in a sentence.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .source import SPACE, Scan, Source, following

BLANKS = 40
"""The most blanks between a closer and the end of its line."""
TAIL = 300
"""Characters of the text in which a closer, its blanks and the end of its line stand."""


class UnreadMarkers:
    """Watches for the closer that belongs to an opener without a call.

    `first_closer` matches one at the end of a line, if the opener begins the reply; `last_closer` one at the end of the
    reply. `closed`: the first was there.
    """

    __slots__ = ("closed", "failed", "first_closer", "last_closer", "tail")

    def __init__(self) -> None:
        self.first_closer: re.Pattern[str] | None = None
        self.last_closer: re.Pattern[str] | None = None
        self.closed = False
        self.failed = False
        """Whether an opener began no call, where it was no talk."""
        self.tail = ""

    def open(self, closers: tuple[str, ...], *, first: bool, words: bool) -> None:
        """After an opener at the beginning of a line that began no call. `first`: nothing stands before it. `words`: a sentence
        may follow it."""
        self.failed = True
        if closers:
            line_end, self.last_closer = _patterns(closers)
            self.first_closer = line_end if first else self.first_closer
        else:
            self.closed |= first and not words

    def look(self, text: str) -> None:
        """Looks for the first closer in the next piece of the text."""
        seen = self.tail + text
        if self.first_closer is not None and self.first_closer.search(seen):
            self.closed, self.first_closer = True, None
        self.tail = seen[-TAIL:]

    def ended(self, text: str, calls: int) -> bool:
        """Whether the reply, which has so many calls and ends with this text, has such markers. Beside a call they count for
        nothing."""
        last = self.last_closer.search(text) if self.last_closer else None
        return self.closed | bool(last) if not calls else False


def words_follow(s: Source) -> Scan[bool]:
    """Whether what follows an opener may be a sentence. Consumes nothing."""
    c = yield from following(s)
    space = SPACE(s.text, s.pos)[0]
    return not any((c in ("{", "["), "\n" in space, c.isalnum() > bool(space)))


@lru_cache(512)
def _patterns(closers: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns for one of the closers at the end of a line, and at the end of a text."""
    words = "|".join(map(re.escape, closers))
    return re.compile(rf"(?:{words})[^\S\n]{{0,{BLANKS}}}\n"), re.compile(rf"(?:{words})\s*\Z")
