"""The dates and times of a text in the form that an argument asks for.

Only what the text tells whole: a day without its year is no date, and none is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
_TIME = re.compile(r",?\s+(?:at\s+)?(?P<h>\d{1,2})(?::(?P<min>\d{2}))?\s*(?P<half>[ap])?\.?m?\b", re.IGNORECASE)
"""How descriptions tell the form of a date: YYYY-MM-DD, MM/DD/YYYY."""


def pattern(description: str, form: object = None) -> str:
    """How a description (or JSON Schema's `format`) wants a date written, "" where it wants none: YYYY-MM-DD."""
    told = _PATTERN.search(description)
    if told:
        timed = re.match(r"[T ]'?hh", description[told.end() :], re.IGNORECASE)
        return told[0].upper() + ("Thh:mm:ss" if timed else "")
    if form == "date":
        return "YYYY-MM-DD"
    return "YYYY-MM-DD" if _EXAMPLE.search(description) else ""


def written(date: Date, layout: str) -> str:
    """A date in a layout such as YYYY-MM-DD."""
    day = layout.replace("YYYY", f"{date.year:04d}").replace("MM", f"{date.month:02d}").replace("DD", f"{date.day:02d}")
    return day.replace("hh:mm:ss", f"{date.hour:02d}:{date.minute:02d}:00")


@dataclass(frozen=True, slots=True)
class Date:
    """A day of a text, with the time where one follows, and where it stands."""

    span: tuple[int, int]
    year: int
    month: int
    day: int
    hour: int = 0
    minute: int = 0


def dates(text: str) -> list[Date]:
    """The dates of a text in its order. A day without a year has the year of the text's other dates."""
    found: dict[int, tuple[int, int | None, int, int]] = {}
    for form in _FORMS:
        for match in form.finditer(text):
            named = match.groupdict()
            month = int(named["m"]) if named.get("m") else _month(named["n"])
            year = int(named["y"]) if named.get("y") else None
            inside = any(start <= match.start() < end for start, (end, *_) in found.items())
            if not inside and 1 <= month <= 12 and 1 <= int(named["d"]) <= 31:
                found[match.start()] = (match.end(), year, month, int(named["d"]))
    years = {year for _, year, _, _ in found.values() if year is not None}
    only = next(iter(years)) if len(years) == 1 else None
    return [
        Date((start, end), year or only or 0, month, day, *_time(text, end))
        for start, (end, year, month, day) in sorted(found.items())
        if year or only
    ]


def _time(text: str, end: int) -> tuple[int, int]:
    """The hour and minute right after a date, (0, 0) where none follow."""
    found = _TIME.match(text, end)
    if not found:
        return 0, 0
    hour = int(found["h"]) % 24
    half = (found["half"] or "").casefold()
    hour = hour % 12 + (12 if half == "p" else 0) if half else hour
    return hour, int(found["min"] or 0) % 60


def _month(name: str) -> int:
    return next(i for i, month in enumerate(MONTHS, 1) if month.startswith(name.casefold()[:3]))
