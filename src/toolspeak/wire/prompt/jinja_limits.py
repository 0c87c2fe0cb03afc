"""Limits the tokens in one tag of a chat template, so that a recursive compiler cannot overflow the stack.

Each operator, filter, call or attribute in an expression is one level deeper, and a recursive compiler would crash the
process when the stack is used up.
"""

from __future__ import annotations

import re
from functools import lru_cache

MOST = 1_000
"""The most tokens in one tag, and the most branches in a template. The tags of 70 real templates have at most 59. The
compiler handles 2,000 of any kind; at 20,000 the process crashed."""
FAILURES = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""How a function fails to which a template gives something else than it takes."""
OPENER = re.compile(r"\{#(?:.*?#\}|.*)|\{%[-+]?\s*raw\s*[-+]?%\}|\{[{%]", re.DOTALL).search
RAW_END = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}").search
# A string, a possible end of the tag, an operator, a word.
PART = re.compile(
    r""""(?:[^"\\]|\\.)*(?:"|\Z)|'(?:[^'\\]|\\.)*(?:'|\Z)|[}%]\}|[^\w\s]|\w+""",
    re.DOTALL,
).search
DEPTHS = dict.fromkeys("([{", 1) | dict.fromkeys(")]}", -1)


@lru_cache(16)
def too_deep(template: str) -> bool:
    """Whether a tag of a template has more than may be compiled."""
    if template.count("elif") > MOST:
        return True
    pos = 0
    while opener := OPENER(template, pos):
        if opener[0][:2] == "{#":
            pos = opener.end()
        elif len(opener[0]) > 2:
            end = RAW_END(template, opener.end())
            pos = end.end() if end else len(template)
        else:
            pos = _tag(template, opener.end())
        if pos < 0:
            return True
    return False


def _tag(template: str, pos: int) -> int:
    """The end of the tag that begins at `pos`; -1 if it has too much."""
    depth = 0
    for _ in range(MOST):
        part = PART(template, pos)
        if part is None:
            return len(template)
        text = part[0]
        pos = part.end()
        if text in ("}}", "%}"):
            if depth == 0:
                return pos
            pos -= 1  # only the first character: the other may belong to the end of the tag
        depth += DEPTHS.get(text[0], 0)
    return -1
