"""Other spellings of a parameter's tags that models use: `<param=k>`, `<parameter name="k">`, `<k>`.

Such a tag counts only where a parameter may come, and only if the tool's schema has the key and it was not given yet:
then there is exactly one interpretation. A closer in such a spelling counts only if the call continues after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from typing import Any, cast

from ...schema.nonblocking_json import unique_names
from ..reading.lookahead import ahead, token_ahead
from ..reading.source import Scan, Source

CLOSERS = ("</parameter>", "</param>")
"""The most common closers of a parameter."""
SPELLED = re.compile(
    r"""(?P<mark>(?:｜\w+｜[ ]?|[\w-]+[:|])?)
    (?:(?P<word>parameter|param|argument|arg)(?:=|\s+(?:name|key)\s*=\s*)
        (?P<quote>["']?)(?P<key>[^<>"'=]+?)(?P=quote)(?:\s+(?:string="(?P<text>true)"|\w+="(?P<type>\w*)"))?\s*
    |(?P<tag>[^\s<>/="']+))""",
    re.VERBOSE,
).fullmatch
QUOTES = ('"', "'")


@dataclass(frozen=True, slots=True)
class SpelledOpener:
    """An opener ahead: its end, its key, the type in it, and its possible closers."""

    tag: str
    end: int
    key: str
    type: str
    closers: tuple[str, ...]

    def ends(self, close: str, space: str) -> tuple[str, ...]:
        """What closes the parameter: its closers, and `close`, that of the dialect; each also after `space`."""
        words = tuple(dict.fromkeys((*self.closers, close)))
        return (*words, *(space + word for word in words if space))


def opener(s: Source, offset: int, fits: Callable[[str], bool]) -> Scan[SpelledOpener | None]:
    """The opener `offset` characters ahead after whitespace, if there is one and its key `fits`. Consumes nothing."""
    start = yield from ahead(s, offset, ("<",))
    token = (yield from token_ahead(s, start, (">",))) if start > 0 else None
    m = SPELLED(token[0]) if token else None
    if m is None or token is None:
        return None
    key = (m["key"] or m["tag"]).strip()
    if not fits(key):
        return None
    name = m["word"] or key
    closers = tuple(dict.fromkeys((f"</{m['mark']}{name}>", f"</{name}>")))
    return SpelledOpener(
        f"<{token[0]}>", start + len(token[0]) + 1, key, "string" if m["text"] else m["type"] or "", closers
    )


def unquoted(key: str) -> str:
    """A key without the quotes around all of it, and with entities replaced."""
    return unescape(key[1:-1] if len(key) > 2 and key[0] == key[-1] and key[0] in QUOTES else key)


def object_members(text: str, fits: Callable[[str], bool]) -> str | None:
    """The text between the braces of a JSON object whose keys all fit; None for any other text, and if a key comes twice
    in any object."""
    try:
        members: object = json.loads(text, object_pairs_hook=unique_names)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict) or not all(map(fits, cast("dict[str, Any]", members))):
        return None
    return text.strip()[1:-1]
