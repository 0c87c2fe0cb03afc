"""Model names as hubs and servers spell them, and the dialect that models so named speak.

The names themselves stand in each dialect's own file (`models=`).

`name-v3p1`, `maker.name3-1-8b-v1:0`, `Name_3.1` and `name-3-1` tell one version: a `p` or a dash between digits is a
point, and a point before a letter a dash. A part of a name counts where it begins and ends as a word: not within a
longer word or number, and a digit at its end is no version where a size follows it (`name-4b` is no 4).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from ...dialects import get, names
from ..dialect import Dialect

POINT = re.compile(r"(?<=\d)[p-](?=\d)").sub
WORD_POINT = re.compile(r"\.(?=[a-z])").sub
SPELLING = str.maketrans("_ ", "--")
MOST = 1000
"""No name is longer than this, in characters."""


def plain(name: str) -> str:
    """A name in the spelling in which names are compared."""
    return POINT(".", WORD_POINT("-", name[:MOST].lower().translate(SPELLING)))


def by_name(model: str) -> Dialect | None:
    """The dialect whose models' name comes first in this one; None where none comes.

    Of several, the longest, and a sure one before others. A model made from another is called after itself first, then
    after that one. `origin` tells where it is not sure.
    """
    name = plain(model)
    rows = [
        (sure, -i, len(part), -n)
        for n, d in enumerate(known())
        for part, sure in _parts(d.name)
        if (i := _place(part, name)) >= 0
    ]
    if not rows:
        return None
    sure, _, _, n = max(rows)
    doubt = "" if sure else ", which is not sure: other models of the name speak otherwise"
    return replace(known()[-n], origin=f"by the model's name, {model}{doubt}")


def named(d: Dialect, name: str) -> int:
    """How much of a plain name the names of the dialect's models are."""
    return max((len(part) for part, _ in _parts(d.name) if _place(part, name) >= 0), default=0)


@cache
def known() -> tuple[Dialect, ...]:
    """All dialects, by their names."""
    return tuple(get(name) for name in names())


@cache
def _parts(dialect: str) -> tuple[tuple[str, bool], ...]:
    """The plain names of the dialect's models, and whether each is sure."""
    return tuple((plain(part.removesuffix("?")), part[-1] != "?") for part in get(dialect).models)


@cache
def _pattern(part: str) -> re.Pattern[str]:
    start = r"(?<![a-z0-9])" if part[0].isalnum() else ""
    end = r"(?!\d|[bm](?![a-z0-9]))" if part[-1].isdigit() else r"(?![a-z])" if part[-1].isalpha() else ""
    return re.compile(start + re.escape(part) + end)


def _place(part: str, name: str) -> int:
    """Where the part stands in the name, -1 where it does not."""
    found = _pattern(part).search(name) if part in name else None
    return found.start() if found else -1
