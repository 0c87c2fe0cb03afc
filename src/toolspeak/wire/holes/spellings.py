"""Other spellings of a parameter's tags that models use: `<param=k>`, `<parameter name="k">`, `<k>`.

Such a tag counts only where a parameter may stand, and only if the tool's schema names the key and it was not given
yet: then exactly one reading fits. A closer in such a spelling counts likewise only where the call goes on behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape

from ..reading.source import Scan, Source
from .typed import ahead, token_ahead

CLOSERS = ("</parameter>", "</param>")
"""The commonest words that close a parameter."""
SPELLED = re.compile(
    r"""(?P<mark>(?:｜\w+｜[ ]?|[\w-]+[:|])?)
    (?:(?P<word>parameter|param|argument|arg)(?:=|\s+(?:name|key)\s*=\s*)
        (?P<quote>["']?)(?P<key>[^<>"'=]+?)(?P=quote)(?:\s+\w+="(?P<type>\w*)")?\s*
    |(?P<tag>[^\s<>/="']+))""",
    re.VERBOSE,
).fullmatch
QUOTES = ('"', "'")


@dataclass(frozen=True, slots=True)
class SpelledOpener:
    """An opener that stands ahead: where it ends, its key, the type written in it, and what closes it."""

    tag: str
    end: int
    key: str
    type: str
    closers: tuple[str, ...]


def opener(s: Source, offset: int, fits: Callable[[str], bool]) -> Scan[SpelledOpener | None]:
    """The opener `offset` from here after white space, if it is one and its key `fits`. Eats nothing."""
    start = yield from ahead(s, offset, ("<",))
    found = (yield from token_ahead(s, start, (">",))) if start > 0 else None
    m = SPELLED(found[0]) if found else None
    if m is None or found is None:
        return None
    key = (m["key"] or m["tag"]).strip()
    if not fits(key):
        return None
    name = m["word"] or key
    closers = tuple(dict.fromkeys((f"</{m['mark']}{name}>", f"</{name}>")))
    return SpelledOpener(f"<{found[0]}>", start + len(found[0]) + 1, key, m["type"] or "", closers)


def unquoted(key: str) -> str:
    """A key without the quotes that stand around all of it, and without entities."""
    return unescape(key[1:-1] if len(key) > 2 and key[0] == key[-1] and key[0] in QUOTES else key)
