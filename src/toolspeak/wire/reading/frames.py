"""Drops the marks around texts, with the whitespace that the dialect has beside them. Inside a text they stay."""

from __future__ import annotations

from typing import NamedTuple

from ..turn_ends import TURN_ENDS
from .call_repairs import only
from .lexicon import END, Program
from .lookahead import ahead
from .source import SPACE, Scan, at, peek, skip
from .state import State

MOST = 100
"""The most marks of ends in a row that are looked at. If there are more, the first ones are text."""


class RowOfEnds(NamedTuple):
    """Marks of ends in a row, by positions in the reply, and whether something that starts anew, or nothing, follows."""

    start: int
    end: int
    beyond: tuple[str, ...]
    over: bool


def drop_frame(s: State, p: Program, word: str) -> Scan[None]:
    """Drops a frame that was consumed at the end of a text; a newline before it is text, unless it belongs to it."""
    if all((word in p.unthink, word not in p.frames)):
        s.note("stray-closer", word)
    s.emit_text("\n" if all((word[0] == "\n", word not in p.frame_space)) else "")
    end = s.offset + s.pos
    yield from skip(s, p.frame_space.get(word, 0))
    s.text_before_call &= s.offset + s.pos == end
    yield from keep_apart(s, p, word)


def drop_closer(s: State, p: Program, word: str, close: str) -> Scan[None]:
    """Drops the closer of a thought that is not open, with the whitespace behind the closer of the dialect."""
    s.note("stray-closer", word.strip())
    s.emit_text("\n" if word[0] == "\n" else "")
    yield from skip(s, len(close) - len(close.rstrip()))
    yield from keep_apart(s, p, word)


def keep_apart(s: State, p: Program, word: str) -> Scan[None]:
    """After the mark `word` was dropped: words on both sides of it stay apart, by a line break. A call or the end needs none,
    nor does the mark of a thought that stays in the text."""
    if s.recent.endswith((word, *p.unthink)):
        return
    last, c = s.recent[-1:], (yield from peek(s, 1))
    if any((last == "", last.isspace(), c == "", c.isspace())):
        return
    opens = yield from at(s, *p.marked, *p.starts, eat=False)
    over = False if opens else (yield from only(s, (*p.frames, *p.unthink, *TURN_ENDS)))
    s.emit_text("" if any((opens, over)) else "\n")


def at_end(s: State, p: Program, beyond: tuple[str, ...]) -> Scan[bool]:
    """Whether nothing follows, or something that starts anew, one of the words `beyond`. Further marks of ends alone are
    neither: what is behind all of them decides for each of them, and is looked for once."""
    here, row = s.offset + s.pos, s.row_of_ends
    if row and all((row.start <= here < row.end, row.beyond == beyond)):
        return row.over
    ends = (*p.d.stop, *p.ends)
    offset = 0
    for _ in range(MOST):
        end = yield from ahead(s, offset, ends)
        if end <= 0:
            break
        offset = end
    else:
        s.row_of_ends = RowOfEnds(here, here + offset, beyond, False)
        return False
    anew = (yield from ahead(s, offset, tuple(word for word in beyond if word not in ends))) > 0
    over = any((anew, s.closed and SPACE(s.text, s.pos + offset).end() == len(s.text)))
    s.row_of_ends = RowOfEnds(here, here + offset + 1, beyond, over)
    return over


def ends_message(s: State, p: Program, kind: str, word: str) -> Scan[bool]:
    """Whether the word is an END. The mark of a message's end may also be inside its text, which only shows it."""
    if kind != END:
        return False
    if any((word not in p.ends, s.ignored_call, not s.has_text)):
        return True
    return (yield from at_end(s, p, (*p.beyond, *p.heads)))
