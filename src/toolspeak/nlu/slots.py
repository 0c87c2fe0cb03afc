"""With which arguments a tool is called: each held to its type and to the request.

Enumerations are scored where the request names several or none. Numbers and lists are taken from the
request, all at once, by the words around them and by likelihood; where it has none, none is given. A
string is what the model writes if that stands in the request; otherwise the piece of the request that it
would sooner write than any other, for a weak model copies worse than it recognises. What is optional is
given only when the request holds evidence for it. Unions are written under their JSON Schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from .. import stems
from ..plan.effects import Plan, ask, score
from ..stems import WORD
from ..types import Note, Request, Schema, Tool
from . import evidence
from .assignment import reading, settle
from .entities import dates, spans
from .entities.numbers import numbers
from .entities.spans import Span
from .partial_call import MISSING, PartialCall, described, is_number, is_text, schemas_of, word_weights
from .prompt import framed, literal, request

LONGEST = 1500
"""Characters of a request that the model reads, the last ones; pieces are taken from all of it."""
MOST_PIECES = 60
"""Pieces that are weighed for one text."""
FIRST, MOST = 12, 40
"""Tokens of a text that the model writes at first, and in all."""
STOPS = ('"', "\n")
"""What ends such a text."""
WORD_WORTH = 1.0
"""Nats that each further word of a copied piece is worth: without it the shortest piece always wins."""
BESIDE_WORTH = 4.0
"""Nats that it is worth to stand right behind the argument's name."""
COMMA = re.compile(r"\b[Cc]ity, |['\"“‘(][A-Z][\w ]+, [A-Z][\w ]*['\"”’)]")
"""How a description shows that a place is told with its region."""
REGION = re.compile(r"(?<![\w-])(?:[A-Z][a-z’-]+ ?)+, (?:[A-Z]{2}\b|(?:[A-Z][a-z]+ ?)+)")
"""A place with its region, as descriptions show it: San Francisco, CA."""
PLACE = re.compile(
    r"\b(?:city|cities|state|country|town|location|place|region|address|destination|origin)\b", re.IGNORECASE
)
DEFAULT = re.compile(
    r"(?:default(?:s|ed)?(?: value)?(?: is| to|:|=)?|doesn't specify, please use|use) (-?\d+(?:\.\d+)?)(?![\w.]*\w)",
    re.IGNORECASE,
)
"""How a description tells what stands where nothing is given."""


def fill(tool: Tool[..., Any], text: str, *, part: bool = False) -> Plan[tuple[dict[str, Any], tuple[Note, ...]]]:
    """The arguments of a call to `tool` that `text` asks for, and what is doubtful about them. Of a `part` of a request
    only what it says itself: nothing is required, but all its numbers where it has enough."""
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
    """Whether the model would sooner give a text to this optional argument than to one of those that follow."""
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
        case _ if is_text(schema):
            return (yield from _string(filling, name, schema, required))
        case "array":
            return (yield from _list(filling, name, schema, required))
        case "object" if schema.get("properties"):
            return (yield from _object(filling, name, schema, required))
        case _:
            return (yield from _written(filling, name, schema, required))


def _defaulted(schema: Schema) -> Any:
    """What a required number is where the request tells none: its default, also where only the description tells it."""
    if "default" in schema:
        return schema["default"]
    told = DEFAULT.search(described(schema))
    if not told:
        return MISSING
    value = float(told[1])
    return int(value) if value.is_integer() else MISSING if schema.get("type") == "integer" else value


def _boolean(filling: PartialCall, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """The side whose words the request uses, where the description tells both ("True to lock, false to unlock");
    else True where the request has the words of its name, False where it denies them. Otherwise the likelier, and
    an optional one is left out."""
    told = spans.side(filling.text, described(schema))
    if told is not None:
        return told
    said = spans.denied(filling.text, stems.stems(name.replace("_", " ")) - stems.VERBS - filling.common)
    if said is not None:
        return not said
    if evidence.spoken(filling.text, name, described(schema), filling.common):
        return True
    if not required:
        return MISSING
    scores = yield from score([(filling.lead(name), literal(value)) for value in (True, False)])
    return scores[0] >= scores[1]


def _option(filling: PartialCall, name: str, options: list[Any], required: bool) -> Plan[Any]:
    """The likeliest of a few values; an optional one only if it stands in the request."""
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
    """The options that stand in the request, word for word or in another form, untaken rather than taken."""
    exact = {str(option): spans.find(filling.text, _spoken(option)) for option in options}
    taken = [place for place in exact.values() if place]
    places: list[tuple[Any, Span]] = []
    for option in options:
        place = exact[str(option)] or spans.find_form(filling.text, _spoken(option)) or _last(filling, option)
        if place and (place in taken or not any(a < place[1] and place[0] < b for a, b in taken)):
            places.append((option, place))
    plain = [(option, place) for option, place in places if _spoken(option).casefold() not in stems.STOP] or places
    return [option for option, place in plain if filling.free(place)] or [option for option, _ in plain]


def _last(filling: PartialCall, option: Any) -> Span | None:
    """Where the last part of an option such as Europe/London stands."""
    *before, last = re.split(r"[/.:]", str(option))
    return spans.find(filling.text, _spoken(last)) if before and len(last) > 2 else None


def _spoken(option: Any) -> str:
    """A name or an option as it is said."""
    return str(option).replace("_", " ")


def _string(filling: PartialCall, name: str, schema: Schema, required: bool, opening: str = "") -> Plan[Any]:
    """What the model writes, if the request says it; otherwise the likeliest piece of the request."""
    description = described(schema)
    if (short := spans.abbreviation(filling.text, description)) is not None:
        return short
    lead = filling.lead(name) + opening
    if (said := evidence.option(filling.text, schema)) and not opening:
        filling.use(spans.find_form(filling.text, said))
        return said
    written = _unpointed((yield from _begun(filling, lead)))
    place = filling.find(written)
    held = [place] if written and place and _may_be(filling, name, place) else []
    beside = [span for span in evidence.named(filling.text, name) if _may_be(filling, name, span)]
    if held or (beside and required):
        place = yield from _better(filling, lead, held, beside)
        return (yield from _regional(filling, lead, _copied(filling, place, description), description))
    if spans.shaped(filling.text, written, description):
        return written
    if not required:
        return MISSING
    if "default" in schema:
        return schema["default"]
    candidates = _pieces(filling)
    if not candidates:
        return MISSING  # a request without a word tells none
    best = yield from _likeliest(lead, [(piece, f'"{piece}"') for piece in candidates])
    filling.notes.append(Note("copied", f"{name}: {written!r} is not in the request, {best!r} is"))
    place = filling.find(best)
    return _copied(filling, place, description) if place else best


def _begun(filling: PartialCall, lead: str) -> Plan[str]:
    """What the model writes for a text: no further than to see that it does not stand in the request."""
    begun = f'{lead}"'
    reply = yield from ask(Request(prompt=begun, stop=STOPS, max_tokens=FIRST, temperature=0))
    if reply.finish != "length" or reply.text.strip().casefold() not in filling.text.casefold():
        return reply.text
    more = yield from ask(Request(prompt=begun + reply.text, stop=STOPS, max_tokens=MOST - FIRST, temperature=0))
    return reply.text + more.text


def _regional(filling: PartialCall, lead: str, place: str, description: str) -> Plan[str]:
    """A place with its region, where the description shows that form and the request leaves the region out."""
    shown = [one[0] for one in REGION.finditer(description)]
    if not shown or not PLACE.search(description) or "," in place or not spans.NAMED.fullmatch(place):
        return place
    reply = yield from ask(Request(prompt=f'{lead}"{place},', stop=('"', "\n", ","), max_tokens=8, temperature=0))
    whole = f"{place}, {_unpointed(reply.text)}"
    if spans.form(whole) not in ("Aa, A", "Aa, Aa"):
        return place
    filling.notes.append(Note("completed", f"{place} to {whole}, in the form of {shown[0]}"))
    return whole


def _may_be(filling: PartialCall, name: str, place: Span) -> bool:
    """Whether a piece of the request may be the value of a text."""
    return filling.free(place) and place not in filling.reserved and not evidence.hollow(filling.text, place, name)


def _better(filling: PartialCall, lead: str, held: Sequence[Span], beside: Sequence[Span]) -> Plan[Span]:
    """Of what the model wrote and what stands beside the argument's name the likelier, in favour of the latter."""
    candidates = list(dict.fromkeys([*held, *beside]))
    if len(candidates) == 1:
        return candidates[0]
    scores = yield from score([(lead, f'"{filling.text[slice(*span)]}"') for span in candidates])
    worth = [value + BESIDE_WORTH * (span in beside) for value, span in zip(scores, candidates, strict=True)]
    return candidates[worth.index(max(worth))]


def _copied(filling: PartialCall, place: Span, description: str) -> str:
    """A piece of the request as an argument: whole names and quotations, with the place around it where the description
    shows one ("San Francisco, CA"), and in the description's own words where it quotes them."""
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
    """Of (piece, how it would be written), the likeliest piece, each of its words counted in its favour."""
    scores = yield from score([(lead, written) for _, written in candidates])
    worth = [s + WORD_WORTH * len(WORD.findall(piece)) for s, (piece, _) in zip(scores, candidates, strict=True)]
    return candidates[worth.index(max(worth))][0]


def _pieces(filling: PartialCall) -> Sequence[str]:
    """The pieces of the request that could be a string argument: quoted ones if there are any, else runs of words."""
    quoted = [piece for span, piece in spans.quotations(filling.text) if filling.free(span)]
    if quoted:
        return quoted
    every = [span for span in spans.runs(filling.text) if _telling(filling.text, span)] or spans.runs(filling.text)
    free = [span for span in every if filling.free(span) and span not in filling.reserved] or every
    return list(dict.fromkeys(filling.text[start:end] for start, end in free))[:MOST_PIECES]


def _telling(text: str, span: Span) -> bool:
    """Whether a piece begins and ends with a word that says something."""
    found = WORD.findall(text[slice(*span)])
    return bool(found and stems.stems(found[0]) and stems.stems(found[-1]))


def _list(filling: PartialCall, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """The items of a list, copied: all untaken numbers, the options named, what is quoted, the parts of a series, or
    one piece."""
    items: Any = schema.get("items")
    plain: Schema = cast("Schema", items) if isinstance(items, Mapping) else {}
    kind = plain.get("type")
    found: list[Any] = []
    if "enum" in plain:
        found = _named(filling, list(plain["enum"]))
    elif not required:
        return MISSING
    elif kind in ("integer", "number"):
        free = [one for one in numbers(filling.text) if filling.free(one.span) and reading(one, plain) is not None]
        found = [reading(one, plain) for one in free]
        filling.used += [one.span for one in free]
    elif is_text(plain):
        found = spans.quoted_series(filling.text) or (yield from _series(filling, name, plain))
    if not found and not required:
        return MISSING
    return found or (yield from _written(filling, name, schema, required))


def _series(filling: PartialCall, name: str, schema: Schema) -> Plan[list[str]]:
    """The items of a series in the request; without one, a single piece of it."""
    text, lead = filling.text, filling.lead(name)
    parts = spans.series(text)
    first = [span for span in spans.endings(text, parts[0]) if filling.free(span)] if parts else []
    last = [span for span in spans.beginnings(text, parts[-1]) if filling.free(span)] if parts else []
    if not first or not last:
        return [(yield from _string(filling, name, schema, True, "["))]
    items = [text[slice(*span)] for span in parts[1:-1]]
    heads = [text[slice(*span)] for span in first]
    head = _whole(text, (yield from _likeliest(lead, [(piece, f"[{literal(piece)}, ") for piece in heads])))
    begun = "[" + "".join(f"{literal(item)}, " for item in (head, *items))
    tails = [text[slice(*span)] for span in last]
    tail = _whole(text, (yield from _likeliest(lead + begun, [(piece, f"{literal(piece)}]") for piece in tails])))
    found = [head, *items, tail]
    for item in found:
        filling.use(filling.find(item))
    return found


def _whole(text: str, piece: str) -> str:
    """An item with the rest of its name, without an article."""
    place = spans.find(text, piece)
    return text[slice(*spans.grown(text, place))] if place else piece


def _object(filling: PartialCall, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """An object, filled as a call is; an optional one only where something in it is."""
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
    """A value written under its JSON Schema."""
    if not required:
        return MISSING
    bounded = {key: value for key, value in schema.items() if key not in ("default", "description", "title")}
    reply = yield from ask(Request(prompt=filling.lead(name), schema=bounded, max_tokens=200, temperature=0))
    try:
        return json.loads(reply.text)
    except ValueError:
        filling.notes.append(Note("unfinished", f"{name}: {reply.text[:80]!r}"))
        return MISSING
