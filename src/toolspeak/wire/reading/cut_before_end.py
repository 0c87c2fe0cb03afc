"""Recognizes a reply that ends with the beginning of a call, with the mark of the end of its turn visible behind it."""

from __future__ import annotations

import re
from functools import lru_cache

from ..turn_ends import TURN_ENDS
from .lexicon import Program
from .state import State


def cut_before_end(s: State, p: Program) -> bool:
    """Whether the text in front of the marks of an end has a regular opener at the beginning of a line, and no closer
    behind it."""
    if any((s.call_count, s.truncated, s.other_turn, not s.unread.failed)):
        return False
    opener = _opener(p)
    text = _ends(p).sub("", s.recent)
    begin = opener.search(text) if opener else None
    return begin is not None and not any(closer in text[begin.end() :] for closer in p.visible_closers)


@lru_cache(512)
def _ends(p: Program) -> re.Pattern[str]:
    words = "|".join(map(re.escape, (*p.d.stop, *TURN_ENDS)))
    return re.compile(rf"(?:(?:{words})\s*)+\Z")


@lru_cache(512)
def _opener(p: Program) -> re.Pattern[str] | None:
    words = "|".join(map(re.escape, sorted(p.markers_of_calls, key=len, reverse=True)))
    return re.compile(rf"(?:\A|\n)[^\S\n]*(?:{words})(?:[^\s:.,;!?]\S*|\n[^\w\s][^\n]*)?\s*\Z") if words else None
