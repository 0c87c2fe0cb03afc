"""Recognizes what a model copies from a text with control markers that were broken in its prompt.

Nobody but toolspeak writes a zero-width space into a marker (see `prompt.control_markers`). So a call behind such an opener,
in the same paragraph or directly behind the opener, or directly before such a marker, is the copy of a text from
outside, and no call of the model. A call that begins with a marker of its own, whole, is none: that marker would be broken
too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import cast

from ..marker_forms import SYMBOL
from ..prompt.control_markers import INVISIBLE, cleaner
from ..prompt.known_markers import control_markers
from .lexicon import Program
from .source import Malformed, Scan, beginning, following, visible
from .state import State

_BROKEN = rf"{SYMBOL}{INVISIBLE}"
_SYMBOLS = re.compile(SYMBOL).match
_BEGINS = re.compile(rf"[\])}}\s]{{0,16}}{_BROKEN}").match
_BRACKETS = cast("Callable[[str, int], re.Match[str]]", re.compile(r"[\])}\s]{0,16}").match)
"""Matches brackets too many, which may come before it."""
_ALONE = rf"(?:(?!{_BROKEN})\S)*(?:{SYMBOL}|>)\s*\Z"
_IN_PARAGRAPH = rf"(?:(?!\n\s*\n|{_BROKEN}).)*\Z"
_OPENER = re.compile(rf"{_BROKEN}(?!/)(?:{_ALONE}|{_IN_PARAGRAPH})", re.DOTALL).search


def refuse_copy(s: State, p: Program, word: str) -> None:
    """Raises Malformed if the last broken marker before a call that begins with `word` is no closer, and nothing ends its
    paragraph."""
    space = s.recorded().rstrip().removesuffix(word)
    if all((word not in _proofs(p), _OPENER(s.recent + space))):
        raise Malformed("a copy of a broken marker")


def note_copy_before(s: State, p: Program, word: str) -> Scan[None]:
    """Notes that the call that began with `word` is not whole if a broken marker, such as a closer, directly follows it."""
    if word in _proofs(p):
        return
    if not _SYMBOLS((yield from following(s))):
        return
    while not any((s.closed, _BRACKETS(s.text, visible(s.text, s.pos)).end() + 1 < len(s.text))):
        yield
    if _BEGINS(s.text, visible(s.text, s.pos)):
        s.note("trailing-text", (yield from beginning(s)))


@lru_cache(512)
def _proofs(p: Program) -> frozenset[str]:
    """The markers that would be broken in a copy. If none of the dialect's would be, a copy of its calls has no sign."""
    clean = cleaner(control_markers(p.d), [])
    return frozenset(word for word in p.marked if clean(word) != word) or frozenset(p.marked)
