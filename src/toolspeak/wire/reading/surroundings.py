"""Finds what surrounds a call that only shows it: a block comment, a pair of marks on their lines, or the items of a list.

A pair is a line with one mark before the call, and a line with the same word after it: `<example>` and `</example>`,
`\\begin{verbatim}` and `\\end{verbatim}`, `[code]` and `[/code]`, or the same quotation marks. Models also put real calls
into such pairs, so one counts like a fence: between two texts it is an example. Control markers are no such pair, unless
they are escaped. Behind the sign of a comment (`# <example>`), a pair is a comment.
In a list, the call is an example if the next item is a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from ..prompt.known_markers import SHAPES
from .block_comments import MAY_COMMENT, comment_ends, comments_around
from .foreign_markers import CLOSES, MAY_PRECEDE, is_control, markers_before, texts_before
from .lexicon import MARK, Program
from .lookahead import ahead
from .next_mark import MARKED
from .quoting_signs import LINE_COMMENTS, QUOTES, Surroundings
from .source import SPACE, Scan, beginning, following
from .state import RECENT, State

LONG = 100
"""The most characters of a line that begins surroundings."""
WINDOW = 200
"""The most characters of a line that ends surroundings."""
MOST = 8
"""The most lines of marks after a pair that are no text."""
ITEM = re.compile(r"([-*+•])|\d{1,3}([.)])").fullmatch
"""Matches the mark of an item of a list."""
LESS, GREATER = r"&(?:amp;)?(?:lt|#60);", r"&(?:amp;)?(?:gt|#62);"
"""Brackets that are escaped, as in HTML."""
OPENING = re.compile(
    rf"""(?:{LESS}[^\w\s/]*|[^\w\s/]+ ?(?:\w{{1,5}}[^\w\s/])?)(\w[\w.:-]*)(?:\s[^<>&]*[\w"'])?"""
    rf"( ?[^\w\s/]*{GREATER}| ?[^\w\s/]+)"
).fullmatch
"""Matches a line of one mark, with its word and what ends it."""
DOCSTRING = re.compile(f"[{''.join(QUOTES)}]{{3,}}").fullmatch
CONTROL = re.compile("|".join(SHAPES)).search
COMMENTED = re.compile(rf"(?:{'|'.join(LINE_COMMENTS)})\s*(?:{MARK.pattern})*?({MARK.pattern})").fullmatch
"""Matches a comment line that consists of marks, with the last one."""


def surrounding(s: State, p: Program, word: str) -> Surroundings | None:
    """Patterns for what ends the surroundings of the call that begins here with `word`, if they may show that it is an
    example."""
    comment = _any_of(comments_around(s)) if MAY_COMMENT(s.recent) else None
    pair = _any_of(_pairs(s, p, word)) if len(s.line) <= LONG else None
    return Surroundings(comment, pair) if any((comment, pair)) else None


def _pairs(s: State, p: Program, word: str) -> Iterator[str]:
    """Patterns for the ends of the pairs and items around the call."""
    more = len(s.recent) == RECENT
    # Nothing tells a tag that opens the call, in the form of another family, from one around it: each may be either.
    marked = MAY_PRECEDE(s.recent.rstrip()[-2:])
    for rest in (_without_markers(s.recent, p), *texts_before(s.recent, word, p.marked)) if marked else (s.recent,):
        before, _, line = rest.rstrip().rpartition("\n")
        line = line.strip()
        if not any((line == "", len(line) > LONG, CONTROL(line), is_control(line, p))):
            yield _closer(line, any((more, before.strip())))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str] | None:
    known = "|".join(filter(None, dict.fromkeys(patterns)))
    return re.compile(known) if known else None


def _without_markers(recent: str, p: Program) -> str:
    """The text without the control markers at its end. Those of another family may open the call, inside its surroundings."""
    text = recent.rstrip()
    if not text.endswith(CLOSES):
        return recent
    for _ in range(MOST):
        start = max(text.rfind("<"), text.rfind("["))
        if not (start >= 0 and is_control(text[start:], p)):
            break
        text = text[:start].rstrip()
    return text


@lru_cache(256)
def _closer(line: str, earlier: bool) -> str:
    """A pattern for what ends what this line begins; "" if it begins nothing. `earlier`: there is text before it."""
    if item := ITEM(line):
        return re.escape(item[1]) + r"\s" if item[1] else rf"\d{{1,3}}{re.escape(item[2])}\s"
    if end := _commented(line):
        return end
    if not earlier:
        return ""
    if DOCSTRING(line):
        return re.escape(line)
    mark = OPENING(line)
    before = rf"(?:{LESS}[^\w\s]{{0,2}}|[^\w\s]{{1,3}} ?(?:\w{{1,5}}[^\w\s]?)?)"
    return rf"{before}{re.escape(mark[1] + mark[2])}" if mark else ""


def _commented(line: str) -> str:
    """The same for a pair in comments, with a group; "" if the line begins none."""
    mark = COMMENTED(line)
    end = _closer(mark[1], True) if mark else ""
    return f"({end})" if end else ""


def shows(s: State, p: Program, around: Surroundings) -> Scan[bool]:
    """Whether the surroundings of the call end here, and show that it is an example. Consumes nothing."""
    if around.comment and (yield from comment_ends(s, around.comment)):
        return True
    return (yield from _pair_shows(s, p, around.pair)) if around.pair else False


def _pair_shows(s: State, p: Program, closer: re.Pattern[str]) -> Scan[bool]:
    """Whether the pair ends here, and a text follows or the pair is a comment."""
    start, offset, hit = 0, 0, None
    for _ in range(MOST):
        start, line = yield from _line(s, offset)
        hit = closer.match(line)
        marker = None if hit else MARK.match(line)
        if not marker:
            break
        offset = start + marker.end()  # it closes the call, in the form of another family
    if hit is None:
        return False
    return True if hit.lastindex else (yield from _text_follows(s, p, closer, start + hit.end()))


def _text_follows(s: State, p: Program, closer: re.Pattern[str], offset: int) -> Scan[bool]:
    """Whether a text follows the pair, which ends so many characters ahead, or the closer of a comment does."""
    for _ in range(MOST):
        start, line = yield from _line(s, offset)
        marks = closer.match(line)
        if marks is None:
            if (yield from ahead(s, offset, p.legal)):
                return False
            marks = MARKED(line)
        elif marks.lastindex:
            return True
        if not marks:
            break
        offset = start + marks.end()
    if (yield from markers_before(s, p.openers, offset)):
        return False
    return (yield from following(s, offset)) != ""


def _line(s: State, offset: int) -> Scan[tuple[int, str]]:
    """The next visible line `offset` characters ahead, of at most WINDOW characters, and the distance to it."""
    while True:
        start = SPACE(s.text, s.pos + offset).end()
        line = s.text[start : start + WINDOW]
        if any((s.closed, "\n" in line, len(line) == WINDOW)):
            return start - s.pos, line
        yield


def note_example(s: State, p: Program) -> Scan[None]:
    """Notes that the call is not whole if its surroundings only show it. A call on its own line ends here."""
    if s.surroundings and (call := s.complete_call):
        if (yield from shows(s, p, s.surroundings)):
            s.note("trailing-text", (yield from beginning(s)))
        if not (s.text_before_call or call.open_ended):
            s.end_complete_call()
