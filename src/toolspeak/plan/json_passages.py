"""JSON values in a text: alone, in code fences, or among words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

FENCE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
OPENER = re.compile(r"[{\[]")
MOST = 32
"""Places at which a value is looked for among words; each may take as long as the text."""


def unfenced(text: str) -> str:
    """The text without the one code fence around it."""
    text = text.strip()
    fenced = FENCE.fullmatch(text)
    return fenced[1] if fenced else text


def whole_values(text: str) -> Iterator[object]:
    """The value that a text is, or that the one code fence around it holds."""
    try:
        yield json.loads(unfenced(text))
    except (ValueError, RecursionError):
        return


def json_values(text: str) -> Iterator[object]:
    """The values in a text: the text itself, what code fences hold, else objects and lists among words."""
    found = list(whole_values(text))
    if not found:
        found = [value for fence in FENCE.finditer(text) for value in whole_values(fence[1])]
    yield from found or _among_words(text)


def _among_words(text: str) -> Iterator[object]:
    decoder, place = json.JSONDecoder(), 0
    for _ in range(MOST):
        if (opener := OPENER.search(text, place)) is None:
            return
        try:
            value, place = decoder.raw_decode(text, opener.start())
        except (ValueError, RecursionError):
            place = opener.end()
        else:
            yield value
