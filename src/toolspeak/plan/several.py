"""How many calls a request wants, and what each of the others has instead of the first one's values.

A weak model cannot tell when to stop. The request itself tells: what is named side by side ("water and
iron", "at 0 and at 1000 meters"), or told one after another ("the first … the second …"), wants a call each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any, cast

from ..types import Note, Schema, Tool
from . import dates, pieces, words
from .effects import Plan
from .fill import fill
from .filling import is_number, is_text, schemas_of, told_by
from .numbers import Number, numbers, written_lists
from .pieces import WORD, Span
from .settle import reading

MOST = 12
"""Calls that one request may come to: a request for more is misread."""
ALIKE = 1.6
"""How much the surroundings of two numbers must agree for them to be the same thing: more than a unit alone."""
MOST_BETWEEN = 3
"""Words between two options that stand side by side."""
MOST_CLAUSES = 6
"""Parts of a request that are read one by one; each costs as much as a call."""
SENTENCE = re.compile(r"(?<=[.?!;])[\"'”]?\s+(?=[\"'“A-Z(])|\n+")
COUNTED = re.compile(
    r"\b(?:first|second|third|fourth|fifth|sixth|lastly|last one|other one|another one)\b", re.IGNORECASE
)
FURTHER = re.compile(
    r"[,;.?!]?\s+(?:and\s+)?(?:then|finally|lastly|also|after that|afterwards|in addition|additionally)\b,?\s+|"
    r"[,;]?\s+and\s+(?=(?:how|what|who|when|where|which|can|could|please|for|the same)\b)|"
    r"[,;]?\s+and\s+(?=the [A-Za-z]+(?: [A-Za-z]+)? ['\"“])|(?<=[.?!;])[\"'”]?\s+(?=(?:what|how|can|could|who|when|where|which|repeat|do the same)\b)",
    re.IGNORECASE,
)
"""Where a request goes on to a further thing."""
COUNTS = re.compile(r"(?=\bthe (?:first|second|third|fourth|fifth|sixth|last) )", re.IGNORECASE)
"""Where a request counts things within a sentence."""
MOST_WORDS_OF_NOTHING = 2
"""Words of a part that is none by itself."""
SAME = re.compile(r"\b(?:same|it|this|that|these|those|them|my|our)\b", re.IGNORECASE)
"""Words of a piece that only points back."""
JOINT = re.compile(
    r"\s*(?:[,;]|\band\b|&|\bor\b|\bthen\b|\bas well as\b|/|\bversus\b|\bvs\.?)(?:\s*(?:and|or|then|also|finally|lastly)\b)?,?\s+",
    re.IGNORECASE,
)
LEAD = re.compile(r"(?:(?:the|a|an|in|at|for|of|on|from|with|to|by|another|that of)\s+)*", re.IGNORECASE)
HEAD = re.compile(r"\s+([a-z]+)")
UNIT = re.compile(r"\s*(\w+|%|°)")
Place = tuple[Span, Any]


def calls_for(
    tool: Tool[..., Any], text: str, *, several: bool = True
) -> Plan[tuple[list[dict[str, Any]], tuple[Note, ...]]]:
    """The arguments of each call to `tool` that `text` asks for, one or `several`, and what is doubtful about them."""
    first, notes = yield from fill(tool, text)
    if not several:
        return [first], notes
    parts = clauses(text)
    apart = 1 < len(parts) <= MOST_CLAUSES
    side = [first] if apart and _told_whole(tool, parts) else alternatives(tool, text, first)
    if len(side) > 1 or not apart:
        return side, notes
    opening, _ = yield from fill(tool, parts[0], part=True)
    calls = [{**first, **opening}]
    for part in parts[1:]:
        found, _ = yield from fill(tool, part, part=True)
        call = further(text, calls[0], found)
        if call is not None and call not in calls:
            calls.append(call)
    return (calls if len(calls) > 1 else [first]), notes


def _told_whole(tool: Tool[..., Any], parts: Sequence[str]) -> bool:
    """Whether each part tells all the numbers that a call needs."""
    schemas = schemas_of(tool.parameters)
    needed = sum(is_number(schemas.get(name, {})) for name in tool.parameters.get("required", ()))
    return needed > 0 and all(len(numbers(part)) >= needed for part in parts)


def clauses(text: str) -> list[str]:
    """The parts of a request that may each want a call of their own, [] where it is one: sentences that count ("the
    second …"), or what follows "and then", "how does it compare to"."""
    sentences = [part.strip() for part in SENTENCE.split(text) if part and part.strip()]
    told = [part for part in sentences if COUNTED.search(part)]
    if len(told) > 1:
        return told
    counted = [part for part in COUNTS.split(text)[1:] if len(WORD.findall(part)) > MOST_WORDS_OF_NOTHING]
    if len(counted) > 1:
        return counted
    parts = [part.strip() for part in FURTHER.split(text) if part and len(WORD.findall(part)) > MOST_WORDS_OF_NOTHING]
    return parts if len(parts) > 1 else []


def alternatives(tool: Tool[..., Any], text: str, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The arguments of every call, the first of them `arguments`: more than one where the request names several values
    for an argument side by side. As many of two arguments are paired in their order, others are crossed."""
    schemas = schemas_of(tool.parameters)
    lists = written_lists(text)
    others = _texts(text, schemas, arguments)
    others |= _lists([value for _, value in lists], schemas, arguments)
    others |= _numbers(text, schemas, arguments, [span for span, _ in lists])
    several = {name: values for name, values in others.items() if len(values) > 1}
    if not several:
        return [dict(arguments)]
    made = [dict(arguments) | values for values in _combined(several)]
    distinct = [one for i, one in enumerate(made) if one not in made[:i]]
    return distinct if len(distinct) <= MOST else [dict(arguments)]


def _combined(several: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """As many values are paired in their order, others are crossed."""
    groups: dict[int, list[str]] = {}
    for name, values in several.items():
        groups.setdefault(len(values), []).append(name)
    rows = [
        [dict(zip(names, row, strict=True)) for row in zip(*(several[name] for name in names), strict=True)]
        for names in groups.values()
    ]
    return [{key: value for part in parts for key, value in part.items()} for parts in product(*rows)]


def _texts(text: str, schemas: Mapping[str, Schema], arguments: Mapping[str, Any]) -> dict[str, list[Any]]:
    """For each text and option the pieces of the request side by side with it, itself among them, in their order."""
    found: dict[str, list[Any]] = {}
    used = [place for value in arguments.values() if isinstance(value, str) and (place := pieces.find(text, value))]
    for name, value in arguments.items():
        schema = schemas.get(name, {})
        if "enum" in schema:
            others = [other for key, other in arguments.items() if key != name]
            found[name] = _options(text, [one for one in schema["enum"] if one not in others], value)
        elif is_text(schema) and isinstance(value, str) and (place := pieces.find(text, value)):
            taken = [span for span in used if span != place]
            siblings = [span for span in side_by_side(text, place) if not any(_overlap(span, one) for one in taken)]
            found[name] = [text[slice(*span)] for span in siblings]
    return found


def _lists(found: Sequence[Any], schemas: Mapping[str, Schema], arguments: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The lists `found` in the request, where only one argument takes a list: each is one call's."""
    names = [name for name in schemas if schemas[name].get("type") == "array"]
    one = len(names) == 1 and arguments.get(names[0]) in found
    return {names[0]: list(found)} if one and len(found) > 1 else {}


def _options(text: str, options: Sequence[Any], value: Any) -> list[Any]:
    """The options that stand in the request as they are, `value` among them."""
    places = sorted(
        (place, option)
        for option in options
        if isinstance(option, str) and (place := pieces.find(text, option.replace("_", " ")))
    )
    folded = [str(option).casefold() for option in options]
    places = [(place, option) for place, option in places if folded.count(option.casefold()) == 1 or option in text]
    clear = [one for one in places if not any(o is not one and _within(one[0], o[0]) for o in places)]
    rows: list[list[Place]] = []
    for one in clear:
        if rows and _joined(text, rows[-1][-1][0], one[0]):
            rows[-1].append(one)
        else:
            rows.append([one])
    for row in ([option for _, option in row] for row in rows):
        if value in row:
            return row
    return []


def _joined(text: str, one: Span, other: Span) -> bool:
    """Whether nothing stands between two pieces but a joint, and a word or two that say nothing."""
    joint = JOINT.search(text, one[1], other[0])
    if not joint:
        return False
    between = text[one[1] : joint.start()] + " " + text[joint.end() : other[0]]
    return len(WORD.findall(between)) <= MOST_BETWEEN and not words.stems(text[joint.end() : other[0]])


def _within(one: Span, other: Span) -> bool:
    return other[0] <= one[0] and one[1] <= other[1] and one != other


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def side_by_side(text: str, place: Span) -> list[Span]:
    """The pieces that are joined to the one at `place` by commas and "and", and have its form; itself among them."""
    quote = place[0] > 0 and text[place[0] - 1] in "\"'“‘"
    spans = [place]
    while (after := _next(text, spans[-1], quote)) is not None and len(spans) < MOST:
        spans.append(after)
    while (before := _before(text, spans[0], quote)) is not None and len(spans) < MOST:
        spans.insert(0, before)
    commas = all(text[one[1] : other[0]].strip() == "," for one, other in pairwise(spans))
    return [place] if commas and text[place[0]].isupper() and not quote else spans  # Paris, France is one place


def _next(text: str, place: Span, quote: bool) -> Span | None:
    """The piece after a joint that follows `place`, perhaps behind a word that both share."""
    end = place[1] + (1 if quote else 0)
    joint = JOINT.match(text, end)
    shared = None
    if not joint and (head := HEAD.match(text, end)):
        joint, shared = JOINT.match(text, head.end()), head[1]
    if not joint:
        return None
    start = LEAD.match(text, joint.end()).end()  # pyright: ignore[reportOptionalMemberAccess]
    return _like(text, start, place, quote, shared)


def _like(text: str, start: int, place: Span, quote: bool, shared: str | None) -> Span | None:
    """The piece at `start`, where it has the form of the one at `place`."""
    if quote:
        return next(((a + 1, b - 1) for (a, b), _ in pieces.quotations(text) if a == start), None)
    model = text[slice(*place)]
    if model[:1].isupper():
        found = pieces.NAMED.match(text, start)
        return found.span() if found else None
    found = WORD.match(text, start)
    if found and bool(pieces.CODED.search(model)) is not bool(pieces.CODED.search(found[0])):
        return None
    if not found or found[0][:1].isupper() or found[0].casefold() in words.STOP:
        return None
    if shared and not re.match(rf"\s+{re.escape(shared)}", text[found.end() :]):
        return None
    return found.span() if len(WORD.findall(model)) == 1 and not found[0][0].isdigit() else None


def _before(text: str, place: Span, quote: bool) -> Span | None:
    """The piece before a joint that stands in front of `place`: the one whose next piece that is."""
    start = max(0, place[0] - 80)
    if quote:
        candidates = [(a + 1, b - 1) for (a, b), _ in pieces.quotations(text) if b <= place[0]]
    elif text[place[0]].isupper():
        candidates = [found.span() for found in pieces.NAMED.finditer(text, start, place[0])]
    else:
        candidates = [found.span() for found in WORD.finditer(text, start, place[0])]
    last = candidates[-3:][::-1]
    return next((one for one in last if _next(text, one, quote) == place), None)


def _numbers(
    text: str,
    schemas: Mapping[str, Schema],
    arguments: Mapping[str, Any],
    lists: Sequence[Span],
) -> dict[str, list[Any]]:
    """For each number of the call the numbers of the request that are the same thing, in their order."""
    names = [name for name in arguments if is_number(schemas.get(name, {}))]
    told = told_by(schemas)
    said = [place for value in arguments.values() if isinstance(value, str) and (place := pieces.find(text, value))]
    dated = [date.span for date in dates.dates(text)]
    listed = [one for value in arguments.values() if isinstance(value, list) for one in cast("list[Any]", value)]
    free = [
        one
        for one in numbers(text)
        if one.value not in listed and not any(_overlap(one.span, span) for span in (*lists, *said, *dated))
    ]
    own = {name: next((one for one in free if reading(one, schemas[name]) == arguments[name]), None) for name in names}
    found: dict[str, list[Any]] = {name: [] for name in names}
    for one in free:
        scored = [
            (_alike(text, one, mine) + words.nearness(text, one.span, told[name]), name)
            for name in names
            if (mine := own[name]) is not None
            and reading(one, schemas[name]) is not None
            and not any(one is other for key, other in own.items() if key != name)
        ]
        worth, name = max(scored, default=(0.0, ""))
        mine = own.get(name)
        if name and mine and (one is mine or (worth >= ALIKE and _alike(text, one, mine) > 0)):
            value = reading(one, schemas[name])
            if value not in found[name]:
                found[name].append(value)
    return {name: values for name, values in found.items() if len(values) > 1}


def _alike(text: str, one: Number, other: Number) -> float:
    """How much two numbers stand in the same surroundings: the same word behind them, or before, or side by side."""
    if one.span == other.span:
        return 2.0
    between = text[min(one.span[1], other.span[1]) : max(one.span[0], other.span[0])]
    together = re.fullmatch(r"\s*\w*\s*(?:,|and|or|,\s*and)\s*(?:\w+\s+){0,2}[$€£]?", between) is not None
    return (
        1.2 * (_after(text, one) == _after(text, other) != "")
        + 0.8 * (_ahead(text, one) == _ahead(text, other) != "")
        + 1.2 * together
    )


def _after(text: str, one: Number) -> str:
    found = UNIT.match(text, one.span[1])
    return words.stem(found[1]) if found and found[1].casefold() not in ("and", "or") else ""


def _ahead(text: str, one: Number) -> str:
    """The last word before a number that says something."""
    before = [found[0] for found in WORD.finditer(text, max(0, one.span[0] - 30), one.span[0])]
    return next((words.stem(word) for word in reversed(before) if word.casefold() not in words.STOP), "")


def further(text: str, first: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments of a further call: those `found` in its clause, the rest as in the first; None where nothing is new.

    What points back ("the same"), what another argument of the first call is, and a text of another kind than the
    first call's is nothing new.
    """
    new = {
        name: value
        for name, value in found.items()
        if first.get(name) != value and not (isinstance(value, str) and not _fresh(text, first, name, value))
    }
    known = list(first.values())
    return {**first, **new} if any(value not in known for value in new.values()) else None


def _fresh(text: str, first: Mapping[str, Any], name: str, value: str) -> bool:
    if SAME.search(value) or value in first.values() or not words.stems(value):
        return False
    return name not in first or not isinstance(first[name], str) or _kind(text, value) == _kind(text, first[name])


def _kind(text: str, value: str) -> str:
    """What kind of piece a value is: quoted, a name, a code, or plain words."""
    place = pieces.find(text, value)
    if place and place[0] > 0 and text[place[0] - 1] in "\"'“‘":
        return "quoted"
    if pieces.CODED.search(value):
        return "code"
    return "name" if pieces.NAMED.match(value) else "words"
