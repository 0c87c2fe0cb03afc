"""Fills a tool's arguments from a request (slot filling). Each value matches its type and comes from the request.

- Enumerations are scored if the request names several options or none.
- Numbers and lists are taken from the request, all at once, by the words around them and by likelihood. If it has
  none, none is given.
- A string is what the model generates, if that text is in the request. Otherwise it is the span of the request that
  the model finds likeliest, since a weak model copies worse than it recognizes.
- Optional arguments are given only if the request has evidence for them.
- Unions are generated under their JSON Schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from .. import stems
from ..plan.effects import Plan, ask, score
from ..schema.nonblocking_json import loads_or
from ..schema.phrases import beginning
from ..stems import WORD
from ..types import Note, Request, Schema, Tool
from . import evidence
from .assignment import reading, settle
from .entities import dates, spans
from .entities.numbers import numbers
from .entities.spans import Span
from .partial_call import MISSING, UNIONS, PartialCall, described, is_number, is_text, schemas_of, word_weights
from .prompt import framed, literal, request

LONGEST = 1500
"""Characters at the end of a request that the model reads; spans are taken from all of it."""
MOST_PIECES = 60
"""The most spans that are scored for one string."""
FIRST, MOST = 12, 40
"""Tokens of a string that the model generates at first, and in all."""
STOPS = ('"', "\n")
"""The stop strings for a generated string."""
WORD_WORTH = 1.0
"""Nats added for each further word of a copied span; without this the shortest span always wins."""
BESIDE_WORTH = 4.0
"""Nats added if a span comes right after the argument's name."""
COMMA = re.compile(r"\b[Cc]ity, |['\"“‘(][A-Z][\w ]+, [A-Z][\w ]*['\"”’)]")
"""Matches a description that shows a place with its region."""
REGION = re.compile(r"(?<![\w-])(?:[A-Z][a-z’-]+ ?)+, (?:[A-Z]{2}\b|(?:[A-Z][a-z]+ ?)+)")
"""A place with its region as descriptions show it: San Francisco, CA."""
PLACE = re.compile(
    r"\b(?:city|cities|state|country|town|location|place|region|address|destination|origin)\b", re.IGNORECASE
)
DEFAULT = re.compile(
    r"(?:default(?:s|ed)?(?: value)?(?: is| to|:|=)?|doesn't specify, please use|use) (-?\d+(?:\.\d+)?)(?![\w.]*\w)",
    re.IGNORECASE,
)
"""Where a description states the default value."""


def fill(tool: Tool[..., Any], text: str, *, part: bool = False) -> Plan[tuple[dict[str, Any], tuple[Note, ...]]]:
    """The arguments of a call to `tool` for the request `text`, and notes on doubtful ones.

    With `part`, the text is a part of a request: only what it has itself is used and nothing is required, but all its
    numbers are used if there are enough.
    """
    required = set[str](tool.parameters.get("required", ()))
    schemas = schemas_of(tool.parameters)
    if part:
        needed = {name for name in required if is_number(schemas.get(name, {}))}
        required = needed if 0 < len(needed) <= len(numbers(text)) else set[str]()
    common = stems.stems(f"{tool.name} {tool.description}")
    prefix = f"{framed(tool)}{request(text[-LONGEST:].lstrip())}{tool.name}("
    filling = PartialCall(text, prefix, word_weights(schemas), common, evidence.reserved(text, schemas))
    order = sorted(schemas, key=lambda name: name not in required)
    yield from settle(filling, schemas, required)
    for i, name in enumerate(order):
        value = yield from _value(filling, name, schemas[name], name in required)
        if value is not MISSING and name not in required and is_text(schemas[name]):
            rivals = [other for other in order[i + 1 :] if is_text(schemas[other])]
            value = value if (yield from _fits_best(filling, name, value, rivals)) else MISSING
        if value is not MISSING and (name in required or value != schemas[name].get("default", MISSING)):
            filling.give(name, value)
    return filling.arguments, tuple(filling.notes)


def _fits_best(filling: PartialCall, name: str, value: str, rivals: Sequence[str]) -> Plan[bool]:
    """Whether this optional argument is likelier to take a string than each of the following ones."""
    if not rivals:
        return True
    scores = yield from score([(filling.prefix, f"{filling.joint}{one}={literal(value)}") for one in (name, *rivals)])
    return scores[0] == max(scores)


def _value(filling: PartialCall, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """The value of one argument, or MISSING."""
    if name in filling.settled:
        return filling.settled[name]
    if "const" in schema:
        return schema["const"] if required else MISSING
    if "enum" in schema:
        return (yield from _option(filling, name, list(schema["enum"]), required))
    match schema.get("type"):
        case "boolean":
            return (yield from _boolean(filling, name, schema, required))
        case "integer" | "number":
            return _defaulted(schema) if required else MISSING
        case _ if _may_be_number(schema):
            return (yield from _number_or_text(filling, name, schema, required))
        case _ if is_text(schema):
            return (yield from _string(filling, name, schema, required))
        case "array":
            return (yield from _list(filling, name, schema, required))
        case "object" if schema.get("properties"):
            return (yield from _object(filling, name, schema, required))
        case _:
            return (yield from _written(filling, name, schema, required))


def _defaulted(schema: Schema) -> Any:
    """The value of a required number that the request lacks: its default, also one that only the description states."""
    if "default" in schema:
        return schema["default"]
    match = DEFAULT.search(described(schema))
    if not match:
        return MISSING
    value = float(match[1])
    return int(value) if value.is_integer() else MISSING if schema.get("type") == "integer" else value


def _boolean(filling: PartialCall, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """The value of a boolean.

    If the description explains both values ("True to lock, false to unlock"), it is the one whose words the request
    has. Otherwise True if the request has the words of the name, and False if it negates them. Otherwise the likelier
    value, or MISSING for an optional argument.
    """
    side = spans.side(filling.text, described(schema))
    if side is not None:
        return side
    denied = spans.denied(filling.text, stems.stems(name.replace("_", " ")) - stems.VERBS - filling.common)
    if denied is not None:
        return not denied
    if evidence.spoken(filling.text, name, described(schema), filling.common):
        return True
    if not required:
        return MISSING
    scores = yield from score([(filling.lead(name), literal(value)) for value in (True, False)])
    return scores[0] >= scores[1]


def _option(filling: PartialCall, name: str, options: list[Any], required: bool) -> Plan[Any]:
    """The likeliest of a few values; for an optional argument only one that is in the request."""
    named = _named(filling, options)
    if not named and not required:
        return MISSING
    options = named or options
    if len(options) > 1:
        scores = yield from score([(filling.lead(name), literal(option)) for option in options])
        best = options[scores.index(max(scores))]
    else:
        best = options[0]
    filling.use(spans.find_form(filling.text, _spoken(best)))
    return best


def _named(filling: PartialCall, options: list[Any]) -> list[Any]:
    """The options in the request, verbatim or in another form; unused ones are preferred."""
    exact = {str(option): spans.find(filling.text, _spoken(option)) for option in options}
    used = [place for place in exact.values() if place]
    places: list[tuple[Any, Span]] = []
    for option in options:
        place = exact[str(option)] or spans.find_form(filling.text, _spoken(option)) or _last_part_span(filling, option)
        if place and (place in used or not any(a < place[1] and place[0] < b for a, b in used)):
            places.append((option, place))
    plain = [(option, place) for option, place in places if _spoken(option).casefold() not in stems.STOP] or places
    return [option for option, place in plain if filling.free(place)] or [option for option, _ in plain]


def _last_part_span(filling: PartialCall, option: Any) -> Span | None:
    """The span of the last part of an option such as Europe/London."""
    *before, last = re.split(r"[/.:]", str(option))
    return spans.find(filling.text, _spoken(last)) if before and len(last) > 2 else None


def _spoken(option: Any) -> str:
    """A name or an option in words."""
    return str(option).replace("_", " ")


def _string(filling: PartialCall, name: str, schema: Schema, required: bool, opening: str = "") -> Plan[Any]:
    """The text that the model generates if the request has it; otherwise the likeliest span of the request."""
    description = described(schema)
    if (short := spans.abbreviation(filling.text, description)) is not None:
        return short
    lead = filling.lead(name) + opening
    if (option := evidence.option(filling.text, schema)) and not opening:
        filling.use(spans.find_form(filling.text, option))
        return option
    written = _unpointed((yield from _generated_start(filling, lead)))
    place = filling.find(written)
    own_place = [place] if written and place and _may_be(filling, name, place) else []
    beside = [span for span in evidence.named(filling.text, name) if _may_be(filling, name, span)]
    if own_place or (beside and required):
        place = yield from _likelier_span(filling, lead, own_place, beside)
        return (yield from _regional(filling, lead, _copied(filling, place, description), description))
    if spans.shaped(filling.text, written, description):
        return written
    if not required:
        return MISSING
    if "default" in schema:
        return schema["default"]
    candidates = _pieces(filling)
    if not candidates:
        return MISSING  # the request has no words
    best = yield from _likeliest(lead, [(piece, f'"{piece}"') for piece in candidates])
    filling.notes.append(Note("copied", f"{name}: {written!r} is not in the request, {best!r} is"))
    place = filling.find(best)
    return _copied(filling, place, description) if place else best


def _generated_start(filling: PartialCall, lead: str) -> Plan[str]:
    """The start of the text that the model generates, long enough to see that it is not in the request."""
    begun = f'{lead}"'
    reply = yield from ask(Request(prompt=begun, stop=STOPS, max_tokens=FIRST, temperature=0))
    if reply.finish != "length" or reply.text.strip().casefold() not in filling.text.casefold():
        return reply.text
    more = yield from ask(Request(prompt=begun + reply.text, stop=STOPS, max_tokens=MOST - FIRST, temperature=0))
    return reply.text + more.text


def _regional(filling: PartialCall, lead: str, place: str, description: str) -> Plan[str]:
    """A place with its region, if the description shows that format and the request omits the region."""
    examples = [one[0] for one in REGION.finditer(description)]
    if not examples or not PLACE.search(description) or "," in place or not spans.NAMED.fullmatch(place):
        return place
    reply = yield from ask(Request(prompt=f'{lead}"{place},', stop=('"', "\n", ","), max_tokens=8, temperature=0))
    whole = f"{place}, {_unpointed(reply.text)}"
    if spans.form(whole) not in ("Aa, A", "Aa, Aa"):
        return place
    filling.notes.append(Note("completed", f"{place} to {whole}, in the form of {examples[0]}"))
    return whole


def _may_be(filling: PartialCall, name: str, place: Span) -> bool:
    """Whether a span of the request may be the value of a string."""
    return filling.free(place) and place not in filling.reserved and not evidence.hollow(filling.text, place, name)


def _likelier_span(filling: PartialCall, lead: str, generated: Sequence[Span], beside: Sequence[Span]) -> Plan[Span]:
    """The likelier of what the model generated and of what is beside the argument's name; the latter gets a bonus."""
    candidates = list(dict.fromkeys([*generated, *beside]))
    if len(candidates) == 1:
        return candidates[0]
    scores = yield from score([(lead, f'"{filling.text[slice(*span)]}"') for span in candidates])
    worth = [value + BESIDE_WORTH * (span in beside) for value, span in zip(scores, candidates, strict=True)]
    return candidates[worth.index(max(worth))]


def _copied(filling: PartialCall, place: Span, description: str) -> str:
    """A span of the request as an argument: whole names and quotations, with the region if the description shows one
    ("San Francisco, CA"), or in the description's own words if it quotes them."""
    place = spans.grown(filling.text, place)
    if (COMMA.search(description) or REGION.search(description)) and (wider := spans.with_region(filling.text, place)):
        place = wider
    for date in dates.dates(filling.text):
        if date.span[0] <= place[0] and place[1] <= date.span[1]:
            place = date.span
    copied = filling.text[slice(*place)]
    if not any(piece == copied for _, piece in spans.quotations(filling.text)):
        copied = _unpointed(copied)
    options = [piece for _, piece in spans.quotations(description)]
    return next((one for one in options if spans.find_form(copied, one) == (0, len(copied))), copied)


def _unpointed(text: str) -> str:
    plain = text.strip().rstrip(".,;!?")
    return plain.rstrip("'\"").rstrip(".,;!?") if plain.count(plain[-1:]) == 1 else plain


def _likeliest(lead: str, candidates: Sequence[tuple[str, str]]) -> Plan[str]:
    """The likeliest of (span, its text in the prompt), with a bonus for each word."""
    scores = yield from score([(lead, written) for _, written in candidates])
    worth = [s + WORD_WORTH * len(WORD.findall(piece)) for s, (piece, _) in zip(scores, candidates, strict=True)]
    return candidates[worth.index(max(worth))][0]


def _pieces(filling: PartialCall) -> Sequence[str]:
    """The spans of the request that could be a string argument: quotations if there are any, otherwise runs of words."""
    quoted = [piece for span, piece in spans.quotations(filling.text) if filling.free(span)]
    if quoted:
        return quoted
    every = [span for span in spans.runs(filling.text) if _telling(filling.text, span)] or spans.runs(filling.text)
    free = [span for span in every if filling.free(span) and span not in filling.reserved] or every
    return list(dict.fromkeys(filling.text[start:end] for start, end in free))[:MOST_PIECES]


def _telling(text: str, span: Span) -> bool:
    """Whether a span begins and ends with a content word."""
    words = WORD.findall(text[slice(*span)])
    return bool(words and stems.stems(words[0]) and stems.stems(words[-1]))


def _list(filling: PartialCall, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """The items of a list, copied: all unused numbers, the options that are named, the quotations, the items of a
    series, or a single span."""
    items: Any = schema.get("items")
    plain: Schema = cast("Schema", items) if isinstance(items, Mapping) else {}
    kind = plain.get("type")
    values: list[Any] = []
    if "enum" in plain:
        values = _named(filling, list(plain["enum"]))
    elif not required:
        return MISSING
    elif kind in ("integer", "number"):
        free = [one for one in numbers(filling.text) if filling.free(one.span) and reading(one, plain) is not None]
        values = [reading(one, plain) for one in free]
        filling.used += [one.span for one in free]
    elif is_text(plain):
        values = spans.quoted_series(filling.text) or (yield from _series(filling, name, plain))
    if not values and not required:
        return MISSING
    return values or (yield from _written(filling, name, schema, required))


def _series(filling: PartialCall, name: str, schema: Schema) -> Plan[list[str]]:
    """The items of a series in the request; without one, a single span."""
    text, lead = filling.text, filling.lead(name)
    parts = spans.series(text)
    first = [span for span in spans.endings(text, parts[0]) if filling.free(span)] if parts else []
    last = [span for span in spans.beginnings(text, parts[-1]) if filling.free(span)] if parts else []
    if not first or not last:
        return [(yield from _string(filling, name, schema, True, "["))]
    items = [text[slice(*span)] for span in parts[1:-1]]
    heads = [text[slice(*span)] for span in first]
    head = _whole_item(text, (yield from _likeliest(lead, [(piece, f"[{literal(piece)}, ") for piece in heads])))
    begun = "[" + "".join(f"{literal(item)}, " for item in (head, *items))
    tails = [text[slice(*span)] for span in last]
    tail = _whole_item(text, (yield from _likeliest(lead + begun, [(piece, f"{literal(piece)}]") for piece in tails])))
    whole = [head, *items, tail]
    for item in whole:
        filling.use(filling.find(item))
    return whole


def _whole_item(text: str, piece: str) -> str:
    """An item extended to its whole name, without an article."""
    place = spans.find(text, piece)
    return text[slice(*spans.grown(text, place))] if place else piece


def _object(filling: PartialCall, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """An object, filled like a call; an optional one only if something in it has a value."""
    needed = set(schema.get("required", ())) if required else set[str]()
    schemas = schemas_of(schema, {})
    inner = PartialCall(
        filling.text, f"{filling.lead(name)}dict(", word_weights(schemas), filling.common, used=list(filling.used)
    )
    yield from settle(inner, schemas, needed)
    for key in sorted(schemas, key=lambda key: key not in needed):
        value = yield from _value(inner, key, schemas[key], key in needed)
        if value is not MISSING and (key in needed or value != schemas[key].get("default", MISSING)):
            inner.give(key, value)
    filling.notes += inner.notes
    if not inner.arguments and not required:
        return MISSING
    filling.used = inner.used
    return inner.arguments


def _written(filling: PartialCall, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """A value that is generated under its JSON Schema."""
    if not required:
        return MISSING
    bounded = {key: value for key, value in schema.items() if key not in ("default", "description", "title")}
    reply = yield from ask(Request(prompt=filling.lead(name), schema=bounded, max_tokens=200, temperature=0))
    try:
        return json.loads(reply.text)
    except ValueError:
        filling.notes.append(Note("unfinished", f"{name}: {beginning(reply.text, 80)!r}"))
        return MISSING


def _may_be_number(schema: Schema) -> set[Any]:
    """The types of numbers in a union of them and any string; empty for other schemas."""
    options = [cast("Schema", one) for union in UNIONS for one in schema.get(union, ()) if isinstance(one, Mapping)]
    texts = [option for option in options if is_text(option)]
    others = {option.get("type") for option in options if option not in texts} - {"null"}
    return others if texts and others <= {"integer", "number"} else set[Any]()


def _number_or_text(filling: PartialCall, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """A text of the request; the number that it is, if it is written like one."""
    plain = {key: value for key, value in schema.items() if key not in UNIONS}
    text = yield from _string(filling, name, {**plain, "type": "string"}, required)
    value = loads_or(text, text) if isinstance(text, str) else text
    kinds = (int, float) if "number" in _may_be_number(schema) else (int,)
    return value if type(value) in kinds and str(value) == text else text
