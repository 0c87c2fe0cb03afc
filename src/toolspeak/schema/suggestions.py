"""Finds the known names that are most similar to an unknown one, for error messages."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Container, Iterable
from functools import lru_cache
from itertools import islice
from os.path import commonprefix

from .phrases import clipped

MOST = 200
"""Of more names than this, only those that begin most alike are compared letter by letter."""

LONGEST = 200
"""Of a name only so many letters are compared. A model, or a server, may write one of megabytes."""

DID_YOU_MEAN = " Did you mean "


def near(name: str, names: Iterable[str], *, at_most: int = 3) -> tuple[str, ...]:
    """Up to `at_most` of `names` that `name` was probably meant to be, the most likely first.

    Case, `_`, `-` and `.` are ignored, so that `getWeather` matches `get_weather`.
    """
    plain: dict[str, list[str]] = {}
    for known in names:
        plain.setdefault(_plain(known), []).append(known)
    wanted = _plain(name)
    matches = _close(wanted, plain, at_most, 0.6)
    if len(wanted) >= 3:
        inside = (key for key in plain if any((wanted in key, key in wanted and len(key) >= 3)))
        matches += [key for key in inside if key not in matches]
    return tuple(known for key in matches for known in plain[key])[:at_most]


@lru_cache(4096)
def misspelled(name: str, names: tuple[str, ...]) -> str:
    """The one of `names` that `name` misspells, "" if there is none: a stricter test than that of `near`, for names
    that need not be mistakes."""
    plain = {_plain(known): known for known in names if name not in names}
    return next((plain[key] for key in _close(_plain(name), plain, 1, 0.8)), "")


def did_you_mean(names: tuple[str, ...]) -> str:
    """` Did you mean 'a' or 'b'?`, or "" if there are no similar names."""
    return f"{DID_YOU_MEAN}{' or '.join(repr(clipped(name, 200)) for name in names)}?" if names else ""


def listed(names: Collection[str], at_most: int = 40) -> str:
    """The names, separated by commas; if there are many, the first ones and the number of the others."""
    text = ", ".join(clipped(name, 200) for name in islice(names, at_most))
    return text if len(names) <= at_most else f"{text} and {len(names) - at_most:,} more"


def free_name(name: str, used: Container[str]) -> str:
    """The name, with a number at its end if it is taken."""
    return name if name not in used else numbered(name, used, {})


def numbered(name: str, used: Container[str], last: dict[str, int]) -> str:
    """The name with the first number behind it that is not taken. `last` keeps the last number of each name, so that the
    cost of many equal names does not grow with their square."""
    count = last.get(name, 1) + 1
    while f"{name}_{count}" in used:
        count += 1
    last[name] = count
    return f"{name}_{count}"


def _close(wanted: str, names: Collection[str], at_most: int, cutoff: float) -> list[str]:
    """The names that have most letters in common with `wanted`, in its order. Of many, the first letters decide first."""
    if len(names) > MOST:
        names = sorted(names, key=lambda name: -len(commonprefix((name, wanted))))[:MOST]  # noqa: RUF071 - of letters
    return difflib.get_close_matches(wanted, names, n=at_most, cutoff=cutoff)


def _plain(name: str) -> str:
    return "".join(c for c in name[:LONGEST].casefold() if c not in "_-. ")
