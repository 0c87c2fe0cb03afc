"""Decides whether a text on the line of a call continues the sentence that the call begins: then it only talks about it.

Models also write behind real calls: a new sentence, marks of ends, closers too many, the role that remains of a special
token that was removed (`</tool_call>assistant`). In scripts without case, a new sentence begins directly behind the call,
and looks like the rest of one. So a sentence goes on only where one of these follows on the line of the call:

- After a blank, a word in lower case. A single word without punctuation is none, since it may be a role or an id.
- A comma, colon, semicolon, dash, arrow, opening bracket or the sign of a comment, and a word or number after it.
- A question mark.

At most one word is waited for, and nothing beyond the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import cast
from unicodedata import category

from .foreign_markers import LISTS, line_before, markers_ahead
from .lexicon import Program
from .lookahead import ahead
from .quoting_signs import HTML_COMMENT, LINE_COMMENTS
from .source import GAP, Scan
from .state import State

Match = Callable[..., re.Match[str]]

MOST = 8
"""The most duplicate closers between a call and its sentence."""
WINDOW = 64
"""The most characters that are looked at, without duplicate closers."""
BLANK = cast("Match", re.compile(r"[^\S\n]*").match)
LEAD = cast("Match", re.compile(r"[\s)\]}>*_\"'“”‘’«»]*").match)
"""Matches what may come before the first word or sign: brackets too many, quotation marks and Markdown's marks."""
SEPARATORS = (",", ";")
QUESTION = ("?", "？")
COMMENTS = "|".join(map(re.escape, (*LINE_COMMENTS, *HTML_COMMENT)))
SIGN = re.compile(rf"[,;:，；：、…→⇒]|=>?(?!=)|\.\.|<-|/\*|(?!##)(?:{COMMENTS})").match
"""Matches a sign inside a sentence, or of a comment. Several number signs are a heading."""
NEXT = re.compile(r"\[\s*(?:[{\]]|[\w.]+\(|\d+\]|/?[A-Z][A-Z_]*\])").match
"""Matches the beginning of a list of calls or data, the number of a source, and a mark in brackets (`[1]`, `[DONE]`)."""
HALF = re.compile(r"(?:[/.#=]|<(?:!-?)?|\[\s*/?[\w.]*)\Z").match
"""Matches the beginning of what may become one of these."""
TAG = re.compile(r"<(\w+>)").fullmatch
"""Matches an element's tag."""
TOKEN = cast("Match", re.compile(r"\S+").match)
WORD = re.compile(r"(?:\w(?:\.\w)+\.|[^\W\d_]+(?:['’/-][^\W\d_]+)*)([^\w\s(<{\[=]*)").fullmatch
"""Matches a word of a sentence, no name (`get_time`, `a.b`, `f(`), with the punctuation after it."""
Verdict = bool | None
"""None if more of the line decides."""


def sentence_goes_on(s: State, p: Program) -> Scan[bool]:
    """Whether the sentence goes on behind the call that was read, on its line. Consumes nothing."""
    offset = 0
    for _ in range(MOST):
        end = yield from _mark_ahead(s, offset, p)
        if s.text[s.pos + offset : s.pos + end].strip() not in p.strays:
            if end:
                return False
            break
        offset = end
    offset = yield from beyond_markers(s, p, offset)
    if (yield from _separated(s, offset, p)):
        return False
    while True:
        line, end_of_line, _ = s.text[s.pos + offset : s.pos + offset + WINDOW].partition("\n")
        verdict = continues(line, any((end_of_line, s.closed, len(line) == WINDOW)))
        if verdict is not None:
            return verdict
        yield


def continues(line: str, whole: bool) -> Verdict:
    """Whether the beginning of a line continues a sentence. `whole`: no more of it decides."""
    lead = LEAD(line)[0]
    rest = line[len(lead) :]
    unknown = False if whole else None
    if not rest:
        return unknown
    if rest[0] in QUESTION:
        return True
    if rest[0].isalpha():
        return _word(rest, unknown) if rest[0].islower() and any(map(str.isspace, lead)) else False
    return _sign(rest, unknown)


def _word(rest: str, unknown: Verdict) -> Verdict:
    """Whether a sentence goes on with the word in lower case that begins here."""
    token = TOKEN(rest)[0]
    if unknown is None and token == rest:
        return None
    word = WORD(token)
    if word is None:
        return False
    return True if word[1] or rest[len(token) :].strip() else unknown


def _sign(rest: str, unknown: Verdict) -> Verdict:
    """Whether a sentence goes on with the sign that begins here: a word or a number must follow it."""
    if HALF(rest):
        return unknown
    kind = category(rest[0])
    if not any((SIGN(rest), kind == "Pd", all((kind == "Ps", rest[0] != "{", not NEXT(rest))))):
        return False
    return True if any(map(str.isalnum, rest)) else unknown


def _mark_ahead(s: State, offset: int, p: Program) -> Scan[int]:
    """The distance to the end of a closer or of what may follow a call, if one comes next on the line: another call, the
    mark of an end. -1 if the text ends inside one, 0 if none comes."""
    first = yield from _on_line(s, offset)
    words, letters = _marks(p)
    if s.text[s.pos + first : s.pos + first + 1] not in letters:
        return 0
    return (yield from ahead(s, first, words))


def _separated(s: State, offset: int, p: Program) -> Scan[bool]:
    """Whether a comma or semicolon comes next on the line, and then another call."""
    comma = yield from _on_line(s, offset)
    if not s.text.startswith(SEPARATORS, s.pos + comma):
        return False
    begins = yield from _on_line(s, comma + 1)
    if s.text.startswith(LISTS, s.pos + begins):
        return True
    return (yield from _mark_ahead(s, begins, p)) != 0


def _on_line(s: State, offset: int) -> Scan[int]:
    """The distance to the first visible character of the line from `offset` characters ahead on, or to the end of the line
    or of the text."""
    while True:
        start = s.pos + offset
        end = BLANK(s.text, start).end()
        if any((end < len(s.text), s.closed, end - start > GAP)):
            return end - s.pos
        yield


@lru_cache(512)
def _marks(p: Program) -> tuple[tuple[str, ...], frozenset[str]]:
    """The words that may follow a call on its line, without brackets alone and frames that close it, and their first
    characters."""
    around = _closing_frames(p)
    legal = (word for word in p.legal if len(word) > 1 and not word[0].isspace() and word not in around)
    words = (*p.strays, *legal)
    return words, frozenset(word[0] for word in words)


def beyond_markers(s: State, p: Program, offset: int) -> Scan[int]:
    """The distance to the end of the markers around the call that are not its own, so many characters ahead: those of another
    family, if one opened it, or a frame that closes it. `offset` if there are none."""
    if line_before(s.recent) is not None:
        return (yield from markers_ahead(s, offset))
    frames = _closing_frames(p)
    return max((yield from ahead(s, offset, frames)), offset) if frames else offset


@lru_cache(512)
def _closing_frames(p: Program) -> tuple[str, ...]:
    """What may close a call, is none of its closers, and does not end a turn: a frame of a text (`</tool_call>`, where that
    may be missing), and the closer of the tag that opens a call, if the dialect does not close it."""
    tags = () if p.visible_closers else (f"</{tag[1]}" for tag in map(TAG, p.marked) if tag)
    words = (*(word for word in p.frames if word.startswith("</")), *tags)
    known = {*p.d.stop, *p.strays, *p.closers_of_calls}
    return tuple(word for word in dict.fromkeys(words) if word not in known)
