"""Finds where a request mentions the values of a call's arguments, and similar values, which belong to further calls.

A first call shows what each argument's value looks like (a name, a code, a quotation, a number with its unit, an
option) and which words surround it. A similar span in similar surroundings, after a word that moves on to something
else ("and", "then", "the second"), is a further value of that argument.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...stems import WORD
from ...types import Schema
from ..assignment import reading
from ..entities import dates, nearness, spans as pieces
from ..entities.numbers import Number, numbers, written_lists
from ..entities.spans import Span
from ..partial_call import described, is_number, is_text, word_weights
from .candidate_spans import MOST, candidates
from .span_similarity import alike, alike_numbers, free_of, kind, side_by_side, two_units, unit_of

ALIKE = 0.8
"""The similarity of surroundings at which two spans of one kind are values of one argument."""
ALIKE_WORDS = 1.1
"""The same for plain words, of which a request has many."""
ALIKE_NUMBERS = 1.6
"""The same for numbers, with the argument's words counted: more than an equal unit alone."""
ALIKE_FURTHER = 1.2
"""The same after a word that certainly moves on to something else."""
ROUNDS = 3
"""How often spans are compared with those that were accepted."""
ONWARDS = re.compile(
    r"[,;:\n]|\b(?:and|or|then|also|while|whereas|but|versus|vs|against|compared?|second|third|fourth|fifth|sixth|next|finally|"
    r"lastly|last one|other one|another|again|instead|repeat|plus|as well|what if|how about|what about|that of|followed)\b|\d\)",
    re.IGNORECASE,
)
"""Words that may move on to something else."""
DENIED = re.compile(
    r"\b(?:not|nor|never|instead of|rather than|except|without) (?:(?:in|an?|the|as) )*['\"]?$", re.IGNORECASE
)
"""Text before an option that excludes it."""
PRONOUN = re.compile(r"\b(?:first|second|third|other|another|last|this|that|each|every|which) one$", re.IGNORECASE)
"""Phrases in which "one" is a pronoun and no number."""
FURTHER = re.compile(
    r"\b(?:then|second|third|fourth|fifth|another|again|instead|repeat|finally|lastly|what if|after that|how (?:does|do|would|will|did)|does it)\b",
    re.IGNORECASE,
)
"""Words that certainly move on to something else."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of the request with a value of an argument."""

    name: str
    span: Span
    value: Any


def mentions(text: str, schemas: Mapping[str, Schema], first: Mapping[str, Any]) -> list[Mention]:
    """The spans with the values of the `first` call, and with further values of its arguments."""
    own = _first_mentions(text, schemas, first)
    used = [one.span for one in own]
    every = list(own)
    every += _dates(text, schemas, own, used)
    used = [one.span for one in every]
    every += _options(text, schemas, first, own, used)
    used = [one.span for one in every]
    every += _texts(text, schemas, own, used)
    every += _lists(text, schemas, own)
    used = [one.span for one in every]
    every += _numbers(text, schemas, own, used)
    return _separated(text, sorted(every, key=lambda one: one.span), own)


def _separated(text: str, mentions: Sequence[Mention], own: Sequence[Mention]) -> list[Mention]:
    """The mentions without those that no word separates from the one before."""
    separated: list[Mention] = []
    last: dict[str, Mention] = {}
    for one in mentions:
        before = last.get(one.name)
        if before and not ONWARDS.search(text, before.span[1], one.span[0]):
            if one not in own:
                continue
            separated.remove(before)
        separated.append(one)
        last[one.name] = one
    return separated


def _first_mentions(text: str, schemas: Mapping[str, Schema], first: Mapping[str, Any]) -> list[Mention]:
    """The spans of the first call's own values. No span belongs to two arguments."""
    weights = word_weights(schemas)
    used: list[Span] = []
    results: list[Mention] = []
    for name, value in first.items():
        schema = schemas.get(name, {})
        if is_number(schema):
            continue
        place = _place(text, schema, value)
        if place and free_of(place, used):
            used.append(place)
            results.append(Mention(name, place, value))
    free = [one for one in numbers(text)[:MOST] if free_of(one.span, used)]
    for name, value in first.items():
        schema = schemas.get(name, {})
        same = [one for one in free if is_number(schema) and reading(one, schema) == value and free_of(one.span, used)]
        if same:
            best = max(same, key=lambda one: nearness.nearness(text, one.span, weights[name]))
            used.append(best.span)
            results.append(Mention(name, best.span, value))
    return results


def _place(text: str, schema: Schema, value: Any) -> Span | None:
    """The span of a value."""
    if isinstance(value, str):
        if "enum" in schema:
            return pieces.find_form(text, value.replace("_", " "))
        layout = dates.pattern(described(schema), schema.get("format"))
        dated = [one.span for one in dates.dates(text) if layout and dates.written(one, layout) == value]
        return dated[0] if dated else pieces.find(text, value)
    if isinstance(value, list):
        written = [span for span, one in written_lists(text) if one == value]
        items = [pieces.find(text, item) for item in cast("list[Any]", value) if isinstance(item, str)]
        if written or not items or None in items:
            return written[0] if written else None
        spans = cast("list[Span]", items)
        return (min(spans)[0], max(spans)[1])
    return None


def _dates(text: str, schemas: Mapping[str, Schema], own: Sequence[Mention], used: Sequence[Span]) -> list[Mention]:
    """The other dates, if exactly one argument takes a date."""
    layouts = {
        name: layout
        for name, schema in schemas.items()
        if (layout := dates.pattern(described(schema), schema.get("format")))
    }
    dated = [one for one in own if one.name in layouts]
    if len(dated) != 1 or len(layouts) != 1:
        return []
    name = dated[0].name
    return [
        Mention(name, one.span, dates.written(one, layouts[name]))
        for one in dates.dates(text)
        if free_of(one.span, used)
    ]


def _options(
    text: str, schemas: Mapping[str, Schema], first: Mapping[str, Any], own: Sequence[Mention], used: Sequence[Span]
) -> list[Mention]:
    """The spans of options, for arguments with an option in the first call. An option of two arguments belongs to
    neither."""
    enums = {
        name: [one for one in schemas[name]["enum"] if isinstance(one, str)]
        for name in schemas
        if "enum" in schemas[name]
    }
    results: list[Mention] = []
    for name, options in enums.items():
        mine = next((one for one in own if one.name == name), None)
        others = [one for other in enums if other != name for one in enums[other]]
        for option in sorted(options, key=len, reverse=True):
            if option in others or not option or (mine is None and not _defaults(text, schemas[name], first, name)):
                continue
            cased = sum(option.casefold() == one.casefold() for one in options) > 1
            for span in _every(text, option.replace("_", " "), cased):
                denied = DENIED.search(text, max(0, span[0] - 24), span[0]) is not None
                if not denied and free_of(span, used) and free_of(span, [one.span for one in results]):
                    results.append(Mention(name, span, option))
    return results


def _defaults(text: str, schema: Schema, first: Mapping[str, Any], name: str) -> bool:
    """Whether the first call lacks an option that the request names because it is the default."""
    default = schema.get("default")
    return name not in first and isinstance(default, str) and pieces.find(text, default.replace("_", " ")) is not None


def _every(text: str, piece: str, cased: bool) -> list[Span]:
    """Every occurrence as whole words."""
    start = r"(?<!\w)" if piece[:1].isalnum() else ""
    end = r"(?!\w)" if piece[-1:].isalnum() else ""
    matches = re.finditer(f"{start}{re.escape(piece)}{end}", text, 0 if cased else re.IGNORECASE)
    return [one.span() for one in matches][:MOST]


def _texts(text: str, schemas: Mapping[str, Schema], own: Sequence[Mention], used: Sequence[Span]) -> list[Mention]:
    """The spans that look like a string of the first call and have similar surroundings."""
    mine = [one for one in own if is_text(schemas.get(one.name, {})) and isinstance(one.value, str)]
    weights = word_weights(schemas)
    accepted: dict[str, list[Mention]] = {one.name: [one] for one in mine}
    barred = [*used, *_option_spans(text, schemas)]
    results: list[Mention] = []
    for _ in range(ROUNDS):  # a span that resembles an accepted one is accepted in the next round
        scored: list[tuple[float, int, Mention]] = []
        for name, places in accepted.items():
            of = kind(text, places[0].span)
            size = len(WORD.findall(places[0].value))
            for span in candidates(text, of, [one.span for one in places], weights[name]):
                if free_of(span, barred):
                    worth = _similarity(text, of, places, span, weights[name])
                    if worth >= (ALIKE_WORDS if of == "words" else ALIKE):
                        one = Mention(name, span, text[slice(*span)])
                        scored.append((worth, -abs(len(WORD.findall(one.value)) - size), one))
        grown = False
        for _, _, one in sorted(scored, key=lambda one: one[:2], reverse=True):
            if free_of(one.span, barred):
                results.append(one)
                barred.append(one.span)
                accepted[one.name].append(one)
                grown = True
        if not grown:
            break
    return [one for one in results if not _one_place(text, accepted[one.name])]


def _similarity(text: str, of: str, places: Sequence[Mention], span: Span, keywords: Collection[str]) -> float:
    """The similarity of a span to an argument's mentions. Plain words occur in many surroundings, so they are compared
    with the first call's mention only."""
    if of != "words":
        return max(alike(text, one.span, span, keywords) for one in places)
    listed = max(
        (alike(text, one.span, span, keywords) for one in places if side_by_side(text, one.span, span)), default=0.0
    )
    return max(alike(text, places[0].span, span, keywords), listed)


def _option_spans(text: str, schemas: Mapping[str, Schema]) -> list[Span]:
    """The spans of options, which are not available as strings."""
    options = {
        str(one).replace("_", " ") for schema in schemas.values() for one in schema.get("enum", ()) if len(str(one)) > 2
    }
    return [span for option in sorted(options) for span in _every(text, option, cased=False)]


def _one_place(text: str, places: Sequence[Mention]) -> bool:
    """Whether two names are one place: Paris, France."""
    if len(places) != 2 or kind(text, places[0].span) != "name":
        return False
    one, other = sorted(place.span for place in places)
    return text[one[1] : other[0]].strip() == ","


def _lists(text: str, schemas: Mapping[str, Schema], own: Sequence[Mention]) -> list[Mention]:
    """The other lists in the request, or its other series of quotations, if only one argument takes a list."""
    names = [name for name in schemas if schemas[name].get("type") == "array"]
    mine = [one for one in own if one.name in names]
    if len(names) != 1 or not mine:
        return []
    written = written_lists(text)
    if not any(span == mine[0].span for span, _ in written) and kind(text, mine[0].span) == "quoted":
        written = _quoted_lists(text)
    used = [one.span for one in own]
    return [Mention(names[0], span, value) for span, value in written if free_of(span, used)]


def _quoted_lists(text: str) -> list[tuple[Span, list[str]]]:
    """The series of quotations, each with its span inside the outer marks."""
    runs = pieces.in_series(text, pieces.quotations(text))
    return [((run[0][0][0] + 1, run[-1][0][1] - 1), [piece for _, piece in run]) for run in runs]


def _numbers(text: str, schemas: Mapping[str, Schema], own: Sequence[Mention], used: Sequence[Span]) -> list[Mention]:
    """The numbers that measure the same thing as a number of the first call."""
    weights = word_weights(schemas)
    inside = [*used, *(span for span, _ in written_lists(text)), *(one.span for one in dates.dates(text))]
    inside += [span for span, _ in pieces.quotations(text)]
    every = numbers(text)[:MOST]
    accepted = {
        one.name: [number]
        for one in own
        if is_number(schemas.get(one.name, {}))
        for number in every
        if number.span == one.span
    }
    firsts = {name: places[0] for name, places in accepted.items()}
    results = _rounds(
        text, schemas, firsts, [one for one in every if free_of(one.span, inside) or one in firsts.values()]
    )
    if results:
        return results
    for one in every:
        if not free_of(one.span, inside) or PRONOUN.search(text[max(0, one.span[0] - 10) : one.span[1]]):
            continue
        scored = [
            (worth + 2 * near, worth + near, name)
            for name, others in accepted.items()
            for near in [nearness.nearness(text, one.span, weights[name])]
            if reading(one, schemas[name]) is not None
            and (worth := max(alike_numbers(text, one, other) for other in (others[0], *others[1:][-2:]))) > 0
            and not _another_unit(text, one, name, firsts)
        ]
        _, worth, name = max(scored, default=(0.0, 0.0, ""))
        least = ALIKE_FURTHER if name and _moves_on(text, one, name, accepted[name][-1], firsts) else ALIKE_NUMBERS
        if worth >= least:
            results.append(Mention(name, one.span, reading(one, schemas[name])))
            accepted[name].append(one)
    return results


def _rounds(
    text: str, schemas: Mapping[str, Schema], firsts: Mapping[str, Number], every: Sequence[Number]
) -> list[Mention]:
    """Mentions where the request gives a number for each argument, and then again one for each: 3 out of 12, 5 out of
    20."""
    names = sorted(firsts, key=lambda name: firsts[name].span)
    size = len(names)
    if size < 2 or len(every) < 2 * size or len(every) % size or [firsts[name] for name in names] != list(every[:size]):
        return []
    results: list[Mention] = []
    for i, one in enumerate(every[size:], size):
        name = names[i % size]
        value = reading(one, schemas[name])
        goes_on = i % size or ONWARDS.search(text, every[i - 1].span[1], one.span[0])
        if value is None or two_units(text, one, firsts[name]) or not goes_on:
            return []
        results.append(Mention(name, one.span, value))
    return results


def _moves_on(text: str, one: Number, name: str, last: Number, firsts: Mapping[str, Number]) -> bool:
    """Whether the request certainly moves on to something else before a number whose unit no other argument has."""
    others = [unit_of(text, number) for other, number in firsts.items() if other != name]
    return FURTHER.search(text, last.span[1], one.span[0]) is not None and unit_of(text, one) not in others


def _another_unit(text: str, one: Number, name: str, firsts: Mapping[str, Number]) -> bool:
    """Whether a number has the unit of another argument, and not that of this one."""
    unit = unit_of(text, one)
    others = [unit_of(text, number) for other, number in firsts.items() if other != name]
    return unit != "" and unit in others and unit != unit_of(text, firsts[name])
