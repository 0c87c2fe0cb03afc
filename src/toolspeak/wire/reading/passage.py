"""Finds the next mark of a call in a text, past code blocks and quotations that only show one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast
from unicodedata import category

from ...events import TextDelta
from .json_tokens import ENDS
from .lexicon import CALL, CODE, END, FENCE, FRAME, HEAD, MARK, Program
from .source import Marks, Scan, at, following, marks, until, visible
from .state import State

OPEN = ("<!--", "~~~", "\n~~~")
"""What goes on over lines until it is closed."""
MOST_MARKED = 128
MARKED = re.compile(rf"(?:(?:{MARK.pattern})[^\S\n]*)+(?:\n|\Z)").match
KNOWN = re.compile(rf"[^\n]{{0,{MOST_MARKED - 1}}}\n|[^\n]{{{MOST_MARKED}}}").match
"""Markers to the end of a line, of at most so many characters; and a line whose end, or length, is known."""
TICKS = cast("Callable[[str, int], re.Match[str]]", re.compile("`*").match)
BRACES = cast("Callable[[str, int], re.Match[str]]", re.compile(r"(?:\{(?=\{))*").match)

Match = tuple[str, str, str]


def mark(s: State, p: Program, fresh: bool, block: bool) -> Scan[Match | None]:
    """Pass text on to the next mark and eat it: its kind, its word, the white space before it if there may be some.

    From before the mark of a call or a message on, text can be given back. In a block of code fewer marks count.
    """
    s.within = s.unfinished = False
    if fresh and p.fresh:
        s.keep()
        word = yield from at(s, *p.fresh)
        if word:
            kind, space = p.fresh[word], s.recorded()[: -len(word)]
            if kind not in (CALL, HEAD):
                s.commit()
            return END if kind == FRAME else kind, word, space
        s.back()
    word = yield from _in_text(s, p.block if block else p.marks)
    if word is None:
        return None
    s.within = s.line != "" and word[0] != "\n"
    s.unfinished = goes_on(s.line)
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


class CodeBlock:
    """A block of code, open or not, and how many backticks opened it: a fence of fewer stands in it."""

    __slots__ = ("open", "ticks")

    def __init__(self) -> None:
        self.open, self.ticks = False, 0

    def fence(self, s: State) -> Scan[None]:
        """A fence was told: pass the backticks behind it on, which are of it, and open or close the block."""
        ticks = len(FENCE)
        while True:
            if run := TICKS(s.text, s.pos)[0]:
                s.say(run)
                s.pos += len(run)
                ticks += len(run)
            if s.closed or s.pos < len(s.text):
                break
            yield
        if not self.open:
            self.open, self.ticks = True, ticks
        elif ticks >= self.ticks:
            self.open = False


def pass_quoted(s: State, p: Program, word: str, opener: str = "") -> Scan[None]:
    """Pass code, a quotation or a comment on, which only talks of calls: to what ends it, or the end of the line. Where
    it begins with what opens a call, which may have lines: of the paragraph. What begins the next line is not eaten. `opener`
    stands behind a `word` that does not hold it."""
    yield from _pass_words(s, (opener, *p.lead(opener)) if opener else p.lead(word[1:]))
    opener = opener or word[1:]
    end, last = p.shown.get(word, "`"), "\n" if opener in ("", "{", "[") else "\n\n"
    if end == "\n\n":
        end = last
    ends = (end,) if word in OPEN or end.isspace() else (end, last)
    hit = yield from _visible_until(s, p, ends, opener in p.starts)
    if hit.isspace():
        s.pos -= 1
        hit = hit[:-1]
    s.say(hit)


def _pass_words(s: State, words: tuple[str, ...]) -> Scan[None]:
    """Pass on the words of an opener that is shown, as far as they stand there: there may be a paragraph in it."""
    for word in words:
        s.keep()
        found = yield from at(s, word)
        said = s.recorded()
        s.commit()
        if not found:
            return
        s.say(said)


def _visible_until(s: State, p: Program, ends: tuple[str, ...], message: bool) -> Scan[str]:
    """Pass on what is shown: to one of `ends`, which is eaten, or "" where the message ends in which it is shown, or
    the text does. A `message` that is shown has an end of its own."""
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


def goes_on(line: str) -> bool:
    """Does the sentence go on with which this line ends? A word, a number or a comma is then the last that stands
    there."""
    last = line.rstrip()[-1:]
    return last != "" and (last == "," or category(last)[0] in "LMN")


def marked_to_its_end(s: State) -> Scan[bool]:
    """Are control markers all that the rest of the line holds, which is no block of code? A longer rest is text."""
    if s.fenced:
        return False
    while True:
        start = visible(s.text, s.pos)
        rest = s.text[start : start + MOST_MARKED]
        if s.closed or KNOWN(rest):
            return bool(MARKED(rest))
        yield
