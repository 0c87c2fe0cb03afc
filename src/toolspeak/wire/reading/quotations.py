"""Passes on quotations: code blocks and other texts that only show calls, messages and thoughts, which stay text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from ...events import TextDelta
from .fences import language_size
from .lexicon import CODE, END, FENCE, MARK, TEXT, Program
from .lookahead import token_ahead
from .marks import marks
from .quoting_signs import HTML_COMMENT, QUOTES
from .source import Scan, at, literal_words, peek, until
from .state import State

TILDES = "~~~"
OPEN = (*HTML_COMMENT, TILDES, "\n~~~")
"""Openers of blocks that span lines until they are closed."""
OPENED_BEHIND_TEXT = re.compile(rf"[^\s~][^\n]*{TILDES}\s*(?:(?:{MARK.pattern})\s*)*{TILDES}\Z").search
PARAGRAPH = "\n\n"
"""What ends a paragraph."""
LASTS = ">]})"
"""The last characters of calls: a quotation mark behind another one may be in the call."""
BACKTICKS = cast("Callable[[str, int], re.Match[str]]", re.compile("`*").match)


class CodeBlock:
    """The code block in which the text is, if one is `open`.

    `depth` is the number of blocks in one another, `ticks` that of the backticks that opened the outer one: a fence of
    fewer is text. `message`: a message began in the block, so its end does not end the block.
    """

    __slots__ = ("depth", "message", "open", "ticks")

    def __init__(self) -> None:
        self.message = self.open = False
        self.depth = self.ticks = 0

    def end(self) -> None:
        """The message around the block ends, and the block with it."""
        self.open, self.depth = False, 0

    def kind(self, p: Program, word: str) -> str:
        """The kind of a word in the open block. The end of a message that began in it is text."""
        if word == FENCE:
            return CODE
        kind = p.inside.get(word, TEXT)
        if kind == END:
            kind, self.message = TEXT if self.message else END, False
        self.message |= word == p.body_opener
        return kind

    def fence(self, s: State) -> Scan[None]:
        """After a fence: passes on the remaining backticks, and opens or closes a block. One with a language closes
        nothing."""
        ticks = len(FENCE)
        while (yield from peek(s, 1)) == "`":
            run = BACKTICKS(s.text, s.pos)[0]
            s.emit_text(run)
            s.pos += len(run)
            ticks += len(run)
        if not self.depth:
            self.message, self.depth, self.ticks = False, 1, ticks
        elif ticks >= self.ticks:
            size = yield from language_size(s, 0)
            opens = all((size, ticks == self.ticks, s.text[s.pos + size : s.pos + size + 1] == "\n"))
            self.depth += 1 if opens else -1
        self.open = self.depth > 0


def _closes_around(s: State, word: str) -> bool:
    """Whether these tildes close what others opened behind a text on its line, around a call and its markers.

    Those open no code block, so the call counted. All of it is in the text.
    """
    return bool(s.call_count and OPENED_BEHIND_TEXT(s.recent)) if word.strip() == TILDES else False


def pass_quoted(s: State, p: Program, word: str, opener: str = "") -> Scan[None]:
    """Passes on code, a quotation or a comment that only shows calls: to its closer, or to the end of the line.

    If it begins with the opener of a call, which may span lines, it extends to the end of the paragraph. What begins
    the next line is not consumed. `opener` follows a `word` that does not contain it.
    """
    if _closes_around(s, word):
        return
    yield from _pass_words(s, (opener, *p.lead(opener)) if opener else p.lead(word[1:]))
    opener, end = opener or word[1:], p.quotations.get(word, "`")
    if opener in p.thoughts:
        after = yield from _pass_thought(s, p, end)
        if after is None:
            return
        opener = after
        end = p.quotations.get(word[:1] + opener, end)
    last = "\n" if opener in ("", "{", "[") else PARAGRAPH
    if end.isspace():
        end = last
    ends = (end,) if word in OPEN or end.isspace() else (end, last)
    yield from _pass_to_end(s, p, ends, opener in p.starts)


def pass_element(s: State, p: Program, word: str) -> Scan[None]:
    """Passes on what an element only shows, if it begins with a call, a message or a thought.

    `word` begins its tag: with a blank at its end, attributes follow.
    """
    if word.endswith(" "):
        attributes = yield from token_ahead(s, 0, (">", "<", "\n"))
        if attributes is None or attributes[1] != ">":
            return
        s.emit_text(attributes[0] + ">")
        s.pos += len(attributes[0]) + 1
    if opener := (yield from at(s, *p.quotable, eat=False)):
        yield from pass_quoted(s, p, word, opener)


def pass_foreign(s: State, p: Program, word: str, opener: str) -> Scan[None]:
    """Passes on the quotation that `word` began before the markers of another family, after the `opener` of a call that
    follows them: to its closer, or to the end of the paragraph."""
    s.emit_text(opener)
    yield from _pass_words(s, p.lead(opener.strip()))
    ends = tuple(last + QUOTES[word] for last in LASTS) if word in QUOTES else (p.quotations.get(word, word),)
    yield from _pass_to_end(s, p, (PARAGRAPH,) if ends[0].isspace() else (*ends, PARAGRAPH), False)


def _pass_to_end(s: State, p: Program, ends: tuple[str, ...], message: bool) -> Scan[None]:
    """Passes on quoted text up to one of `ends`. A line break that ends it is not consumed."""
    hit = yield from _visible_until(s, p, ends, message)
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


def _pass_thought(s: State, p: Program, end: str) -> Scan[str | None]:
    """Passes on a quoted thought, and the opener of the call or message that directly follows it, which is returned: ""
    if there is none. Returns None if the quotation is over: a call or another thought begins on a later line."""
    begun = (*p.drafts, *map("\n".__add__, p.thoughts))
    lines = 0

    def emit(text: str) -> None:
        nonlocal lines
        lines += text.count("\n")
        s.emit_text(text)

    hit = yield from until(s, marks((*p.unthink, *begun, end.strip(), "\n\n")), emit)
    if hit is None:
        return None
    s.pos -= len(hit)
    if hit in begun:
        return None if lines + hit.count("\n") else ""
    if hit not in p.unthink:
        return ""
    yield from _pass_words(s, literal_words(hit))
    opener = yield from at(s, *p.quotable, eat=False)
    if opener in p.thoughts:
        return ""
    yield from _pass_words(s, (opener, *p.lead(opener)))
    return opener


def _visible_until(s: State, p: Program, ends: tuple[str, ...], message: bool) -> Scan[str]:
    """Passes on quoted text up to one of `ends`, which is consumed. Returns "" if the enclosing message or the text
    ends first. A quoted `message` has its own end. A quoted line that begins a call extends to the end of the paragraph,
    since many writers mark only the first line."""
    calls = (*p.marked, *p.closers_of_calls, "`") if ends[0].isspace() else ()
    wanted = marks((*ends, *p.starts, *p.ends, *calls), "\n")
    begun = False
    while hit := (yield from until(s, wanted, s.emit_text, TextDelta)):
        if hit == "\n" and begun:  # the call that the line begins is in the following lines
            s.pos -= 1
            ends, begun = ("\n\n",), False
            wanted = marks((*ends, *p.starts, *p.ends, *calls), "\n")
            continue
        if hit in ends:
            return hit
        if hit in calls and hit not in p.ends:
            begun = hit in p.marked
            s.emit_text(hit)
            yield from _pass_words(s, p.lead(hit))
            continue
        over = hit in p.ends
        if over > message:
            s.pos -= len(hit)
            return ""
        message = not over
        s.emit_text(hit)
    return ""
