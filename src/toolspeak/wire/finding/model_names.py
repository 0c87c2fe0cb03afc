"""Normalizes model names from hubs and servers, and finds the dialect for a name.

The names themselves are in each dialect's file (`models=`).

`name-v3p1`, `maker.name3-1-8b-v1:0`, `Name_3.1`, `name:3.1` and `name-3-1` are the same version: a `p` or a hyphen
between digits is a point, a point before a letter is a hyphen, and a hyphen or `-v` between a letter and a digit is
left out. If nothing else matches, `name31` is read as `name3.1`. A part of a name matches only as whole words: not
inside a longer word or number, and a digit at its end is no version if a size follows (`name-4b` is no 4).

The model's own name decides before its maker's: `maker/maker-large` and `maker.maker-large` are the `maker-large`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from ...dialects import get, names
from ..dialect import Dialect

POINT = re.compile(r"(?<=\d)[p-](?=\d)").sub
WORD_POINT = re.compile(r"\.(?=[a-z])").sub
VERSION = re.compile(r"(?<=[a-z])-v?(?=\d)").sub
TWO_DIGITS = re.compile(r"(?<=[a-z]\d)(?=\d(?!\d|[bm](?![a-z0-9])))").sub
MAKERS = re.compile(r"([a-z-]+\.)+(?=[a-z])").match
SPELLING = str.maketrans("_ :", "---")
MOST = 1000
"""The most characters of a name."""


def plain(name: str) -> str:
    """A name in the spelling that is used for comparison."""
    return VERSION("", POINT(".", WORD_POINT("-", name[:MOST].lower().translate(SPELLING))))


def by_name(model: str) -> Dialect | None:
    """The dialect whose models' name occurs first in this one; None if there is none.

    Of several, the one with the longest match, and a certain one before an uncertain one. A derived model has its own
    name first, then that of the model that it is made from. `origin` says if the match is uncertain.
    """
    spellings = [plain(part) for part in _without_makers(model[-MOST:].lower())]
    tries = dict.fromkeys((*spellings, *map(_with_point, spellings)))  # most names have one spelling only
    return next(filter(None, (_by_plain(name, model) for name in tries)), None)


def _without_makers(model: str) -> tuple[str, str, str]:
    """A name in lower case without its folders and its makers, without its folders, and as it is."""
    own = model.rpartition("/")[2]
    makers = MAKERS(own)
    return own[makers.end() :] if makers else own, own, model


def _with_point(name: str) -> str:
    return TWO_DIGITS(".", name)


def _by_plain(name: str, model: str) -> Dialect | None:
    rows = [
        (sure, -i, len(part), -n)
        for n, d in enumerate(known())
        for part, sure in _parts(d.name)
        if (i := _place(part, name)) >= 0
    ]
    if not rows:
        return None
    sure, _, _, n = max(rows)
    doubt = "" if sure else ", which is uncertain: other models of that name use another dialect"
    return replace(known()[-n], origin=f"by the model's name, {model}{doubt}")


def named(d: Dialect, name: str) -> int:
    """The length of the longest of the dialect's model names in a plain name."""
    return max((len(part) for part, _ in _parts(d.name) if _place(part, name) >= 0), default=0)


@cache
def known() -> tuple[Dialect, ...]:
    """All dialects, sorted by name."""
    return tuple(get(name) for name in names())


@cache
def _parts(dialect: str) -> tuple[tuple[str, bool], ...]:
    """The plain names of the dialect's models, and whether each is certain."""
    return tuple((plain(part.rstrip("-?")), part[-1] != "?") for part in get(dialect).models)


@cache
def _pattern(part: str) -> re.Pattern[str]:
    start = r"(?<![a-z0-9])" if part[0].isalnum() else ""
    end = r"(?!\d|[bm](?![a-z0-9]))" if part[-1].isdigit() else r"(?![a-z])" if part[-1].isalpha() else ""
    return re.compile(start + re.escape(part) + end)


def _place(part: str, name: str) -> int:
    """The position of the part in the name, -1 if it does not occur."""
    match = _pattern(part).search(name) if part in name else None
    return match.start() if match else -1
