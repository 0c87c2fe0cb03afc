"""Decides all arguments of a call together: its dates, lists, numbers and verbatim texts. `number_alignment` solves it for
numbers.

Asked for one argument after another, a weak model gives the first number to the first argument. Assigned together,
numbers go first where the words around them match an argument, and likelihood decides the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from typing import Any, cast

from .. import stems
from ..plan.effects import Plan, score
from ..schema.kinds import DECIMAL
from ..schema.nonblocking_json import Digits
from ..types import Schema
from . import evidence
from .entities import dates, nearness, number_units, spans as pieces
from .entities.numbers import EXACT, SECONDS, Number, numbers, runs, written_lists
from .entities.spans import Span
from .number_alignment import MOST, assign
from .partial_call import PartialCall, described, is_number, is_text

NEAR_WORTH = 4.0
"""Nats for a word of an argument right beside a number."""
EVIDENCE = 0.45
"""How close an optional argument's words must be to a number for it to take that number."""


LONGEST_SCORED = 24
"""Characters of a quoted text that are scored: its beginning shows what it is."""
DATED = stems.stems_of("year month day date season")
"""Stems in the names of arguments that take a number from a date."""
YEARS = range(1000, 2200)
"""Integers that may be years."""
FILE = re.compile(r"[/@\\]|\w\.\w")
"""Matches in a file name, path, address or link."""
FILES = stems.stems_of("file path photo image picture url link email mail website document folder directory")


def settle(filling: PartialCall, schemas: Mapping[str, Schema], required: set[str]) -> Plan[None]:
    """Assigns dates, lists, numbers and verbatim texts to the arguments that they fit best."""
    _settle_assigned(filling, schemas)
    _settle_dates(filling, schemas)
    _settle_by_form(filling, schemas)
    _settle_lists(filling, schemas, required)
    yield from _settle_marked(filling, schemas, required)
    yield from _settle_numbers(filling, schemas, required)


def _settle_assigned(filling: PartialCall, schemas: Mapping[str, Schema]) -> None:
    """Assigns values that the request writes as an assignment: project=finance."""
    for name, schema in schemas.items():
        span = evidence.assigned(filling.text, name) if is_text(schema) else None
        if span and not dates.pattern(described(schema), schema.get("format")):
            filling.settled[name] = filling.text[slice(*span)]
            filling.use(span)


def _settle_dates(filling: PartialCall, schemas: Mapping[str, Schema]) -> None:
    """Assigns the dates of the request, in order, to the arguments that are described as dates."""
    texts = {name: schema for name, schema in schemas.items() if schema.get("type") == "string"}
    days = {name: dates.pattern(described(schema), schema.get("format")) for name, schema in texts.items()}
    clocks = {name: dates.clock(described(schema), schema.get("format")) for name, schema in texts.items()}
    wanted = [(name, layout) for name, layout in days.items() if layout]
    written, hours = dates.dates(filling.text), dates.times(filling.text)
    moments = dates.timed(written, hours if any("hh" in layout for _, layout in wanted) else [], len(wanted))
    for (name, layout), (moment, spans) in zip(wanted, moments, strict=False):
        filling.settled[name] = dates.written(moment, layout)
        for span in spans:
            filling.use(span)
    free = [one for one in hours if filling.free(one.span)]
    for (name, layout), one in zip([(name, layout) for name, layout in clocks.items() if layout], free, strict=False):
        filling.settled[name] = dates.at(layout, one.hour, one.minute)
        filling.use(one.span)


def _settle_by_form(filling: PartialCall, schemas: Mapping[str, Schema]) -> None:
    """Assigns spans with the format that an argument's description shows to that argument."""
    for name, span in evidence.by_form(filling.text, schemas).items():
        if name not in filling.settled and filling.free(span):
            filling.settled[name] = filling.text[slice(*span)]
            filling.use(span)


def _settle_marked(filling: PartialCall, schemas: Mapping[str, Schema], required: set[str]) -> Plan[None]:
    """Assigns quoted texts and words that are no plain words to the matching arguments for strings and lists of
    strings."""
    names = [name for name, schema in schemas.items() if _takes_text(schema) and name not in filling.settled]
    strings = [(span, piece) for span, piece in pieces.marked(filling.text) if filling.free(span)][:MOST]
    if not names or not strings:
        return
    quoted = {span for span, _ in pieces.quotations(filling.text)}
    beside = {name: evidence.named(filling.text, name) for name in names}
    suits = {
        (name, span): _suits(filling, name, span, piece, beside[name]) for name in names for span, piece in strings
    }
    likely = yield from _preferred(filling, [name for name in names if name in required], strings, quoted)
    rows: list[list[float | None]] = []
    for name in names:
        elsewhere = beside[name] and not any(pieces.overlap(one, span) for one in beside[name] for span, _ in strings)
        least = 9.0 if elsewhere else EVIDENCE if name in required else EVIDENCE + 0.15
        row = [
            NEAR_WORTH * suits[name, span] + likely.get((name, span), 0.0)
            if suits[name, span] >= least or likely.get((name, span), -9.0) >= 0.0
            else None
            for span, _ in strings
        ]
        rows.append(row)
    for name, place in zip(names, assign(rows, [False] * len(names)), strict=True):
        if place is not None:
            span, piece = strings[place]
            several = next(run for run in pieces.in_series(filling.text, strings) if (span, piece) in run)
            filling.settled[name] = piece if is_text(schemas[name]) else [one for _, one in several]
            for one, _ in [(span, piece)] if is_text(schemas[name]) else several:
                filling.use(one)


def _takes_text(schema: Schema) -> bool:
    """Whether the value is a string, or a list of strings, that is copied verbatim."""
    items: Any = schema.get("items")
    listed = schema.get("type") == "array" and isinstance(items, Mapping)
    return is_text(schema) or (listed and cast("Schema", items).get("type") == "string" and "enum" not in items)


def _preferred(
    filling: PartialCall, names: Sequence[str], strings: Sequence[tuple[Span, str]], quoted: Set[Span]
) -> Plan[dict[tuple[str, Span], float]]:
    """For each quoted text, by how many nats an argument is likelier to take it than the others; the likeliest gets at
    least 1, since a request quotes nothing without a purpose."""
    pairs = [(name, span, piece[:LONGEST_SCORED]) for name in names for span, piece in strings if span in quoted]
    if len(names) < 2:
        return {(name, span): 1.0 for name, span, _ in pairs}
    scores = yield from score([(f"{filling.prefix}{name}=", f'"{piece}') for name, _, piece in pairs])
    likely = {(name, span): value for (name, span, _), value in zip(pairs, scores, strict=True)}
    best = {span: max(likely[name, span] for name in names) for _, span, _ in pairs}
    return {(name, span): value - best[span] + 1.0 for (name, span), value in likely.items()}


def _suits(filling: PartialCall, name: str, span: Span, piece: str, beside: Sequence[Span]) -> float:
    """How well a verbatim text fits an argument: by the words around it, as a file if the argument wants one, or
    because it is next to the argument's name (in `beside`)."""
    cues = filling.cues[name]
    filed = FILE.search(piece) is not None and any(cues.get(word, 0.0) > 0.3 for word in FILES)
    cued = any(span[0] <= a and b <= span[1] for a, b in beside)
    return nearness.nearness(filling.text, span, cues) + (EVIDENCE + 0.2 if filed else 0.0) + cued


def _settle_numbers(filling: PartialCall, schemas: Mapping[str, Schema], required: set[str]) -> Plan[None]:
    """Assigns each number of the request to the argument that it fits best."""
    names = [name for name, schema in schemas.items() if is_number(schema)]
    whole = [] if any(DATED & stems.stems(name.replace("_", " ")) for name in names) else dates.dates(filling.text)
    inside = [date.span for date in whole]
    free = [one for one in numbers(filling.text) if filling.free(one.span)]
    free = [one for one in free if not any(a <= one.span[0] < b for a, b in inside)][:MOST]
    if not names or not free:
        return
    pairs = [
        (name, number, reading(number, schemas[name]))
        for name in names
        for number in free
        if reading(number, schemas[name]) is not None
    ]
    units_of = {one.span: _unit_support(filling, one, names) for one in free}
    near = {
        (name, one.span): _context_support(filling, name, one, names) + units_of[one.span][name]
        for name, one, _ in pairs
    }
    wanted = [pair for pair in pairs if pair[0] in required or near[pair[0], pair[1].span] >= EVIDENCE]
    worth: dict[tuple[str, Span], float] = {}
    if len(free) > 1 or len({name for name, _, _ in wanted}) > 1:
        scores = yield from score([(f"{filling.prefix}{name}=", f"{value}") for name, _, value in wanted])
        for (name, one, _), likely in zip(wanted, scores, strict=True):
            worth[name, one.span] = likely + NEAR_WORTH * near[name, one.span]
    else:
        worth = {(name, one.span): near[name, one.span] for name, one, _ in wanted}
    rows = [[worth.get((name, one.span)) for one in free] for name in names]
    # An optional argument needs a positive score, so its likelihood is relative to the best one of the row.
    for name, row in zip(names, rows, strict=True):
        if name not in required:
            row[:] = [None if w is None else 5.0 + near[name, one.span] for w, one in zip(row, free, strict=True)]
    assigned = assign(rows, [name in required for name in names])
    for name, place in zip(names, assigned, strict=True):
        if place is not None:
            filling.settled[name] = reading(free[place], schemas[name])
            filling.use(free[place].span)
        elif name in required:
            yield from _shared(filling, name, schemas[name])


def _context_support(filling: PartialCall, name: str, one: Number, names: Sequence[str]) -> float:
    """How strongly the words around a number support an argument; a number that looks like a year counts as well."""
    near = nearness.nearness(filling.text, one.span, filling.cues[name])
    yearly = [other for other in names if "year" in stems.stems(other.replace("_", " ")) and "years" not in other]
    bare = isinstance(one.value, int) and one.value in YEARS and one.span[1] - one.span[0] == 4
    return near + (0.7 if bare and name in yearly else 0.0)


def _unit_support(filling: PartialCall, one: Number, names: Sequence[str]) -> dict[str, float]:
    """How strongly a number's unit supports each argument, divided among the arguments that it supports."""
    speaks = {name: number_units.unit_support(filling.text, one, name, filling.cues[name]) for name in names}
    shared = max(1, sum(worth > 0 for worth in speaks.values()))
    return {name: worth / shared for name, worth in speaks.items()}


def _shared(filling: PartialCall, name: str, schema: Schema) -> Plan[None]:
    """Assigns a number that another argument already has, if one is required and none is left: the likeliest."""
    fitting = [value for one in numbers(filling.text) if (value := reading(one, schema)) is not None]
    if not fitting or "default" in schema:
        return
    scores = yield from score([(f"{filling.prefix}{name}=", f"{value}") for value in fitting])
    filling.settled[name] = fitting[scores.index(max(scores))]


def _as_int(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def reading(number: Number, schema: Schema) -> int | float | str | None:
    """The number as the argument's type: 5 % is 0.05 unless percents are wanted; None if an integer is wanted and it
    is none. Of a Decimal the digits, if a float cannot hold them."""
    value = number.value
    description = f"{described(schema)} {schema.get('title', '')}".casefold()
    if number.seconds and (unit := _unit_of_time(description)) and unit != number.seconds:
        value = _as_int(value * number.seconds / unit)
    elif number.digits and schema.get("pattern") == DECIMAL:
        exact = Decimal(number.digits)
        return f"{EXACT.scaleb(exact, -2) if number.percent and _is_fraction(description) else exact:f}"
    if schema.get("type") == "integer":
        return int(value) if float(value).is_integer() else None
    return round(value / 100, 10) if number.percent and _is_fraction(description) else value


def _is_fraction(description: str) -> bool:
    """Whether a description wants 0.05 for 5 %."""
    if "decimal" in description or "fraction" in description:
        return True
    return "percent" not in description and "%" not in description


def _unit_of_time(description: str) -> int:
    """The seconds of the unit of time in a description; 0 if it has none or several."""
    number_units = re.findall(rf"\bin ({'|'.join(SECONDS)})s?\b", description) or re.findall(
        rf"\b({'|'.join(SECONDS)})s?\b", description
    )
    named = {SECONDS[unit] for unit in number_units}
    return named.pop() if len(named) == 1 else 0


def _settle_lists(filling: PartialCall, schemas: Mapping[str, Schema], required: set[str]) -> None:
    """Assigns lists that the request writes out, and its runs of numbers, to the arguments that take lists."""
    names = [name for name, schema in schemas.items() if schema.get("type") == "array"]
    if not names:
        return
    lists = written_lists(filling.text)
    inside = [span for span, _ in lists]
    free = [one for one in numbers(filling.text) if not any(a <= one.span[0] < b for a, b in inside)]
    for run in runs(filling.text, free):
        lists.append(((run[0].span[0], run[-1].span[1]), [one.exact for one in run]))
    lists.sort(key=lambda one: one[0])
    rows = [
        [
            nearness.nearness(filling.text, span, filling.cues[name]) + (0.0 if name in required else -EVIDENCE)
            if _is_valid_list(schemas[name], with_digits(value, {}))
            else None
            for span, value in lists
        ]
        for name in names
    ]
    for name, row in zip(names, rows, strict=True):
        if name not in required:
            row[:] = [None if worth is None or worth < 0 else worth for worth in row]
    assigned = assign(rows, [name in required for name in names])
    for name, place in zip(names, assigned, strict=True):
        if place is not None:
            span, value = lists[place]
            filling.settled[name] = with_digits(value, schemas[name])
            filling.use(span)


def with_digits(value: Any, schema: Schema) -> Any:
    """A value that was read, with its Digits as text where the schema is that of a Decimal, and as floats elsewhere."""
    if isinstance(value, Digits):
        return str(value) if schema.get("pattern") == DECIMAL else float(value)
    if isinstance(value, dict):
        return {key: with_digits(one, {}) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        items: Any = schema.get("items")
        inner: Schema = cast("Schema", items) if isinstance(items, Mapping) else {}
        return [with_digits(one, inner) for one in cast("list[Any]", value)]
    return value


def _is_valid_list(schema: Schema, value: Sequence[Any]) -> bool:
    """Whether a list is valid for the schema."""
    items: Any = schema.get("items")
    kind = cast("Schema", items).get("type") if isinstance(items, Mapping) else None
    kinds: dict[Any, tuple[type, ...]] = {
        "integer": (int,), "number": (int, float), "string": (str,), "array": (list,), "object": (dict,), "boolean": (bool,),
    }  # fmt: skip
    if kind == "integer" and any(isinstance(one, float) for one in value):
        return False
    return kind is None or all(isinstance(one, kinds.get(kind, (object,))) for one in value)
