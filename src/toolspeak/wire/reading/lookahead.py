"""Looks at what comes next in a reply, without consuming it. Waits for more text if that decides."""

from __future__ import annotations

from .marks import marks
from .source import CAP, GAP, SPACE, Scan, Source


def ahead(s: Source, offset: int, words: tuple[str, ...]) -> Scan[int]:
    """The distance to the end of the longest of `words` that comes `offset` characters ahead after whitespace.

    0 if there is none, -1 if the text ends before or inside one. Consumes nothing.
    """
    while True:
        text, start = s.text, s.pos + offset
        i = SPACE(text, start).end()
        left = len(text) - i
        if i - start > GAP:
            return 0
        half = not left or any(left < len(word) and word.startswith(text[i:]) for word in words)
        if s.closed or not half:
            best = max((len(word) for word in words if text.startswith(word, i)), default=0)
            return i + best - s.pos if best else -half
        yield


def token_ahead(s: Source, offset: int, ends: tuple[str, ...]) -> Scan[tuple[str, str] | None]:
    """The text `offset` characters ahead, of at most `CAP` characters, with the mark after it; None if there is none.
    Consumes nothing."""
    search, longest = marks(ends).full, max(map(len, ends))
    while True:
        text, start = s.text, s.pos + offset
        m = search(text, start, start + CAP + longest)
        whole = s.closed or len(text) - start >= CAP + longest
        if m and m.start() - start > CAP:
            return None
        if m and (s.closed or not _may_grow(text, m.start(), ends)):
            return text[start : m.start()], m[1]
        if whole and not m:
            return None
        yield


def _may_grow(text: str, i: int, words: tuple[str, ...]) -> bool:
    """Whether the text from `i` on is an incomplete word."""
    left = len(text) - i
    return any(left < len(word) and word.startswith(text[i:]) for word in words)
