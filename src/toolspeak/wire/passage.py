"""A text up to the mark that ends it: what is looked for where, and what only shows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from ..events import TextDelta
from .jsonscan import ENDS
from .program import CALL, CODE, END, FENCE, FRAME, HEAD, Program
from .scan import Marks, Scan, at, following, marks, until
from .state import State

OPEN = ("<!--", "~~~", "\n~~~")
"""What goes on over lines until it is closed."""
BRACES = cast("Callable[[str, int], re.Match[str]]", re.compile(r"(?:\{(?=\{))*").match)

Found = tuple[str, str, str]


def mark(s: State, p: Program, fresh: bool, block: bool) -> Scan[Found | None]:
    """Pass text on to the next mark and eat it: its kind, its word, the white space before it if there may be some.

    From before the mark of a call or a message on, text can be given back. In a block of code fewer marks count.
    """
    s.within = False
    if fresh and p.fresh:
        s.keep()
        word = yield from at(s, *p.fresh)
        if word:
            kind, space = p.fresh[word], s.kept()[: -len(word)]
            if kind not in (CALL, HEAD):
                s.commit()
            return END if kind == FRAME else kind, word, space
        s.back()
    word = yield from _in_text(s, p.block if block else p.marks)
    if word is None:
        return None
    s.within = s.midline and word[0] != "\n"
    kind = CODE if block and word == FENCE else p.inside[word]
    if kind in (CALL, HEAD):
        keep_from(s, word)
    return kind, word, ""


def _in_text(s: State, wanted: Marks | None) -> Scan[str | None]:
    """Pass text on to the next mark and eat it; braces that begin no object are text."""
    if wanted is None:
        yield from all_of_it(s)
        return None
    word = yield from until(s, wanted, s.say, TextDelta)
    while word == "{":
        s.pos -= 1  # not eaten while more text comes
        c = yield from following(s, 1)
        s.pos += 1
        if not c or c in ENDS or c == "}":
            break
        run = BRACES(s.text, s.pos)  # the quick way through many of them
        s.say(word + run[0])
        s.pos = run.end()
        word = yield from until(s, wanted, s.say, TextDelta)
    return word


def keep_from(s: State, word: str) -> None:
    """From before the word that was just eaten on, text can be given back."""
    s.pos -= len(word)
    s.keep()
    s.pos += len(word)


def all_of_it(s: State) -> Scan[None]:
    """Nothing is looked for: all of it is text."""
    while True:
        s.say(s.text[s.pos :])
        s.pos = len(s.text)
        if s.closed:
            return
        yield


def shown(s: State, p: Program, word: str) -> Scan[None]:
    """Pass code, a quotation or a comment on, which only talks of calls: to what ends it, or the end of the line. Where
    it begins with what opens a call, which may have lines: of the paragraph. What begins the next line is not eaten."""
    end = p.shown.get(word, "`")
    last = "\n" if word == "`" or word[1:] in ("{", "[") else "\n\n"
    hit = yield from _shown_to(s, p, (end,) if word in OPEN or end == "\n" else (end, last), word[1:] in p.starts)
    if hit.isspace():
        s.pos -= 1
        hit = hit[:-1]
    s.say(hit)


def _shown_to(s: State, p: Program, ends: tuple[str, ...], message: bool) -> Scan[str]:
    """Pass on what is shown: to one of `ends`, which is eaten, or "" where the message ends in which it is shown, or the
    text does. A `message` that is shown has an end of its own."""
    wanted = marks((*ends, *p.starts, *p.ends), "\n")
    while hit := (yield from until(s, wanted, s.say, TextDelta)):
        if hit in ends:
            return hit
        over = hit in p.ends
        if over > message:
            s.pos -= len(hit)
            return ""
        message = not over
        s.say(hit)
    return ""
