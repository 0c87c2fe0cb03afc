"""Finds code fences in a text: the one around all of it, or the content of each."""

from __future__ import annotations

import re
from collections.abc import Iterator

_WHOLE = re.compile(r"```[^\n`]*\n(.*)```", re.DOTALL)
_OPENER = re.compile(r"```[^\n`]*\n")
_CLOSER = re.compile(r"^[^\S\n]*```|```[^\S\n]*$", re.MULTILINE)
"""A fence begins its line or ends it; elsewhere it is in a string of the content."""


def unfenced(text: str) -> str:
    """The text without the code fence around all of it."""
    text = text.strip()
    fence = _WHOLE.fullmatch(text)
    return fence[1] if fence else text


def fenced(text: str) -> Iterator[str]:
    """The content of each closed code fence. The time is linear, also if fences are not closed."""
    place = 0
    while opener := _OPENER.search(text, place):
        closer = _CLOSER.search(text, opener.end())
        if closer is None:
            return
        yield text[opener.end() : closer.start()]
        place = closer.end()
