"""The signs with which texts show calls without making them: comments, quotation marks, quoted lines, code.

This is the one table of their spellings. It holds for the calls of every form: those of the dialect (`lexicon`), those in
markers of other families (`foreign_markers`), and those with something around them (`surroundings`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»"}
"""Quotation marks with their closers."""
LINE_COMMENTS = ("#", "//", "--")
"""Beginnings of a comment line in which the opener of a call or message is the first word."""
HTML_COMMENT = {"<!--": "-->"}
"""A comment of HTML. Without its closer, it is the rest of the text."""
BLOCK_COMMENTS = {
    r"\{?/\*+": r"\*/",
    r"\(\*++(?!\w|[^()*]*\))": r"(?<!\()\*\)",
    r"\{#": r"#\}",
    r"\{-": r"-\}",
    r"\{\{!?--": r"--\}\}",
    r"<%--": r"--%>",
    r"<#": r"#>",
    r"#\|": r"\|#",
    r"#=": r"=#",
    r"--\[=*\[": r"\]=*\]",
    r"=begin\b": r"\n=end\b",
    r'"""(?=\w+[.:,]? )': r'"""',
    r"'''(?=\w+[.:,]? )": r"'''",
}
"""Patterns of other comments and texts of documentation that span lines, with those of their closers. Globs, footnotes and
operators look like their openers, so one without its closer is none."""
LINES = (">", "")
"""Beginnings of a quoted line without their white space: of a quotation, and of an indented line."""
TICKS = ("`", "``")
"""Beginnings of inline code."""
QUOTING = ("code", "pre", "samp", "kbd", "tt", "blockquote", "q")
ELEMENTS = {
    f"<{name}{end}": f"</{name}>"
    for name in (*QUOTING, *map(str.upper, QUOTING), *map(str.capitalize, QUOTING))
    for end in (">", " ")
}
"""HTML elements that show a call, if its opener is the first word in them, with their closers. Attributes may follow those that
end with a blank."""
ELEMENT = re.compile(rf"<({'|'.join(QUOTING)})(?: [^<>\n]*)?>\Z", re.IGNORECASE).search
"""Matches the tag of such an element at the end of a text."""


class Surroundings(NamedTuple):
    """Patterns for what ends the surroundings of a call. `comment` shows that the call is an example. `pair` does if a text
    follows, or if it matches with a group."""

    comment: re.Pattern[str] | None
    pair: re.Pattern[str] | None
