"""Combines the values that a request mentions into the arguments of its calls: one row for each call.

Consecutive values of one argument are a group. A clause is a part of the request with at most one group for each
argument: the next group of an argument begins the next clause. A clause gives one call for every combination of the
values in its groups. An argument without a value in a clause has that of the clause before, or a value that the
request mentions once for all calls.

In "the weather in Rome and Oslo in Celsius, then in Lima in Fahrenheit", the second group of cities begins the second
clause. The first clause gives two calls, the second clause one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

from ... import stems
from ...types import Schema
from ..assignment import reading
from ..entities import nearness, spans
from ..entities.numbers import Number, numbers
from ..entities.spans import Span, overlap
from ..partial_call import described, is_number, is_text, word_weights
from .candidate_spans import candidates
from .span_similarity import JOINED, alike, alike_numbers, free_of, kind, left_words, side_by_side, together, two_units
from .value_mentions import FURTHER, ONWARDS, Mention

MOST = 12
"""The most calls for one request: more would be a misreading."""
RESPECTIVELY = re.compile(r"\brespectively\b|\bin (?:that|this|the same) order\b", re.IGNORECASE)
"""Where equally many values of two arguments are paired in order. Otherwise they are combined in every way."""
AGAIN = re.compile(r"\b(?:same|again|repeat|instead|once more|what if|how (?:would|does|do|will))\b", re.IGNORECASE)
"""Where a clause keeps the values of the one before."""
TRAILING = re.compile(r"^[^.?!]{0,20},\s*(?:while\s+|but\s+)?(?:\w+ing|all|both|each)\b")
"""Text after the last clause that applies to all: ", ignoring the weights"."""
LEAST = 0.6
"""The similarity at which a span of one clause takes the place of a value in another."""
ALL = re.compile(r"\b(?:both|each|all|every|either)\b", re.IGNORECASE)
"""Words that say that something applies to all clauses."""
BESIDE = re.compile(r"[^.?!;]{0,20}(?:,|\band\b|\bor\b)[^.?!;,]{0,40}")
"""The text that may separate two mentions after the same words."""
SENTENCE = re.compile(r"[.?!;][\"'”)]?\s+|\n")


@dataclass(slots=True)
class Clause:
    """A part of a request that gives calls: its groups of mentions, and its span."""

    groups: dict[str, list[Mention]] = field(default_factory=dict[str, list[Mention]])
    span: Span = (0, 0)

    def begins(self) -> int:
        return min(one.span[0] for group in self.groups.values() for one in group)

    def ends(self) -> int:
        return max(one.span[1] for group in self.groups.values() for one in group)

    def holds(self, place: Span) -> bool:
        """Whether a span begins in this part."""
        return self.span[0] <= place[0] < self.span[1]


def rows(
    text: str,
    mentions: Sequence[Mention],
    schemas: Mapping[str, Schema],
    required: set[str],
    first: Mapping[str, Any],
) -> tuple[list[dict[str, Any]], int]:
    """The arguments of every call, derived from the mentions `mentions` and the `first` call; and the position of the
    second clause, 0 if there is only one."""
    varied = _varied(mentions)
    parts = clauses(text, [one for one in mentions if one.name in varied])
    if not parts or len(parts) > MOST:
        return [dict(first)], 0
    _set_spans(text, parts)
    if len(parts) > 1:
        more = completed(text, mentions, parts, schemas, set(first) - varied)
        more += completed(text, mentions, parts, schemas, varied)
        if more:
            mentions = sorted([*mentions, *more], key=lambda one: one.span)
            varied = _varied(mentions)
            parts = clauses(text, [one for one in mentions if one.name in varied])
            _set_spans(text, parts)
    calls: list[dict[str, Any]] = []
    before: dict[str, list[Any]] = {}
    for i, part in enumerate(parts):
        values_by_name = {name: _values(group) for name, group in part.groups.items()}
        again = AGAIN.search(text, *part.span) is not None
        for name in sorted(varied - values_by_name.keys()):
            once = [other for other in parts if name in other.groups]
            if (
                name in required
                or (again and name in before)
                or (len(once) == 1 and _for_all(text, once[0], name, parts))
            ):
                values_by_name[name] = before.get(name) or _values(once[0].groups[name])
        shared = {name: value for name, value in first.items() if name not in varied}
        shared = _clause_values(text, shared, mentions, schemas, required, parts, i, again)
        if math.prod(map(len, values_by_name.values())) > MOST * MOST:
            return [dict(first)], 0
        calls += [_ordered(first, {**shared, **values}) for values in _combinations(text, values_by_name)]
        before = {**values_by_name, **before}
    distinct = [one for i, one in enumerate(calls) if one not in calls[:i]]
    return distinct, parts[1].span[0] if len(parts) > 1 else 0


def _varied(mentions: Sequence[Mention]) -> set[str]:
    """The arguments with several values."""
    values = {one.name: one.value for one in mentions}
    return {one.name for one in mentions if one.value != values[one.name]}


def clauses(text: str, mentions: Sequence[Mention]) -> list[Clause]:
    """The mentions in groups, split where an argument occurs again, unless it is side by side with its last mention."""
    parts: list[Clause] = []
    last: Mention | None = None
    for one in mentions:
        if last and one.name == last.name and _beside(text, last, one):
            parts[-1].groups[one.name].append(one)
        elif not parts or one.name in parts[-1].groups or _goes_on(text, parts, last, one):
            parts.append(Clause({one.name: [one]}))
        else:
            parts[-1].groups[one.name] = [one]
        last = one
    return parts


def _goes_on(text: str, parts: Sequence[Clause], last: Mention | None, one: Mention) -> bool:
    """Whether a new clause begins between two mentions, where the argument of the second already has a mention."""
    if last is None or not any(one.name in part.groups for part in parts):
        return False
    order = list(parts[0].groups)
    turned = one.name in order and last.name in order and order.index(one.name) < order.index(last.name)
    onwards = (ONWARDS if turned else FURTHER).search(text, last.span[1], one.span[0])
    return onwards is not None


def _beside(text: str, one: Mention, other: Mention) -> bool:
    """Whether two mentions are side by side: only a conjunction separates them, and the same words or none precede
    them."""
    if isinstance(one.value, str):
        if side_by_side(text, one.span, other.span):
            return True
    elif together(text, one.span, other.span) or JOINED.fullmatch(text, one.span[1], other.span[0]):
        return True
    between = text[one.span[1] : other.span[0]]
    near = BESIDE.fullmatch(between) is not None and FURTHER.search(between) is None
    return near and left_words(text, one.span[0]) == left_words(text, other.span[0])


def completed(
    text: str, mentions: Sequence[Mention], parts: Sequence[Clause], schemas: Mapping[str, Schema], names: set[str]
) -> list[Mention]:
    """The mentions, completed for arguments that only one clause has, if every clause has something of that kind."""
    used = [one.span for one in mentions]
    more: list[Mention] = []
    for name in (
        name for name in schemas if name in names
    ):  # in schema order: a span that one argument takes is gone for the next
        mine = [one for one in mentions if one.name == name]
        if not mine or "enum" in schemas.get(name, {}):
            continue
        lacking = [part for part in parts if not any(part.holds(one.span) for one in mine)]
        if not lacking or len(lacking) == len(parts):
            continue
        new = [
            _similar_spans(text, name, mine, part, schemas[name], [*used, *(one.span for one in more)])
            for part in lacking
        ]
        if all(new):
            more += [one for group in new for one in group]
    return more


def _similar_spans(
    text: str, name: str, mine: Sequence[Mention], part: Clause, schema: Schema, used: Sequence[Span]
) -> list[Mention]:
    """The span of a clause that resembles an argument's values elsewhere most, and the spans side by side with it."""
    scored: list[tuple[float, Mention]] = []
    if is_number(schema):
        scored = _similar_numbers(text, name, mine, part, schema, used)
    elif is_text(schema) and isinstance(mine[0].value, str):
        places = [one.span for one in mine]
        for span in candidates(text, kind(text, places[0]), places):
            if part.holds(span) and free_of(span, used):
                worth = max(alike(text, span, place) for place in places)
                if worth >= LEAST:
                    scored.append((worth, Mention(name, span, text[slice(*span)])))
    if not scored:
        return []
    group = [max(scored, key=lambda one: (one[0], -one[1].span[0]))[1]]
    for other in sorted((one for _, one in scored), key=lambda one: one.span):
        if not overlap(other.span, group[-1].span) and _beside(text, *sorted((group[-1], other), key=lambda x: x.span)):
            group.append(other)
    return sorted(group, key=lambda one: one.span)


def _similar_numbers(
    text: str, name: str, mine: Sequence[Mention], part: Clause, schema: Schema, used: Sequence[Span]
) -> list[tuple[float, Mention]]:
    """The numbers of a clause that may belong to an argument, with their scores. If they are the only ones they need
    not be very similar."""
    every = numbers(text)
    own = [number for number in every for one in mine if number.span == one.span]
    if not own:
        return []
    weights = word_weights({name: schema})[name]
    free = [one for one in every if part.holds(one.span) and free_of(one.span, used)]
    least = 0.0 if _one_group(text, free) else LEAST
    scored: list[tuple[float, Mention]] = []
    for number in free:
        if (value := reading(number, schema)) is not None:
            worth = max(_number_similarity(text, number, one) for one in own) + nearness.nearness(
                text, number.span, weights
            )
            if worth >= least:
                scored.append((worth, Mention(name, number.span, value)))
    return scored


def _one_group(text: str, free: Sequence[Number]) -> bool:
    """Whether the numbers are a single one, or side by side."""
    return all(together(text, one.span, other.span) for one, other in pairwise(free))


def _number_similarity(text: str, one: Number, other: Number) -> float:
    """The similarity of two numbers; negative if their units differ."""
    alike = alike_numbers(text, one, other)
    return -9.0 if alike == 0.0 and two_units(text, one, other) else alike


def _set_spans(text: str, parts: Sequence[Clause]) -> None:
    """Sets the span of each clause: from the last separating word before it."""
    starts = [0]
    for one, other in pairwise(parts):
        begin, end = one.ends(), other.begins()
        breaks = [match.end() for match in SENTENCE.finditer(text, begin, end)]
        joints = [match.start() for match in ONWARDS.finditer(text, begin, end)]
        starts.append(breaks[0] if breaks else joints[-1] if joints else begin)
    for part, start, end in zip(parts, starts, [*starts[1:], len(text)], strict=True):
        part.span = (start, end)


def _values(group: Sequence[Mention]) -> list[Any]:
    values: list[Any] = []
    for one in group:
        if one.value not in values:
            values.append(one.value)
    return values


def _for_all(text: str, part: Clause, name: str, parts: Sequence[Clause]) -> bool:
    """Whether what only one clause says applies to all: it comes before all, in a sentence of its own, or the request
    says so."""
    return _everywhere(text, part.groups[name][0].span, part.groups[name][-1].span[1], parts)


def _everywhere(text: str, span: Span, end: int, parts: Sequence[Clause]) -> bool:
    others = [one for part in parts for group in part.groups.values() for one in group if one.span != span]
    if all(span[0] < one.span[0] for one in others):
        return True
    start, stop = _sentence(text, span)
    alone = free_of((start, stop), [one.span for one in others])
    if alone:
        return True
    return ALL.search(text, max(start, span[0] - 40), min(stop, end + 40)) is not None


def _sentence(text: str, span: Span) -> Span:
    """The sentence around a span."""
    start = max((match.end() for match in SENTENCE.finditer(text, 0, span[0])), default=0)
    after = SENTENCE.search(text, span[1])
    return start, after.start() if after else len(text)


def _clause_values(
    text: str,
    shared: Mapping[str, Any],
    mentions: Sequence[Mention],
    schemas: Mapping[str, Schema],
    required: set[str],
    parts: Sequence[Clause],
    i: int,
    again: bool,
) -> dict[str, Any]:
    """The values shared by all clauses, without those that do not apply to clause `i`: an option that only another
    clause mentions."""
    if len(parts) == 1:
        return dict(shared)
    values: dict[str, Any] = {}
    for name, value in shared.items():
        place = next((one.span for one in mentions if one.name == name), None)
        if schemas.get(name, {}).get("type") == "boolean":
            value = _switch(text, name, schemas[name], value, parts, i)
            if value is None:
                continue
        elif name not in required and place:
            at = next(k for k, part in enumerate(parts) if part.holds(place))
            if at != i and not (at < i and again) and not _everywhere(text, place, place[1], parts):
                continue
        values[name] = value
    return values


def _switch(text: str, name: str, schema: Schema, value: Any, parts: Sequence[Clause], i: int) -> Any:
    """The value of a boolean in clause `i`; None if only another clause mentions it."""
    states = [_switch_state(text[slice(*part.span)], name, schema) for part in parts]
    if TRAILING.search(text[parts[-1].ends() :]) and all(one is None for one in states[:-1]):
        return value
    if states[i] is not None:
        return states[i]
    return value if all(one is None for one in states) else None


def _switch_state(text: str, name: str, schema: Schema) -> bool | None:
    side = spans.side(text, described(schema))
    if side is not None:
        return side
    denied = spans.denied(text, stems.stems(name.replace("_", " ")) - stems.VERBS)
    return None if denied is None else not denied


def _combinations(text: str, by_name: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The calls of a clause: equally many values are paired in order if the request says so, otherwise combined in
    every way."""
    lengths: dict[int, list[str]] = {}
    pair = RESPECTIVELY.search(text) is not None
    for k, (name, values) in enumerate(by_name.items()):
        lengths.setdefault(len(values) if pair else -k, []).append(name)
    rows = [
        [dict(zip(names, row, strict=True)) for row in zip(*(by_name[name] for name in names), strict=True)]
        for names in lengths.values()
    ]
    return [{key: value for one in parts for key, value in one.items()} for parts in product(*rows)]


def _ordered(first: Mapping[str, Any], call: Mapping[str, Any]) -> dict[str, Any]:
    return {name: call[name] for name in (*first, *call) if name in call}
