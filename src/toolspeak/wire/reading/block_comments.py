"""Finds the block comments around a call, of any language, which make it text.

A comment is known by its opener and its closer. Globs, footnotes and operators look like openers, so one without its closer
is none: the call in it counts, and hides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .quoting_signs import BLOCK_COMMENTS
from .source import Scan
from .state import RECENT, State

OPENERS = "|".join(f"({opener})" for opener in BLOCK_COMMENTS)
MAY_COMMENT = re.compile(OPENERS).search
"""A fast answer for texts with many openers of calls: whether a comment may be open."""
BEHIND_BLANK, ON_LINE = (re.compile(rf"{before}(?:{OPENERS})").finditer for before in (r"(?<!\S)", r"\n[^\S\n]*"))
"""Match the openers of comments, each with a group of its own: behind a blank, and at the beginning of a line."""
NO_GLOB = r"(?![\w*]|\.\w)"
"""What follows no closer, but the beginning of a path (`*/build`, `*/*.py`, `*/.git`): at most two characters tell."""

ENDS = [
    (re.compile(closer).search, rf"(?s:(?:(?!{opener}).)*?){closer}{NO_GLOB}")
    for opener, closer in BLOCK_COMMENTS.items()
]
"""For each kind of comment, what searches its closer, and a pattern for the rest of one that is open."""


def comments_around(s: State) -> Iterator[str]:
    """Patterns for the ends of the comments around the call that begins here. The opener of each begins its line, or is on
    the line of the call."""
    text = s.recent if len(s.recent) == RECENT else "\n" + s.recent
    line = text.rfind("\n") + 1 if s.text_before_call else len(text)
    for begun in (*ON_LINE(text), *BEHIND_BLANK(text, line)):
        closes, end = ENDS[(begun.lastindex or 1) - 1]
        if not closes(text, begun.end()):
            yield end


def comment_ends(s: State, comment: re.Pattern[str]) -> Scan[bool]:
    """Whether the comment around the call ends in the next characters, at most RECENT. Consumes nothing."""
    while True:
        text = s.text[s.pos : s.pos + RECENT]
        end = comment.match(text)
        if any((s.closed, len(text) == RECENT, end and end.end() + 1 < len(text))):
            return end is not None
        yield
