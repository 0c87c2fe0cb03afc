"""When the text leaves its dialect: what is kept all the same, and the note that it leaves.

What can be repaired without guessing at an argument is. Inside JSON values that is done in `jsonscan`
(rules single-quotes, python-literal, trailing-comma, bare-key, raw-control, bad-escape, lone-surrogate); around them here:
missing-closer, stray-closer, missing-opener, fence, list, no-calls; in tags (`codecs.spellings`) other-tags, quoted-key,
wrapped-arguments; and in a call's object no-arguments, unclosed-object,
collapsed-call. A call that is no more than half there is told with whole=False (rules cut, malformed).
"""

from __future__ import annotations

from collections.abc import Sequence

from .scan import GAP, SPACE, Scan, at, following, literal_words
from .state import State

BRACKETS = ("}", "]")
MOST = 8
"""No more closers than this are taken for doubled ones, one after another."""


def missing(s: State, word: str) -> Scan[None]:
    """A closer is not where it should be: brackets too many stand before it, or it was left out."""
    stray = ""
    while len(stray) < MOST and (bracket := (yield from at(s, *BRACKETS))):
        stray += bracket
    if stray:
        s.note("stray-closer", stray)
    if not (yield from at(s, word)):
        s.note("missing-closer", word)


def closing(s: State, closers: Sequence[str]) -> Scan[None]:
    """What closes a section: the list, the section itself, the fence around it."""
    for word in (word for closer in closers for word in literal_words(closer)):
        if not (yield from at(s, word)):
            yield from missing(s, word)


def after_call(s: State, strays: tuple[str, ...], openers: tuple[str, ...]) -> Scan[None]:
    """Closers written once too often after a section, and white space that ends the reply."""
    for _ in range(MOST):
        word = yield from at(s, *strays, *openers, eat=False)
        if word not in strays:
            break
        yield from at(s, word)
        s.note("stray-closer", word)
    yield from following(s)
    end = SPACE(s.text, s.pos).end()
    if s.closed and end == len(s.text) and end - s.pos <= GAP:
        s.pos = end
