"""Assigns a number to an argument by the unit next to it, if none of the argument's own words is near.

Kilometers are a distance even if no word says so, "the top 3" is a limit, "a table for 6" a number of people.
"""

from __future__ import annotations

import re
from collections.abc import Container

from ... import stems
from ...stems import WORD
from .numbers import Number

WORTH = 0.6
"""The score of a matching unit; a word of the argument right beside a number scores 1."""
PRICES = "price cost amount money budget rent salary income fee total balance investment principal payment"
MEASURES = (
    (
        "distance length height width depth radius diameter altitude elevation mileage thickness side",
        "m meter metre km kilometer kilometre mile mi foot feet ft inch inches cm centimeter mm millimeter yard",
    ),
    ("weight mass load", "kg kilo kilogram g gram lb pound ton tonne ounce oz"),
    ("temperature temp", "degree celsius fahrenheit kelvin"),
    ("time duration timeout interval", "s sec second min minute h hr hour"),
    ("days nights duration period stay years months term time age", "day night week month year"),
    (PRICES, "dollar euro usd eur pound gbp cent buck yen"),
    ("speed velocity", "mph kmh kph"),
    ("volume capacity", "l liter litre ml milliliter gallon"),
    ("area", "square sqm acre hectare"),
    ("power", "watt w kw"),
    ("voltage", "volt v"),
    ("current", "ampere amp"),
    ("energy", "joule kwh"),
    ("frequency", "hz hertz"),
    ("force", "newton"),
    ("pressure", "pascal pa bar psi"),
)
"""Words in the names of arguments, and the units that these are measured in."""
COUNTS = (
    (
        "people guests passengers persons party adults travelers travellers attendees participants diners seats",
        "people person guest adult passenger traveler traveller friend",
    ),
    ("percent percentage rate tip discount tax", "percent"),
)
"""The same for counted things, and for shares."""
MONEY = f"{PRICES} value"
PEOPLE = "people guests passengers persons party diners seats attendees participants size"
COUNTED = "limit count top n number num max quantity results result size page"
LEADS = "top first last best next latest recent list show find get give recommend suggest which only most me"
FULL = {
    "min": "minute", "mins": "minute", "sec": "second", "secs": "second", "hr": "hour", "hrs": "hour", "h": "hour",
    "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter", "ft": "feet", "kg": "kilogram",
    "g": "gram", "lb": "pound", "lbs": "pound", "ml": "milliliter", "l": "liter", "mi": "mile", "hz": "hertz",
}  # fmt: skip
"""The names of abbreviated units."""
OF_US = re.compile(r"\s+of (?:us|them)\b", re.IGNORECASE)
FOR = re.compile(r"\b(?:for|of|we['’]re|we are|us)\s+$", re.IGNORECASE)
BEFORE = 24
"""Characters before a number in which its introducing word is looked for."""

_QUANTITIES = tuple((stems.stems_of(names), stems.each(units)) for names, units in (*MEASURES, *COUNTS))
_SHARES = _QUANTITIES[-1][0]
_MEASURED = frozenset(unit for _, units in MEASURES for unit in stems.each(units))
_MONEY, _PEOPLE, _COUNTED, _LEADS = *map(stems.stems_of, (MONEY, PEOPLE, COUNTED)), stems.each(LEADS)


def unit_support(text: str, one: Number, name: str, words: Container[str]) -> float:
    """How strongly a number's unit, or the word that introduces it, supports the argument `name`, whose description
    has the stems `words`."""
    named = {stems.stem(part) for part in stems.parts(name)}
    unit = _unit(text, one)
    if one.percent and named & _SHARES:
        return WORTH
    if named & _MONEY and text[max(0, one.span[0] - 1) : one.span[0]] in tuple("$€£¥"):
        return WORTH
    full = stems.stem(FULL.get(unit, ""))
    if full and (full in named or full in words):
        return WORTH
    if any(named & names and unit in units for names, units in _QUANTITIES):
        return WORTH
    lead = text[max(0, one.span[0] - BEFORE) : one.span[0]]
    if named & _PEOPLE and (OF_US.match(text, one.span[1]) or (FOR.search(lead) and unit not in _MEASURED)):
        return WORTH
    if named & _COUNTED and unit not in _MEASURED:
        last = WORD.findall(lead)
        return WORTH if last and last[-1].casefold() in _LEADS else 0.0
    return 0.0


def _unit(text: str, one: Number) -> str:
    """The word after a number, without a plural s."""
    match = WORD.match(text, one.span[1] + (text[one.span[1] : one.span[1] + 1] in tuple(" -")))
    unit = match[0].casefold() if match else ""
    return unit[:-1] if len(unit) > 3 and unit.endswith("s") else unit
