"""Recognizes the tag of a thought that is a line of its own in Markdown's emphasis: `**<think>**`.

A tag in backticks is only mentioned.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from ..thought_tags import spellings
from .source import Scan, Source

EMPHASIS = "*_"
"""The characters that Markdown has around a tag."""
BEGINNINGS = tuple(f"{mark}<" for mark in ("**", "*", "__", "_"))
"""How such a line begins."""
LONGEST = 48
"""The most characters of such a line."""
_LINE = re.compile(rf"\n?([{EMPHASIS}]{{1,2}})(<[^<>\s]+>)\1(?=[ \t]*(?:\n|\Z))")


def emphasized_tags(tags: Mapping[str, str]) -> Mapping[str, str]:
    """Maps the openers of thoughts that are tags, in lower case, to the closer of the first that is spelled so, and the
    closers to ""."""
    openers: dict[str, str] = {}
    for word, close in tags.items():
        if all((close, word[0] == "<")):
            openers.setdefault(word.lower(), close)
    return dict.fromkeys(map(str.lower, openers.values()), "") | openers


def closer_of(word: str, tags: Mapping[str, str]) -> str:
    """The closer of a thought that such a line opens, emphasized like it; "" if it is no such line."""
    line = _LINE.match(word)
    if line is None:
        return ""
    closer = tags.get(line[2].lower())
    return f"{line[1]}{closer}{line[1]}" if closer else ""


def closers(closer: str) -> tuple[str, ...]:
    """Everything that closes the same thought as this closer: in each spelling, emphasized like it or not."""
    bare = closer.strip(EMPHASIS)
    mark = closer[: closer.index(bare)]
    plain = (bare, *spellings(bare))
    return (*plain, *(f"{mark}{one}{mark}" for one in plain))


def emphasized_tag(s: Source, word: str, tags: Container[str]) -> Scan[str]:
    """The line that begins with the `word` that was just consumed, up to the end of its last mark, if it is one of the tags
    alone. Otherwise "", and the word is given back."""
    s.pos -= len(word)
    while True:
        text = s.text[s.pos : s.pos + LONGEST]
        if any((s.closed, len(text) == LONGEST, "\n" in text[1:])):
            break
        yield
    m = _LINE.match(text)
    if m is None or m[2].lower() not in tags:
        return ""
    s.pos += m.end()
    return m[0]
