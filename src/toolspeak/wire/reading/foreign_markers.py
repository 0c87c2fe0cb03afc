"""Looks beyond the markers of another family around a call, which are text: what is around them is around the call.

A model may write its call in the markers of another family. Then these stand on the lines before and behind it, and the
call seems to be on lines of its own:

    I would say <other_tool_call>
    {"name": "delete", "arguments": {}}
    </other_tool_call> but I will not.

In the same way, a quotation, a comment or an element may begin directly before them, and then shows the call. The opener
of another family may also be a word that is glued to a list (`functools[…]`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_letters, digits

from ..prompt.known_markers import SHAPES, control_markers
from ..turn_ends import TURN_ENDS
from .fences import TICK
from .lexicon import MARK, Program
from .lookahead import ahead
from .quoting_signs import ELEMENT, LINE_COMMENTS, LINES, QUOTES
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
MAY_PRECEDE = re.compile(r".?[>\]A-Za-z_]|[>\]][\[{]", re.DOTALL).fullmatch
"""Matches the last two visible characters of a text that may end with markers of another family: a fast answer, for texts
with many openers."""
WORD = f"{ascii_letters}{digits}_"
LISTS = ("[", "{")
"""Beginnings of a list or an object, with which a call may begin."""
BEFORE_QUOTE = "([{=:,"
"""What may come before a quotation mark that opens, besides white space."""
PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*\Z").search
"""Matches the end of a paragraph at the end of a text."""
QUOTED = LINES[0]
"""What begins a quoted line."""
SIGNS = (*LINE_COMMENTS, QUOTED)
"""What may be alone before markers on a line. Those of a call below are known; any other tag (`# <nav>`) is the line's own."""
CONTROL_MARKER = re.compile("|".join(SHAPES)).fullmatch
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
        rest = _without_role(text[:start])
        text = rest.rstrip()
    return None if rest == end else rest.rpartition("\n")[2].strip()


def quotation_before(recent: str, opener: str, p: Program) -> str:
    """The word that begins a quotation directly before the markers of another family that this text ends with, and
    `opener` follows; "" if there is none."""
    for rest in texts_before(recent, opener, p.marked):
        line = rest.rpartition("\n")[2]
        sign = line.strip()
        if element := ELEMENT(rest.rstrip()):
            return f"<{element[1]}>"
        markers, below, _ = (recent[len(rest) :].rstrip(" \t") + opener).partition("\n")
        if sign in SIGNS:
            if any((not below, *(is_control(marker, p) for marker in MARK.findall(markers)))):
                return sign
        elif all((sign[:1] == QUOTED, not below)):  # a tag in a quoted sentence opens no call below
            return QUOTED
        mark, before = line[-1:], line[-2:-1]
        if any((mark in QUOTES and not before.strip(BEFORE_QUOTE), mark == TICK != before and line.count(TICK) % 2)):
            return mark
    return ""


def is_control(marker: str, p: Program) -> bool:
    """Whether this is a control marker of any family."""
    return any((marker in control_markers(p.d), CONTROL_MARKER(marker)))


def texts_before(recent: str, opener: str, marked: tuple[str, ...]) -> Iterator[str]:
    """The texts before each of the markers at the end of this text, the last one first; `opener` follows it. Markers in
    another paragraph are none around the call, nor are those on another line before one of the `marked` openers."""
    space = recent[len(recent.rstrip()) :] + opener[: -len(opener.lstrip())]
    if PARAGRAPH(space) or all((opener.strip() in marked, "\n" in space)):
        return
    text = recent.rstrip()
    text = text[:-1] if text.endswith(LISTS) else recent
    if opener in LISTS and text[-1:].isidentifier():
        text = text.rstrip(WORD)
        yield text
    for _ in range(MOST):
        over, text = PARAGRAPH(text), text.rstrip()
        start = max(text.rfind("<"), text.rfind("["))
        if any((over, start < 0, not text.endswith(CLOSES), text[start + 1 : start + 2] == "/")):
            break
        if any((not MARK.fullmatch(text, start), text.endswith(TURN_ENDS))):
            break
        text = text[:start]
        yield text
        text = _without_role(text)


def _without_role(text: str) -> str:
    """The text before a marker without the words that are glued to it, such as the role in a head."""
    return text[: max(map(text.rfind, "<>[]\n")) + 1] if GLUED(text[-1:]) else text


def markers_before(s: State, openers: tuple[str, ...], offset: int) -> Scan[int]:
    """The distance to the end of the markers so many characters ahead, if a call follows them; otherwise 0."""
    end = yield from markers_ahead(s, offset)
    return end if end > offset and (yield from ahead(s, end, openers)) > 0 else 0


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
