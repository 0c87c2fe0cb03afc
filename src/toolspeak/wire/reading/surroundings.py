"""Finds what surrounds a call that only shows it: a pair of marks on lines of their own, or the items of a list.

A pair is a line with one mark before the call, and a line with the same word after it: `<example>` and `</example>`,
`\\begin{verbatim}` and `\\end{verbatim}`, `[code]` and `[/code]`, or the same quotation marks. Models also put real calls
into such pairs, so one counts like a fence: between two texts it is an example. Control markers are no such pair.
In a list, the call is an example if the next item is a text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..prompt.known_markers import SHAPES, control_markers
from .foreign_markers import CLOSES, MAY_PRECEDE, markers_before, texts_before
from .lexicon import MARK, QUOTES, Program
from .lookahead import ahead
from .next_mark import MARKED
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
OPENING = re.compile(r"""[^\w\s/]+ ?(?:\w{1,5}[^\w\s/])?(\w[\w.:-]*)(?:\s[^<>]*[\w"'])?( ?[^\w\s/]+)""").fullmatch
"""Matches a line of one mark, with its word and what ends it."""
DOCSTRING = re.compile(f"[{''.join(QUOTES)}]{{3,}}").fullmatch
CONTROL = re.compile("|".join(SHAPES)).search
CONTROL_MARKER = re.compile("|".join(SHAPES)).fullmatch
Closer = re.Pattern[str]


def surrounding(s: State, p: Program, word: str) -> Closer | None:
    """A pattern for what ends the surroundings of the call that begins here with `word`, if a text after that shows that
    the call is an example."""
    more, patterns = len(s.recent) == RECENT, list[str]()
    # Nothing tells a tag that opens the call, in the form of another family, from one around it: each may be either.
    marked = MAY_PRECEDE(s.recent.rstrip()[-2:])
    for rest in (_without_markers(s.recent, p), *texts_before(s.recent, word, p.marked)) if marked else (s.recent,):
        before, _, line = rest.rstrip().rpartition("\n")
        line = line.strip()
        if not any((line == "", len(line) > LONG, CONTROL(line), _is_control(line, p))):
            patterns.append(_closer(line, any((more, before.strip()))))
    known = "|".join(filter(None, dict.fromkeys(patterns)))
    return re.compile(known) if known else None


def _without_markers(recent: str, p: Program) -> str:
    """The text without the control markers at its end. Those of another family may open the call, inside its surroundings."""
    text = recent.rstrip()
    if not text.endswith(CLOSES):
        return recent
    for _ in range(MOST):
        start = max(text.rfind("<"), text.rfind("["))
        if not (start >= 0 and _is_control(text[start:], p)):
            break
        text = text[:start].rstrip()
    return text


def _is_control(marker: str, p: Program) -> bool:
    return any((marker in control_markers(p.d), CONTROL_MARKER(marker)))


@lru_cache(256)
def _closer(line: str, earlier: bool) -> str:
    """A pattern for what ends what this line begins; "" if it begins nothing. `earlier`: there is text before it."""
    if item := ITEM(line):
        return re.escape(item[1]) + r"\s" if item[1] else rf"\d{{1,3}}{re.escape(item[2])}\s"
    if not earlier:
        return ""
    if DOCSTRING(line):
        return re.escape(line)
    mark = OPENING(line)
    return rf"[^\w\s]{{1,3}} ?(?:\w{{1,5}}[^\w\s]?)?{re.escape(mark[1] + mark[2])}" if mark else ""


def shows(s: State, p: Program, closer: Closer) -> Scan[bool]:
    """Whether the surroundings end here, and a text follows. Consumes nothing."""
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
    offset = start + hit.end()
    for _ in range(MOST):
        start, line = yield from _line(s, offset)
        marks = closer.match(line)
        if marks is None:
            if (yield from ahead(s, offset, p.legal)):
                return False
            marks = MARKED(line)
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
    if s.closer and (call := s.complete_call):
        if (yield from shows(s, p, s.closer)):
            s.note("trailing-text", (yield from beginning(s)))
        if not (s.text_before_call or call.open_ended):
            s.end_complete_call()
