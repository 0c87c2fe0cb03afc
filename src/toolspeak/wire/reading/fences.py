"""Reads what is around code in Markdown: a fence with the language of the code, or backticks."""

from __future__ import annotations

import re

from .lookahead import ahead
from .source import Scan, at, following, visible
from .state import State

FENCE, TICK = "```", "`"
MOST = 24
"""The most letters of a code block's language."""
LANGUAGE = re.compile(rf"[\w+-]{{1,{MOST + 1}}}").match


def language(s: State) -> Scan[None]:
    """Consumes the language after a fence."""
    size = yield from language_size(s, 0)
    if s.text[s.pos + size : s.pos + size + 1] == "\n":
        s.pos += size


def language_size(s: State, offset: int) -> Scan[int]:
    """The length of the word `offset` characters ahead; 0 if it is too long. The next character has arrived too."""
    while True:
        start = s.pos + offset
        m = LANGUAGE(s.text, start)
        size = m.end() - start if m else 0
        if size > MOST:
            return 0
        if any((start + size < len(s.text), s.closed)):
            return size
        yield


def frame_in_fence(s: State, frames: tuple[str, ...], fence: str) -> Scan[None]:
    """Consumes a frame that closes the calls in a code block: behind it, the fence would open another block."""
    frame = (yield from at(s, *frames, eat=False)) if fence else ""
    size = (yield from ahead(s, 0, (frame,))) if frame else 0
    if size > 0 and (yield from ahead(s, size, (fence,))) > 0:
        yield from at(s, frame)


def fence_of_arguments(s: State) -> Scan[str]:
    """Consumes the fence before arguments, with the language, or what is before an object: a fence on its line, or a
    backtick. Returns what closes it; "" if there is none."""
    words = (TICK,) if s.fenced else (FENCE, TICK)
    fence = yield from at(s, *words, eat=False)
    if not fence:
        return ""
    behind = visible(s.text, s.pos) - s.pos + len(fence)
    if fence == FENCE:
        behind += yield from language_size(s, behind)
    c = yield from following(s, behind)
    block = all((fence == FENCE, s.text[s.pos + behind : s.pos + behind + 1] == "\n"))
    if not any((block, c == "{")):
        return ""
    s.pos += behind
    return fence
