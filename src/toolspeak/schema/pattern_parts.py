"""Finds the part of a pattern that the engine cannot read, for an error.

The engine says only that a whole pattern is invalid. So the pattern is split into its alternatives, these into their
parts, and a group into what is in it; each piece is compiled alone, and the smallest invalid one is the answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

LONGEST = 2_000
"""Characters of the longest pattern that is searched: each piece of it is compiled."""
PIECE = re.compile(
    r"""(?P<open>\((?:\?(?:<?[=!]|P?<[^>]*>|[a-zA-Z-]*:)?)?)|(?P<close>\))|(?P<either>\|)
    |(?P<times>(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?)|(?P<atom>\[\^?\]?(?:\\.|[^\]\\])*\]|\\[pP]\{[^}]*\}|\\k<[^>]*>|\\.|.)""",
    re.DOTALL | re.VERBOSE,
)
"""Matches a piece of a pattern: what opens or closes a group, `|`, a repetition, or anything else."""


REFERENCE = re.compile(r"\\[1-9k]")
"""Matches the beginning of a back-reference, which is invalid without its group."""


def why_invalid(pattern: str, valid: Callable[[str], bool]) -> str:
    """What is wrong with an invalid pattern, for an error; "" if that is unknown."""
    if len(pattern) > LONGEST:
        return ""
    kinds = Counter(piece.lastgroup for piece in PIECE.finditer(pattern))
    if kinds["open"] != kinds["close"]:
        return f"it opens {kinds['open']} groups and closes {kinds['close']}"
    part = _invalid_part(pattern, valid)
    return "" if part == pattern else f"this part of it cannot be read: {part}"


def _invalid_part(pattern: str, valid: Callable[[str], bool]) -> str:
    """The smallest part of an invalid pattern that is invalid by itself."""
    inner: str | None = pattern
    while inner is not None:
        pattern = inner
        parts = (part for part in _parts(pattern) if part != pattern)
        inner = next((part for part in parts if REFERENCE.match(part) is None and not valid(part)), None)
    return pattern


def _parts(pattern: str) -> Iterator[str]:
    """The alternatives of a pattern; of a single one, its parts; of a single group, what is in it."""
    for marks in (("either",), ("either", "open", "atom")):
        parts = _split(pattern, marks)
        if len(parts) > 1:
            yield from parts
            return
    opened = PIECE.match(pattern)
    if opened is not None and opened.lastgroup == "open":
        end = pattern.rfind(")")
        yield pattern[: end + 1]
        yield pattern[opened.end() : end]


def _split(pattern: str, marks: tuple[str, ...]) -> list[str]:
    """The pattern, split outside its groups at the beginning of these pieces; a `|` itself is left out."""
    cuts, depth = [(0, 0)], 0
    for piece in PIECE.finditer(pattern):
        if piece.lastgroup in (marks if depth == 0 else ()):
            cuts.append((piece.start(), piece.end() if piece.lastgroup == "either" else piece.start()))
        depth += (piece.lastgroup == "open") - (piece.lastgroup == "close")
    ends = [*(start for start, _ in cuts[1:]), len(pattern)]
    return [pattern[begin:end] for (_, begin), end in zip(cuts, ends, strict=True) if begin < end]
