"""Finds JSON values in a text: alone, in code fences, or in sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

FENCE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
OPENER = re.compile(r"[{\[]")
MOST = 32
"""The most places in a sentence that are tried; each may take time proportional to the text."""


class Passage(NamedTuple):
    """A value, and its JSON text as it was written."""

    value: object
    text: str


def unfenced(text: str) -> str:
    """The text without a code fence around all of it."""
    text = text.strip()
    fenced = FENCE.fullmatch(text)
    return fenced[1] if fenced else text


def whole_values(text: str) -> Iterator[Passage]:
    """The value that is the whole text, or the content of the one code fence around it."""
    try:
        yield Passage(json.loads(unfenced(text)), unfenced(text))
    except (ValueError, RecursionError):
        return


def json_values(text: str) -> Iterator[Passage]:
    """The values in a text: the whole text, or the contents of code fences, or else objects and lists in sentences."""
    values = list(whole_values(text))
    if not values:
        values = [value for fence in FENCE.finditer(text) for value in whole_values(fence[1])]
    yield from values or _among_words(text)


def _among_words(text: str) -> Iterator[Passage]:
    decoder, place = json.JSONDecoder(), 0
    for _ in range(MOST):
        if (opener := OPENER.search(text, place)) is None:
            return
        try:
            value, place = decoder.raw_decode(text, opener.start())
        except (ValueError, RecursionError):
            place = opener.end()
        else:
            yield Passage(value, text[opener.start() : place])
