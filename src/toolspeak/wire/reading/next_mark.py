"""Finds the next mark (a text with which a call may begin), and skips code blocks and quotations that only show one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast
from unicodedata import category

from ...events import TextDelta
from .json_tokens import ENDS
from .lexicon import CALL, CODE, END, FENCE, FRAME, HEAD, MARK, Program
from .source import Marks, Scan, at, following, marks, pass_all, until, visible
from .state import State

OPEN = ("<!--", "~~~", "\n~~~")
"""Openers of blocks that span lines until they are closed."""
MOST_MARKED = 128
MARKED = re.compile(rf"(?:(?:{MARK.pattern})[^\S\n]*)+(?:\n|\Z)").match
KNOWN = re.compile(rf"[^\n]{{0,{MOST_MARKED - 1}}}\n|[^\n]{{{MOST_MARKED}}}").match
"""Markers up to the end of a line, of at most so many characters; and a line whose end, or length, is known."""
TICKS = cast("Callable[[str, int], re.Match[str]]", re.compile("`*").match)
BRACES = cast("Callable[[str, int], re.Match[str]]", re.compile(r"(?:\{(?=\{))*").match)
IN_OBJECT = frozenset((*ENDS, "}", ""))
"""What comes after a brace that begins an object; the text may also end there."""

Match = tuple[str, str, str]


def mark(s: State, p: Program, fresh: bool, block: bool) -> Scan[Match | None]:
    """Passes text on up to the next mark and consumes it. Returns its kind, its word, and the whitespace before it,
    which may be given back.

    From before the mark of a call or message on, text can be given back. In a code block fewer marks count.
    """
    s.text_before_call, s.line = False, ""
    within, s.within_line = s.within_line, False
    if p.fresh and fresh > within:
        s.start_recording()
        word = yield from at(s, *p.fresh)
        if word:
            kind, space = p.fresh[word], s.recorded()[: -len(word)]
            if kind not in (CALL, HEAD):
                s.commit()
            return END if kind == FRAME else kind, word, space
        s.give_back()
    word = yield from _in_text(s, p.block if block else p.marks)
    if word is None:
        return None
    s.line = s.recent.rpartition("\n")[2].strip()
    s.text_before_call = (within | (s.line != "")) and word[0] != "\n"
    kind = CODE if block and word == FENCE else p.inside[word]
    if kind in (CALL, HEAD):
        record_from(s, word)
    return kind, word, ""


def _in_text(s: State, wanted: Marks | None) -> Scan[str | None]:
    """Passes text on up to the next mark and consumes it; braces that begin no object are text."""
    if wanted is None:
        yield from pass_all(s, s.emit_text)
        return None
    word = yield from until(s, wanted, s.emit_text, TextDelta)
    while word == "{":
        s.pos -= 1  # not consumed until more text arrives
        c = yield from following(s, 1)
        s.pos += 1
        if c in IN_OBJECT:
            break
        run = BRACES(s.text, s.pos)  # fast path for many braces
        s.emit_text(word + run[0])
        s.pos = run.end()
        word = yield from until(s, wanted, s.emit_text, TextDelta)
    return word


def record_from(s: State, word: str) -> None:
    """Keeps text from before the word that was just consumed, so that it can be given back."""
    s.pos -= len(word)
    s.start_recording()
    s.pos += len(word)


class CodeBlock:
    """Whether a code block is open, and the number of backticks that opened it: a fence of fewer is inside it."""

    __slots__ = ("open", "ticks")

    def __init__(self) -> None:
        self.open, self.ticks = False, 0

    def fence(self, s: State) -> Scan[None]:
        """After a fence: passes on the remaining backticks, and opens or closes the block."""
        ticks = len(FENCE)
        while True:
            if run := TICKS(s.text, s.pos)[0]:
                s.emit_text(run)
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
    """Passes on code, a quotation or a comment that only shows calls: to its closer, or to the end of the line.

    If it begins with the opener of a call, which may span lines, it extends to the end of the paragraph. What begins
    the next line is not consumed. `opener` follows a `word` that does not contain it.
    """
    yield from _pass_words(s, (opener, *p.lead(opener)) if opener else p.lead(word[1:]))
    opener = opener or word[1:]
    end, last = p.quotations.get(word, "`"), "\n" if opener in ("", "{", "[") else "\n\n"
    if end.isspace():
        end = last
    ends = (end,) if word in OPEN or end.isspace() else (end, last)
    hit = yield from _visible_until(s, p, ends, opener in p.starts)
    if hit.isspace():
        s.pos -= 1
        hit = hit[:-1]
    s.emit_text(hit)


def _pass_words(s: State, words: tuple[str, ...]) -> Scan[None]:
    """Passes on the words of a quoted opener, as far as they are present: they may contain a paragraph break."""
    for word in words:
        s.start_recording()
        present = yield from at(s, word)
        text = s.recorded()
        s.commit()
        if not present:
            return
        s.emit_text(text)


def _visible_until(s: State, p: Program, ends: tuple[str, ...], message: bool) -> Scan[str]:
    """Passes on quoted text up to one of `ends`, which is consumed. Returns "" if the enclosing message or the text
    ends first. A quoted `message` has its own end."""
    wanted = marks((*ends, *p.starts, *p.ends), "\n")
    while hit := (yield from until(s, wanted, s.emit_text, TextDelta)):
        if hit in ends:
            return hit
        over = hit in p.ends
        if over > message:
            s.pos -= len(hit)
            return ""
        message = not over
        s.emit_text(hit)
    return ""


def goes_on(line: str) -> bool:
    """Whether a sentence continues after this line: it ends with a word, a number or a comma."""
    last = line[-1:]
    return last != "" and (last == "," or category(last)[0] in "LMN")


def marked_to_its_end(s: State) -> Scan[bool]:
    """Whether the rest of the line has only control markers and is no code block. A long rest counts as text."""
    if s.fenced:
        return False
    while True:
        start = visible(s.text, s.pos)
        rest = s.text[start : start + MOST_MARKED]
        if s.closed or KNOWN(rest):
            return bool(MARKED(rest))
        yield
