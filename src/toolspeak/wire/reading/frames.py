"""Drops the marks around texts, with the whitespace that the dialect has beside them. Inside a text they stay."""

from __future__ import annotations

from .lexicon import END, Program
from .source import SPACE, Scan, at, skip
from .state import State


def drop_frame(s: State, p: Program, word: str) -> Scan[None]:
    """Drops a frame that was consumed at the end of a text; a newline before it is text, unless it belongs to it."""
    if word in p.unthink and word not in p.frames:
        s.note("stray-closer", word)
    s.emit_text("\n" if word[0] == "\n" and word not in p.frame_space else "")
    end = s.offset + s.pos
    yield from skip(s, p.frame_space.get(word, 0))
    s.text_before_call &= s.offset + s.pos == end


def at_end(s: State, beyond: tuple[str, ...]) -> Scan[bool]:
    """Whether nothing follows, or something that starts anew, one of the words `beyond`."""
    if beyond and (yield from at(s, *beyond, eat=False)):
        return True
    return s.closed and SPACE(s.text, s.pos).end() == len(s.text)


def ends_message(s: State, p: Program, kind: str, word: str) -> Scan[bool]:
    """Whether the word is an END. The mark of a message's end may also be inside its text, which only shows it."""
    if kind != END:
        return False
    if any((word not in p.ends, s.ignored_call, not s.has_text)):
        return True
    return (yield from at_end(s, (*p.beyond, *p.heads)))
