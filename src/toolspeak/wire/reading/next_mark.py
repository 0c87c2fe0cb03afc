"""Finds the next mark in a text: what begins a call, a thought, a message or a quotation, or ends one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast
from unicodedata import category

from ...events import TextDelta
from .emphasized_tags import closer_of, emphasized_tag
from .foreign_markers import CLOSES, MAY_PRECEDE, QUOTED, line_before, quotation_before
from .json_tokens import ENDS
from .lexicon import CALL, END, FRAME, HEAD, MARK, TAG, THINK, UNTHINK, Program
from .other_turns import turn_begun, turn_in_text
from .quotations import CodeBlock, pass_foreign
from .source import Scan, at, following, pass_all, until, visible
from .state import State

MOST_MARKED = 128
MARKED = re.compile(rf"(?:(?:{MARK.pattern})[^\S\n]*)+(?:\n|\Z)").match
KNOWN = re.compile(rf"[^\n]{{0,{MOST_MARKED - 1}}}\n|[^\n]{{{MOST_MARKED}}}").match
"""Markers up to the end of a line, of at most so many characters; and a line whose end, or length, is known."""
BRACES = cast("Callable[[str, int], re.Match[str]]", re.compile(r"(?:\{(?=\{))*").match)
IN_OBJECT = frozenset((*ENDS, "}", ""))
"""What comes after a brace that begins an object; the text may also end there."""

Match = tuple[str, str, str]


def mark(s: State, p: Program, fresh: bool, block: CodeBlock) -> Scan[Match | None]:
    """Passes text on up to the next mark and consumes it. Returns its kind, its word, and the whitespace before it,
    which may be given back.

    From before the mark of a call or message on, text can be given back. In a code block fewer marks count.
    """
    before, s.text_before_call, s.line = s.text_before_call, False, ""
    within, s.within_line = s.within_line, False
    if p.fresh and fresh > within:
        begun = yield from _begun(s, p, before)
        if begun:
            return begun
    word = yield from _next_word(s, p, block)
    if word is None:
        return None
    s.line = s.recent.rpartition("\n")[2].strip()
    s.text_before_call = (within | (s.line != "")) > (word[0] == "\n")
    kind = p.inside.get(word, "")
    if block.open:
        kind = block.kind(p, word)
    elif not kind:
        kind = _kind_of_tag(word, p)
    if word in p.turn_words:
        kind = yield from turn_in_text(s, p, word, kind)
    if kind in (CALL, HEAD):
        _record_call(s, word)
    return kind, word, ""


def _begun(s: State, p: Program, before: bool) -> Scan[Match | None]:
    """The mark that begins here, if there is one."""
    s.start_recording()
    word = yield from at(s, *p.fresh)
    if all((word, p.fresh.get(word) == TAG)):
        word = yield from emphasized_tag(s, word, p.emphasized)
    if not word:
        s.give_back()
        return None
    kind = p.fresh[word] if word in p.fresh else _kind_of_tag(word, p)
    space = s.recorded()[: -len(word)]
    if word in p.turns:
        kind = yield from turn_begun(s, p, word, kind)
    if kind not in (CALL, HEAD):
        s.commit()
    s.text_before_call = before > ("\n" in space)
    return END if kind == FRAME else kind, word, space


def _next_word(s: State, p: Program, block: CodeBlock) -> Scan[str | None]:
    """Passes text on up to the next mark and consumes it, or the line that is an emphasized tag. Braces that begin no object
    are text, and so is a quoted call of another family."""
    wanted = p.block if block.open else p.marks
    if wanted is None:
        yield from pass_all(s, s.emit_text)
        return None
    while word := (yield from until(s, wanted, s.emit_text, TextDelta)):
        kind = p.inside.get(word)
        if word == "{" and not (yield from _begins_object(s)):
            run = BRACES(s.text, s.pos)  # fast path for many braces
            s.emit_text(word + run[0])
            s.pos = run.end()
        elif kind == TAG:
            if line := (yield from emphasized_tag(s, word, p.emphasized)):
                return line
            s.emit_text("\n")
            s.pos += 1
        else:
            called = all((kind == CALL, word.strip() in p.entries, not block.open))
            marked = called and MAY_PRECEDE(s.recent.rstrip()[-2:])
            quotation = _quotation_around(s, p, word) if marked else ""
            if not quotation:
                return word
            yield from pass_foreign(s, p, quotation, word)
    return None


def _begins_object(s: State) -> Scan[bool]:
    """Whether the brace that was consumed begins an object. It counts as not consumed until more text arrives."""
    s.pos -= 1
    c = yield from following(s, 1)
    s.pos += 1
    return c in IN_OBJECT


def _quotation_around(s: State, p: Program, word: str) -> str:
    """What begins a quotation before the markers of another family, which precede the opener `word`; "" if nothing does.
    Without such markers, the quotation and the opener are one mark."""
    quotation = quotation_before(s.recent, word, p)
    return "" if all((quotation == QUOTED, QUOTED not in p.quotations)) else quotation


def _record_call(s: State, word: str) -> None:
    """Keeps text from before the opener of a call. If the markers of another family come before it, the text before these is
    the one before the call."""
    s.pos -= len(word)
    s.start_recording()
    s.pos += len(word)
    line = line_before(s.recent) if s.recent.rstrip()[-1:] in CLOSES else None
    if line is not None and any((line, not s.text_before_call)):
        s.line, s.text_before_call = line, line != ""


def record_from(s: State, word: str) -> None:
    """Keeps text from before the word that was just consumed, so that it can be given back."""
    s.pos -= len(word)
    s.start_recording()
    s.pos += len(word)


def _kind_of_tag(word: str, p: Program) -> str:
    """The kind of a line that is an emphasized tag: it opens a thought, or closes one."""
    return THINK if closer_of(word, p.emphasized) else UNTHINK


def goes_on(line: str) -> bool:
    """Whether a sentence continues after this line: it ends with a word, a number or a comma."""
    last = line[-1:]
    return last != "" and any((last == ",", category(last)[0] in "LMN"))


def marked_to_its_end(s: State) -> Scan[bool]:
    """Whether the rest of the line has only control markers and is no code block. A long rest counts as text."""
    if s.fenced:
        return False
    while True:
        start = visible(s.text, s.pos)
        rest = s.text[start : start + MOST_MARKED]
        if any((s.closed, KNOWN(rest))):
            return bool(MARKED(rest))
        yield
