"""One argument that is all the text there is, such as code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...events import ArgumentsDelta
from ..jsonscan import escaped, quoted
from ..scan import Scan, marks, until
from ..state import State
from ..syntax import Raw

SPECIAL = r'"\\\x00-\x1f'
"""What JSON must escape in a string, as a character class."""


def read(s: State, hole: Raw, schema: Mapping[str, Any], follow: tuple[str, ...]) -> Scan[None]:
    """Pass the text up to one of `follow`, or the end, on as `{key: text}`, as it comes."""
    s.args(f'{{{quoted(hole.key)}: "')
    yield from rest(s, follow)
    s.args('"}')


def rest(s: State, follow: tuple[str, ...]) -> Scan[None]:
    """Pass the text up to one of `follow`, or the end, on as the content of a JSON string. Eats nothing of what ends it."""
    if not follow:
        yield from _all(s)
    elif hit := (yield from until(s, marks(follow, SPECIAL), lambda piece: s.args(escaped(piece)), ArgumentsDelta)):
        s.pos -= len(hit)


def _all(s: State) -> Scan[None]:
    while True:
        s.args(escaped(s.text[s.pos :]))
        s.pos = len(s.text)
        if s.closed:
            return
        yield


def write(hole: Raw, arguments: Mapping[str, Any]) -> str:
    """The text of the one argument."""
    text: object = arguments.get(hole.key, "")
    return text if isinstance(text, str) else str(text)
