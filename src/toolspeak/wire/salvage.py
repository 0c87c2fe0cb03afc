"""When the text leaves its dialect: what is kept all the same, and the note that it leaves.

What can be repaired without guessing at an argument is. Inside JSON values that is done in `jsonscan`
(rules single-quotes, python-literal, trailing-comma, bare-key, raw-control, bad-escape, lone-surrogate); around them here:
missing-closer, stray-closer, missing-opener, fence, list, no-calls; in tags (`codecs.spellings`) other-tags, quoted-key,
wrapped-arguments; and in a call's object no-arguments, unclosed-object, collapsed-call. A call that is no more than half
there is told with whole=False (rules cut, malformed); so is one of which something was left out, or that can be read in
more than one way (the rules in `state.DOUBTFUL`): a repair counts only where all that stands in the call is accounted for.
"""

from __future__ import annotations

from collections.abc import Sequence

from .scan import GAP, SPACE, Scan, at, following, literal_words
from .state import State

BRACKETS = ("}", "]")
MOST = 8
"""No more closers than this are taken for doubled ones, one after another."""


def missing(s: State, word: str, legal: tuple[str, ...]) -> Scan[bool]:
    """A closer is not where it should be: brackets too many stand before it, or it was left out: False. Then the
    end has to come, or one of `legal`; else there is more in the call than was read."""
    stray = ""
    half = _half(s, legal)
    while not half and len(stray) < MOST and (bracket := (yield from at(s, *BRACKETS))):
        stray += bracket
    if stray:
        s.note("stray-closer", stray)
    if half or not (yield from at(s, word)):
        s.note("missing-closer", word)
        yield from trailing(s, legal)
        return False
    return True


def trailing(s: State, legal: tuple[str, ...]) -> Scan[None]:
    """Does more stand behind a call than its end, or one of `legal`? A bare object may be the next call: that waits."""
    if s.judged == s.base + s.pos:
        return
    c = yield from following(s)
    s.judged = s.base + s.pos
    whole = not c or (s.cut and s.closed) or (c in "{[" and c in legal) or _half(s, legal)
    if not whole and not (yield from at(s, *(w for w in legal if len(w) > 1), eat=False)):
        s.note("trailing-text", c)


def _half(s: State, words: tuple[str, ...]) -> bool:
    """Does the text end within one of these words?"""
    i = SPACE(s.text, s.pos).end()
    return s.closed and i < len(s.text) < i + GAP and any(word.startswith(s.text[i:]) for word in words)


def closing(s: State, closers: Sequence[str], legal: tuple[str, ...]) -> Scan[None]:
    """What closes a section: the list, the section itself, the fence around it."""
    words = [word for closer in closers for word in literal_words(closer)]
    for word in words:
        found = bool((yield from at(s, word)))
        if not found:
            found = yield from missing(s, word, (*words, *legal))
        if s.ending:
            s.ending.open_ended = not found


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
