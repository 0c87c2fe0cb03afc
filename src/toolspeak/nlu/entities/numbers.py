"""Finds the numbers in a text, in digits or in English words, and the lists that it writes out.

Each number has its place, so that the words around it can show which argument it belongs to.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, cast

from ...schema.nonblocking_json import Digits, exact_number
from .spans import Span

DIGITS = re.compile(r"(?<![A-Za-z0-9_.^])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", re.ASCII)
UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
SPELLED = {word: value for value, word in enumerate(UNITS.split())} | {
    word: 10 * value for value, word in enumerate(TENS.split(), 2)
}
OFTEN = {"once": 1, "twice": 2, "thrice": 3, "dozen": 12}
IN_WORDS = re.compile(
    rf"\b(?:({'|'.join(TENS.split())})[- ](?=(?:{'|'.join(UNITS.split()[1:10])})\b))?({'|'.join([*SPELLED, *OFTEN])})\b",
    re.IGNORECASE,
)
SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12, "k": 1000}
SCALE = re.compile(rf"[ -]?((?i:{'|'.join(list(SCALES)[:-1])}))\b|(k)\b")
POWER = re.compile(r"(?:\s?[x×*]\s?10\s?(?:\^|\*\*)\s?|[eE])([-+]?\d{1,3})(?![\w.])", re.ASCII)
"""The part of a number after its digits if it has a power of ten: 6.4e23, 6.4 x 10^23."""
PERCENT = re.compile(r"\s?(?:%|percent\b|per cent\b)", re.IGNORECASE)
HALF = re.compile(r" and a half\b", re.IGNORECASE)
SECONDS = {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "hr": 3600, "day": 86400, "week": 604800}
TIMED = re.compile(rf"[ -]?({'|'.join(SECONDS)})s?\b", re.IGNORECASE)
GLUED = re.compile(r"[xX×]\d|\.\d|-?[A-Za-z]*\d|[A-Za-z]{4,}")
"""What follows digits that are part of something else: 2x2, 4b7, 3rdparty."""
MOST_WHOLE = 10**15
"""A whole number with an exponent becomes an integer below this; above it stays a float."""
LONGEST_NUMBER = 40
"""The most characters of a number."""
MOST_SCALES = 2
"""The most scale words (thousand, million) in a row."""
LONGEST_LIST = 2000
"""The most characters of a list."""
EXACT = Context(prec=100)
"""Arithmetic with all digits of a number and its scale."""
LONGEST_JOINT = 12
"""The most characters between two numbers of a run."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text: its place with sign and scale, its value, and whether a percent sign follows."""

    span: Span
    value: int | float
    percent: bool = False
    seconds: int = 0
    """The seconds of the unit of time after it; 0 if there is none."""
    digits: str = ""
    """All digits of its value, if a float cannot hold them."""

    @property
    def exact(self) -> int | float | Digits:
        """Its value, or its Digits if a float cannot hold them."""
        return Digits(self.digits) if self.digits else self.value


def numbers(text: str) -> list[Number]:
    """The numbers in a text, in order."""
    results: list[Number] = []
    for match in DIGITS.finditer(text):
        if results and match.start() < results[-1].span[1]:
            continue  # the exponent of the number before
        power = POWER.match(text, match.end())
        if len(match[0]) > LONGEST_NUMBER:
            continue
        if power:
            value = float(f"{_value(match[0])}e{power[1]}")
            if math.isfinite(value):  # JSON has no infinity
                whole = value.is_integer() and abs(value) < MOST_WHOLE
                results.append(Number((match.start(), power.end()), int(value) if whole else value))
        elif not GLUED.match(text, match.end()):
            results.append(_whole(text, match.start(), match.end(), _value(match[0])))
    for match in IN_WORDS.finditer(text):
        tens = SPELLED[match[1].lower()] if match[1] else 0
        last = match[2].lower()
        results.append(_whole(text, match.start(), match.end(), Decimal(tens + (SPELLED | OFTEN)[last])))
    return sorted(results, key=lambda one: one.span)


def _whole(text: str, start: int, end: int, exact: Decimal) -> Number:
    """The number with the scale and the percent sign after it."""
    bare = end
    for _ in range(MOST_SCALES):
        if not (scale := SCALE.match(text, end)):
            break
        exact = EXACT.multiply(exact, Decimal(SCALES[(scale[1] or scale[2]).lower()]))
        end = scale.end()
    whole = exact == exact.to_integral_value() if end > bare else exact.as_tuple().exponent == 0
    if half := HALF.match(text, end):
        exact, end, whole = EXACT.add(exact, Decimal("0.5")), half.end(), False
    value = int(exact) if whole else float(exact)
    percent = PERCENT.match(text, end)
    timed = TIMED.match(text, end)
    end = percent.end() if percent else end
    seconds = SECONDS[timed[1].lower()] if timed else 0
    lost = not whole and Decimal(repr(value)) != exact
    return Number((start, end), value, bool(percent), seconds, f"{exact:f}" if lost else "")


def _value(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))


def written_lists(text: str) -> list[tuple[Span, list[Any]]]:
    """The lists that a text writes in brackets, `[1, 2]` or `['a', 'b']`, with their places. They may have Digits."""
    lists: list[tuple[Span, list[Any]]] = []
    opened: list[int] = []
    for bracket in re.finditer(r"[\[\]]", text):
        if bracket[0] == "[":
            opened.append(bracket.start())
        elif opened:
            start, end = opened.pop(), bracket.end()
            value = _read(text[start:end]) if end - start <= LONGEST_LIST else None
            if value is not None:
                while lists and lists[-1][0][0] > start:  # inner lists are part of this one
                    lists.pop()
                lists.append(((start, end), value))
    return lists


def _read(text: str) -> list[Any] | None:
    for written in (text, text.replace("'", '"')):
        try:
            return cast("list[Any]", json.loads(written, parse_float=exact_number))
        except (ValueError, RecursionError):
            continue
    return None


def runs(text: str, numbers: list[Number]) -> list[list[Number]]:
    """Runs of two or more numbers with only commas, spaces and "and" between them."""
    together: list[list[Number]] = []
    for number in numbers:
        before = together[-1][-1] if together else None
        between = text[before.span[1] : number.span[0]][:LONGEST_JOINT] if before else ""
        if before and re.fullmatch(r"\s*(?:,\s*(?:and\s)?|\band\b|&|\s)\s*", between):
            together[-1].append(number)
        else:
            together.append([number])
    return [run for run in together if len(run) > 1]
