"""Finds out what a dialect writes between two calls: what a string that nothing closes has in it (`run_on_strings`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from ..dialect import (
    ARGS,
    ID,
    INDEX,
    NAME,
    SERVER,
    Dialect,
    Json,
    JsonCall,
    Keywords,
    Kind,
    Maybe,
    NumberedName,
    Part,
    Slot,
)
from .missing_quotes import TAIL
from .source import literal_words

GAP = r"\s{0,40}"
_NAME = r"""(?P<name>[^\s<>{}\[\]()"'`|,;=]{1,128})"""
_WORD = r"""[^\s<>{}\[\]()"'`,;]{0,128}"""
_CLOSERS = rf"(?<![)\]}}])(?P<closers>(?:[)\]}}]{GAP}+){{1,40}})"
SHORT = 128
"""More characters than the closers before a further key of a call's object have."""
Look = Callable[..., "re.Match[str] | None"]


class Seam(NamedTuple):
    """What is between the last argument of a call and the first quote of the next one; or of the next key of its object,
    if it begins no `call`.

    `before` matches it at the end of a string's content, in the last characters, of which `reach` is the number. `begin`
    matches only what directly precedes the quote, whose last visible character is `last`, and `after` what follows the quote.
    Its brackets close those that are open, and `outer`. `marked`: it has a mark that is no bracket.
    """

    last: str
    reach: int
    before: Look
    begin: Look
    after: Look
    outer: str = ""
    call: bool = False
    marked: bool = False


@lru_cache(512)
def seams_of(d: Dialect) -> tuple[Seam, ...]:
    """The seams of the dialect; none if its calls have no strings."""
    place = _place(d)
    if place < 0:
        return ()
    hole, head, marks = d.call[place], d.call[:place], _marks(d, place)
    tail, begin, (after, outer) = "".join(map(_pattern, d.call[place + 1 :])), _begin(hole), _after(hole)
    before = rf"{_CLOSERS}{tail}{_between(d)}{_head(d, head)}{begin}\Z"
    marked = bool(d.header) | any(len(word) > 2 for word in marks)
    last = hole.assign if isinstance(hole, Keywords) else "{"
    next_call = Seam(last, TAIL, _search(before), _search(rf"{begin}\Z"), re.compile(after).match, outer, True, marked)
    words = "|".join(map(re.escape, _late_keys(hole)))
    late = re.compile(rf"(?:{words})[\"']{GAP}:").match
    key = Seam(",", SHORT, _search(rf"{_CLOSERS},{GAP}\Z"), _search(rf",{GAP}\Z"), late)
    return (next_call, key) if words else (next_call,)


@lru_cache(512)
def value_ends(d: Dialect) -> re.Pattern[str]:
    """Finds in a text behind calls, one of which a string ran into, what would end a value: then they were inside it."""
    words = (*literal_words(d.close), *_marks(d, _place(d))[-1:])
    closers = "|".join((r"[\"']\s{0,64}[,)\]}]", r"\}", *(re.escape(word) for word in words if len(word) > 2)))
    return re.compile(rf"(?P<closers>{closers})(?P<closer>(?!))?")


def _search(pattern: str) -> Look:
    return re.compile(pattern).search


def _place(d: Dialect) -> int:
    """The place of the arguments with strings in a call, or of the call's object; -1 if there are none. Strings without
    escapes may contain calls."""
    quotes = (isinstance(part, Json | JsonCall) or (isinstance(part, Keywords) and part.escapes) for part in d.call)
    return next((i for i, quoted in enumerate(quotes) if quoted), -1)


def _marks(d: Dialect, place: int) -> tuple[str, ...]:
    """The words around the arguments of a call."""
    parts = (*d.call[:place], *d.call[place + 1 :])
    return tuple(word for part in parts if isinstance(part, str) for word in literal_words(part))


def _pattern(part: Part | Maybe) -> str:
    """A pattern for a part that has no arguments."""
    match part:
        case str():
            return "".join(map(_word, literal_words(part)))
        case Maybe():
            return f"(?:{''.join(map(_pattern, part.parts))})?"
        case Slot() if part is NAME:
            return _NAME + GAP
        case _:
            return _WORD + GAP if isinstance(part, NumberedName) or part in (ID, INDEX, SERVER) else ""


def _word(word: str) -> str:
    return re.escape(word) + GAP


def _maybe(literal: str) -> str:
    return f"(?:{_pattern(literal)})?" if literal.strip() else ""


def _head(d: Dialect, head: tuple[Part, ...]) -> str:
    """What comes before the arguments of a call."""
    words = "".join(map(_pattern, head))
    if not (h := d.header):
        return words
    start = "|".join(map(_pattern, (h.start, *h.also)))
    return f"(?:{start}){''.join(map(_pattern, (*h.call, h.stop)))}{words}"


def _between(d: Dialect) -> str:
    """What may come between two calls."""
    items = d.items or ("", "", "")
    ends = "|".join(map(_pattern, d.header.ends)) if d.header else ""
    # Python's calls in parentheses have commas between their values, too.
    signs = () if any(isinstance(part, Keywords) for part in d.call) else (",", ";")
    separator = "|".join(map(_pattern, filter(str.strip, (*signs, items[1], d.between)))) or "(?!)"
    return "".join(
        (
            _maybe(items[2]),
            _maybe(d.close),
            f"(?:{separator}|{ends})?" if ends else f"(?:{separator})?",
            _maybe(d.open),
            _maybe(items[0]),
        )
    )


def _begin(hole: Part) -> str:
    """What comes from the beginning of the arguments, or of the object, up to the first quote."""
    if isinstance(hole, Keywords):
        return rf"{re.escape(hole.open)}{GAP}[^\W\d]\w{{0,127}}{GAP}{re.escape(hole.assign)}{GAP}"
    return rf"\{{{GAP}"


def _after(hole: Part) -> tuple[str, str]:
    """What follows the first quote of a call; and the bracket of the call around its arguments."""
    colon = rf"[\"']{GAP}:{GAP}"
    match hole:
        case JsonCall():
            return _first_keys(hole, colon), "}"
        case Json():
            return rf"[^\"'\\\x00-\x1f]{{1,128}}{colon}", ""
        case _:
            return "", ""


def _late_keys(hole: Part) -> Iterator[str]:
    """The keys behind the arguments in the object of a call."""
    keys = hole.keys if isinstance(hole, JsonCall) else ()
    slots = [slot for _, slot in keys]
    return (key for key, _ in keys[slots.index(ARGS) + 1 if slots else 0 :] if isinstance(key, str))


def _first_keys(hole: JsonCall, colon: str) -> str:
    """The keys of a call up to its name; only what is no part of the call may come before it."""
    keys = [(key, slot) for key, slot in (*hole.keys, *hole.also) if isinstance(key, str)]
    if len(keys) < len((*hole.keys, *hole.also)):
        return rf"{_NAME}{colon}\{{"
    names = "|".join(re.escape(key) for key, slot in keys if slot is NAME)
    others = "|".join(re.escape(key) for key, slot in keys if isinstance(slot, Kind) | (slot in (ID, INDEX)))
    before = rf"(?:(?:{others}){colon}[\"']?{_WORD}[\"']?{GAP},{GAP}[\"'])?" if others else ""
    return rf"{before}(?:{names}){colon}[\"']{_NAME}[\"']"
