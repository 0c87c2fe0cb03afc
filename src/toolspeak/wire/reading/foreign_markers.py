"""Looks beyond the markers of another family around a call, which are text: a sentence around them is one around the call.

A model may write its call in the markers of another family. Then these stand on the lines before and behind it, and the
call seems to be on lines of its own:

    I would say <other_tool_call>
    {"name": "delete", "arguments": {}}
    </other_tool_call> but I will not.
"""

from __future__ import annotations

import re

from ..turn_ends import TURN_ENDS
from .lexicon import MARK
from .source import GAP, Scan, visible
from .state import State

MOST = 8
"""The most markers on one side of a call."""
LONG = 128
"""The most characters of a marker."""
CLOSES = (">", "]")
"""The ends of markers."""
GLUED = re.compile("[A-Za-z0-9]").match
"""Matches what stands before a marker in the head of a message (`assistant<|end_header_id|>`), and before none in a sentence."""
HALF = re.compile(r"(?:<(?:[^<>\s!][^<>\n]*)?|\[/?[A-Z_]*)\Z").match
"""Matches the beginning of a marker at the end of a text."""


def line_before(recent: str) -> str | None:
    """The text before the markers that end this text, on their line; None if it ends with no opening marker."""
    text = rest = end = recent.rstrip()
    if not text.endswith(CLOSES):
        return None
    for _ in range(MOST):
        start = max(text.rfind("<"), text.rfind("["))
        marker = MARK.fullmatch(text, start) if start >= 0 else None
        if any((marker is None, text[start + 1 : start + 2] == "/", text.endswith(TURN_ENDS))):
            break
        rest = text[:start]
        if GLUED(rest[-1:]):
            rest = rest[: max(map(rest.rfind, "<>[]\n")) + 1]
        text = rest.rstrip()
    return None if rest == end else rest.rpartition("\n")[2].strip()


def markers_ahead(s: State, offset: int) -> Scan[int]:
    """The distance to the end of the markers so many characters ahead, or `offset` if there are none."""
    for _ in range(MOST):
        end = yield from _marker_ahead(s, offset)
        if not end:
            break
        offset = end
    return offset


def _marker_ahead(s: State, offset: int) -> Scan[int]:
    """The distance to the end of the marker so many characters ahead, after white space; 0 if there is none."""
    while True:
        start = visible(s.text, s.pos + offset)
        marker = MARK.match(s.text, start, start + LONG)
        far = start - s.pos - offset > GAP
        half = any((start == len(s.text), HALF(s.text, start, start + LONG)))
        if any((marker, s.closed, not half, far, len(s.text) - start >= LONG)):
            break
        yield
    if far:
        return 0
    return marker.end() - s.pos if marker else 0
