"""The patterns that the reader takes as the start of a call. A grammar forbids them in free text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from ...types import Tool
from ..dialect import Dialect, JsonCall, Keywords, Part
from ..holes import json_call
from ..reading.lexicon import program
from .rules import Pattern


def openers(d: Dialect, tools: Sequence[Tool[..., Any]]) -> list[Pattern]:
    """The patterns that begin a call, or may begin one, at any position."""
    # An ordinary word begins a call only if the bracket follows it.
    bracket = ("", d.items[0].strip()[0]) if d.items else ()
    words = (word for word in program(d, True).entries if len(word) > 1)
    patterns: list[Pattern] = [(*word, *(bracket if word.isalnum() else ())) for word in words]
    names = tuple(tool.name for tool in tools)
    for form in (d.call, *d.forms) if names else ():
        patterns += _bare(form, d, names)
    return list(dict.fromkeys(patterns))


def _bare(form: tuple[Part, ...], d: Dialect, names: tuple[str, ...]) -> list[Pattern]:
    """How calls of offered tools begin in a form without a mark of its own."""
    first = form[0]
    if isinstance(first, JsonCall) and (form is not d.call or d.guard or not d.open):
        return json_call.openings(first, names)
    listed = program(d, True).entries.get("[")  # a list may be written without its marks
    bare = d.guard or form is not d.call or (listed is not None and form in listed.forms)
    if len(form) > 1 and isinstance(hole := form[1], Keywords) and bare:
        return [(*(("[", "") if d.items else ()), names, "", *hole.open)]
    return []


def first_words(d: Dialect) -> list[Pattern]:
    """What no text may begin with: a thought, or a call's object, which counts at the start of a reply for any name."""
    patterns: list[Pattern] = []
    if d.thinking and (word := d.thinking.open.strip()):
        patterns.append(tuple(word))
    if d.guard and isinstance(hole := d.call[0], JsonCall):
        patterns += json_call.first_keys(hole)
    return patterns


def trigger(text: str, barred: Sequence[Pattern]) -> tuple[str, str]:
    """The shortest prefix of a call's text that free text cannot contain, and the rest."""
    for n in range(1, len(text) + 1):
        if any(_ends(text[:n], pattern) for pattern in barred):
            return text[:n], text[n:]
    return text, ""


def _ends(text: str, pattern: Pattern) -> bool:
    """Whether the text ends with the pattern."""
    if not pattern:
        return True
    *before, place = pattern
    if not place:
        return _ends(text.rstrip(), tuple(before))
    words = place if isinstance(place, tuple) else tuple(place)
    return any(text.endswith(word) and _ends(text[: len(text) - len(word)], tuple(before)) for word in words)


def as_words(barred: Sequence[Pattern]) -> list[str]:
    """The patterns as words in their usual spelling: with double quotes, and a space or none after a colon."""
    words: list[str] = []
    for pattern in barred:
        for space in ("", " "):
            places: list[tuple[str, ...]] = [
                place if isinstance(place, tuple) else (place[:1] or (space if pattern[i - 1] == ":" else ""),)
                for i, place in enumerate(pattern)
            ]
            words += map("".join, product(*places))
    return list(dict.fromkeys(words))
