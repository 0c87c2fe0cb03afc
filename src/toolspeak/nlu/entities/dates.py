"""Finds the dates and times in a text, in the format that an argument wants.

Only complete ones are used: a day without its year is no date, and nothing is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH = "|".join(f"{month[:3]}(?:{month[3:]}|t)?" for month in MONTHS)
_FORMS = (
    re.compile(r"\b(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})\b"),
    re.compile(
        rf"\b(?P<n>{_MONTH})\.?\s*(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?:of\s+)?(?P<y>\d{{4}})\b", re.IGNORECASE
    ),
    re.compile(
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<n>{_MONTH})\.?,?\s+(?P<y>\d{{4}})\b", re.IGNORECASE
    ),
    re.compile(rf"\b(?P<n>{_MONTH})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b", re.IGNORECASE),
    re.compile(rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<n>{_MONTH})\b", re.IGNORECASE),
    re.compile(r"\b(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4})\b"),
)
_PATTERN = re.compile(r"(?:YYYY|MM|DD)[-/.](?:YYYY|MM|DD)[-/.](?:YYYY|MM|DD)", re.IGNORECASE)
_EXAMPLE = re.compile(r"['\"]\d{4}-\d{2}-\d{2}['\"]")
"""Formats of dates in descriptions: YYYY-MM-DD, MM/DD/YYYY."""
_ISO = re.compile(r"\bISO(?:[ -]?8601)?[ -]date\b|\bdate\b.*\bISO\b", re.IGNORECASE)
_CLOCK = re.compile(r"(?P<sep>['T ]+)?HH:MM(?P<s>:SS)?(?P<z>Z)?", re.IGNORECASE)
_CLOCK_EXAMPLE = re.compile(r"['\"](?:[01]\d|2[0-3]):[0-5]\d['\"]")
_TIME = re.compile(
    r"(?<![\d:.])(?:(?P<h>[01]?\d|2[0-3]):(?P<min>[0-5]\d)(?::[0-5]\d)?(?:\s*(?P<half>[ap])\.?m\b\.?)?|"
    r"(?P<h2>1[0-2]|0?\d)\s*(?P<half2>[ap])\.?m\b\.?|(?P<named>\bnoon|\bmidnight)\b)(?![\d:])",
    re.IGNORECASE,
)
_HOURS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_HOUR = rf"(?:(?P<digit>1[0-2]|[1-9])|(?P<word>{'|'.join(_HOURS)}))"
_SPOKEN = (
    re.compile(
        rf"\b(?P<part>half past|quarter (?:past|after|to)) {_HOUR}(?: (?:in the |at )(?P<half>morning|afternoon|evening|night))?\b",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:at|by|around|until|from) {_HOUR}(?: o['’]clock)?(?: in the | at )(?P<half>morning|afternoon|evening|night)\b",
        re.IGNORECASE,
    ),
)
"""Times of day in words: half past seven; at four in the afternoon."""


def pattern(description: str, form: object = None) -> str:
    """The date format in a description (or in JSON Schema's `format`), such as YYYY-MM-DD; "" if there is none."""
    match = _PATTERN.search(description)
    if match:
        timed = _CLOCK.match(description, match.end())
        return match[0].upper() + (
            _clock(timed, "T" if "t" in (timed["sep"] or "").casefold() else " ") if timed else ""
        )
    if form == "date":
        return "YYYY-MM-DD"
    return "YYYY-MM-DD" if _EXAMPLE.search(description) or _ISO.search(description) else ""


def clock(description: str, form: object = None) -> str:
    """The time format in a description, such as hh:mm; "" if it has none, or one together with a date."""
    if _PATTERN.search(description):
        return ""
    if match := _CLOCK.search(description):
        return _clock(match, "")
    return "hh:mm:ss" if form == "time" else "hh:mm" if _CLOCK_EXAMPLE.search(description) else ""


def _clock(match: re.Match[str], sep: str) -> str:
    return f"{sep}hh:mm{':ss' if match['s'] else ''}{'Z' if match['z'] else ''}"


def written(date: Date, layout: str) -> str:
    """A date in a layout such as YYYY-MM-DD."""
    day = layout.replace("YYYY", f"{date.year:04d}").replace("MM", f"{date.month:02d}").replace("DD", f"{date.day:02d}")
    return at(day, date.hour, date.minute)


def at(layout: str, hour: int, minute: int) -> str:
    """A time of day in a layout such as hh:mm."""
    return layout.replace("hh:mm", f"{hour:02d}:{minute:02d}").replace(":ss", ":00")


@dataclass(frozen=True, slots=True)
class Date:
    """A date in a text, with its time and its place."""

    span: tuple[int, int]
    year: int
    month: int
    day: int
    hour: int = 0
    minute: int = 0


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day in a text, with its place."""

    span: tuple[int, int]
    hour: int
    minute: int


def dates(text: str) -> list[Date]:
    """The dates in a text, in order. A day without a year gets the year of the text's other dates."""
    by_start: dict[int, tuple[int, int | None, int, int]] = {}
    for form in _FORMS:
        for match in form.finditer(text):
            named = match.groupdict()
            month = int(named["m"]) if named.get("m") else _month(named["n"])
            year = int(named["y"]) if named.get("y") else None
            inside = any(start <= match.start() < end for start, (end, *_) in by_start.items())
            if not inside and 1 <= month <= 12 and 1 <= int(named["d"]) <= 31:
                by_start[match.start()] = (match.end(), year, month, int(named["d"]))
    years = {year for _, year, _, _ in by_start.values() if year is not None}
    only = next(iter(years)) if len(years) == 1 else None
    return [
        Date((start, end), year or only or 0, month, day)
        for start, (end, year, month, day) in sorted(by_start.items())
        if year or only
    ]


def times(text: str) -> list[Time]:
    """The times of day in a text, in order."""
    written = [Time(match.span(), *_read(match)) for match in _TIME.finditer(text)]
    written += [Time(match.span(), *_in_words(match)) for form in _SPOKEN for match in form.finditer(text)]
    return sorted(written, key=lambda one: one.span)


def _in_words(match: re.Match[str]) -> tuple[int, int]:
    """(hour, minute) of a time in words: half past seven in the morning."""
    words = {name: text.casefold() for name, text in match.groupdict().items() if text}
    part, half = words.get("part", ""), words.get("half", "")
    hour = _HOURS.index(words["word"]) + 1 if "word" in words else int(words["digit"])
    minute = 30 if "half" in part else 15 if "past" in part or "after" in part else 45 if part else 0
    hour = hour % 12 + (12 if half in ("afternoon", "evening", "night") else 0) if half else hour
    return (hour - (minute == 45)) % 24, minute


def _read(match: re.Match[str]) -> tuple[int, int]:
    if match["named"]:
        return (12, 0) if match["named"].casefold() == "noon" else (0, 0)
    hour, half = int(match["h"] or match["h2"]), (match["half"] or match["half2"] or "").casefold()
    return (hour % 12 + (12 if half == "p" else 0) if half else hour), int(match["min"] or 0)


def timed(days: list[Date], hours: list[Time], wanted: int) -> list[tuple[Date, list[tuple[int, int]]]]:
    """For each of the `wanted` moments its date, combined with its time, and the places of both in the text.

    A time belongs to the date before it, or to the only date; a single date belongs to all times.
    """
    if len(days) == 1 and len(hours) >= wanted > 1:
        days = days * wanted
    moments: list[tuple[Date, list[tuple[int, int]]]] = []
    for i, day in enumerate(days[:wanted]):
        until = next((other.span[0] for other in days if other.span[0] > day.span[0]), None)
        near = [one for one in hours if one.span[0] >= day.span[1] and (until is None or one.span[0] < until)]
        own = hours[i] if len(hours) == len(days) else (near or (hours if len(days) == 1 else []) or [None])[0]
        moment = replace(day, hour=own.hour, minute=own.minute) if own else day
        moments.append((moment, [day.span, *([own.span] if own else [])]))
    return moments


def _month(name: str) -> int:
    return next(i for i, month in enumerate(MONTHS, 1) if month.startswith(name.casefold()[:3]))
