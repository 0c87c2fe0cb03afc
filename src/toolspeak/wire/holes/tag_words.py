"""The words to search for while arguments between tags are read, computed once for a dialect's tags."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..dialect import Tagged

WORDS = re.compile(r"\s+|(?<=>)(?=<)").split
"""Splits a literal into words: whitespace between two tags is optional."""
MARK = re.compile(r"<\|\w+\|>")
"""Matches a control marker."""
CLOSER = re.compile(r"</([^<>\s]+)>").fullmatch
"""Matches a closing tag."""


@dataclass(frozen=True, slots=True)
class TagWords:
    """The words to search for in a hole: the opener, the words after a key, the closer and its parts, if it has several
    marks, other openers of the same tag, and what may follow the closer."""

    opener: str
    before: tuple[str, ...]
    mid: tuple[str, ...]
    key_ends: tuple[str, ...]
    lead: str
    close: str
    parts: tuple[str, ...]
    same_tag: tuple[str, ...]
    call: tuple[str, ...]
    line: str
    space: str
    follow: tuple[str, ...]
    legal: tuple[str, ...]
    ends: tuple[str, ...]

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags around a key and its value."""
        return (self.opener, *self.mid, self.close)


@lru_cache(256)
def tag_words(hole: Tagged, follow: tuple[str, ...], call: tuple[str, ...] = ()) -> TagWords:
    """The words for a hole that is followed by one of these; `call` are the words before a call's name."""
    opener, close = hole.open.strip(), hole.close.strip()
    before = tuple(WORDS(hole.typed.before.strip())) if hole.typed else ()
    mid = tuple(WORDS(hole.mid.strip()))
    space = hole.close[: len(hole.close) - len(hole.close.lstrip())]
    follow = tuple(word for word in follow if word)
    first = [w for w in follow[:1] if not close.startswith(w)]
    parts = marks if len(marks := tuple(MARK.findall(close))) > 1 else ()
    tag = CLOSER(close)
    same_tag = tuple(word for end in (" ", ">", "=") if tag and (word := f"<{tag[1]}{end}") != opener)
    ends = [close, space + close, *parts, *call[:1], "\n" + opener, *("\n" + w for w in first), *first, *same_tag]
    return TagWords(
        opener=opener,
        before=before,
        mid=mid,
        key_ends=tuple(dict.fromkeys((*before[:1], mid[0]))),
        lead=hole.mid[len(hole.mid.rstrip()) :],
        close=close,
        parts=parts,
        same_tag=same_tag,
        call=call,
        line="\n" + opener,
        space=space,
        follow=follow,
        legal=(opener, *follow),
        ends=tuple(dict.fromkeys(ends)),
    )
