"""How a text comes to be read as a call: what no other text may hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...types import Tool
from ..program import program
from ..syntax import Dialect, JsonCall, Keywords, Part
from .rules import Pattern


def openers(d: Dialect, tools: Sequence[Tool[..., Any]]) -> list[Pattern]:
    """The patterns that begin a call, or may."""
    found: list[Pattern] = []
    for word in program(d, True).entries:
        if len(word) > 1:
            # A word of the language means a call only with the bracket behind it.
            found.append((*word, *(("", d.items[0].strip()[0]) if word.isalnum() and d.items else ())))
    for form in (d.call, *d.forms):
        if form is not d.call or d.guard or not d.open:
            found += _bare(form, d, tools)
    return list(dict.fromkeys(found))


def _bare(form: tuple[Part, ...], d: Dialect, tools: Sequence[Tool[..., Any]]) -> list[Pattern]:
    """How a call begins that has no mark of its own."""
    first = form[0]
    if isinstance(first, JsonCall):
        keys = [key for key, _ in (*first.keys, *first.also)]
        names = [name for key in keys for name in ([key] if isinstance(key, str) else [tool.name for tool in tools])]
        return [("{", "", "\"'", *name, "\"'", "", ":") for name in dict.fromkeys(names)]
    if len(form) > 1 and isinstance(hole := form[1], Keywords):
        before = ("[", "") if d.items else ()
        return [(*before, *tool.name, "", *hole.open) for tool in tools]
    return []


def trigger(text: str, barred: Sequence[Pattern]) -> tuple[str, str]:
    """The shortest beginning of a call's text that no other text may hold, and what comes behind it."""
    for n in range(1, len(text) + 1):
        if any(_ends(text[:n], pattern) for pattern in barred):
            return text[:n], text[n:]
    return text, ""


def _ends(text: str, pattern: Pattern) -> bool:
    """Is the pattern at the end of the text?"""
    for place in reversed(pattern):
        if not place:
            text = text.rstrip()
        elif text and text[-1] in place:
            text = text[:-1]
        else:
            return False
    return True
