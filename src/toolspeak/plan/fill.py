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
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, cast

from ..schema.walk import resolve
from ..types import Note, Request, Schema, Tool
from . import dates, pieces, words
from .align import assign
from .effects import Plan, ask, score
from .numbers import Number, numbers, runs, written_lists
from .pieces import WORD, Span
from .signature import framed, literal, request

LONGEST = 1500
"""Characters of a request that the model reads, the last ones; pieces are taken from all of it."""
WORD_WORTH = 1.0
"""Nats that each further word of a copied piece is worth: without it the shortest piece always wins."""
NEAR_WORTH = 4.0
"""Nats that a word of an argument right beside a number is worth."""
EVIDENCE = 0.45
"""How near an optional argument's words must stand to a number that it takes."""
COMMA = re.compile(r"\b[Cc]ity, |['\"“‘(][A-Z][\w ]+, [A-Z][\w ]*['\"”’)]")
"""How a description shows that a place is told with its region."""
DEFAULT = re.compile(
    r"(?:default(?:s|ed)?(?: value)?(?: is| to|:|=)?|doesn't specify, please use|use) (-?\d+(?:\.\d+)?)(?![\w.]*\w)",
    re.IGNORECASE,
)
"""How a description tells what stands where nothing is given."""
MISSING = object()


@dataclass(slots=True)
class Filling:
    """The call so far, and which pieces of the request it has used up."""

    text: str
    prefix: str
    told: Mapping[str, Mapping[str, float]]
    """What each word says for each argument."""
    common: Set[str] = frozenset()
    """The stems of the words that describe the tool itself, which say nothing of its switches."""
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    used: list[Span] = field(default_factory=list[Span])
    notes: list[Note] = field(default_factory=list[Note])
    settled: dict[str, Any] = field(default_factory=dict[str, Any])
    """What numbers and lists are, before their turn to be written."""

    def lead(self, name: str) -> str:
        """Everything up to the value of the next argument."""
        return f"{self.prefix}{self.joint}{name}="

    @property
    def joint(self) -> str:
        return ", " if self.arguments else ""

    def give(self, name: str, value: Any) -> None:
        self.prefix = self.lead(name) + literal(value)
        self.arguments[name] = value
        if isinstance(value, str):
            self.use(self.find(value))

    def find(self, piece: str) -> Span | None:
        return pieces.find(self.text, piece)

    def free(self, span: Span) -> bool:
        return not any(span[0] < end and start < span[1] for start, end in self.used)

    def use(self, span: Span | None) -> None:
        if span:
            self.used.append(span)


def fill(tool: Tool[..., Any], text: str, *, part: bool = False) -> Plan[tuple[dict[str, Any], tuple[Note, ...]]]:
    """The arguments of a call to `tool` that `text` asks for, and what is doubtful about them. Of a `part` of a request
    only what it says itself: nothing is required."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = set(() if part else tool.parameters.get("required", ()))
    schemas = {name: simple(given, tool.parameters) for name, given in properties.items()}
    told = words.weights({name: (name, described(schema)) for name, schema in schemas.items()})
    common = words.stems(f"{tool.name} {tool.description}")
    filling = Filling(text, f"{framed(tool)}{request(text[-LONGEST:].lstrip())}{tool.name}(", told, common)
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


def described(schema: Schema) -> str:
    """What the schema says of its value."""
    return str(schema.get("description", ""))


def is_text(schema: Schema) -> bool:
    """Whether a value is copied from the request as it stands."""
    kind = schema.get("type", "string" if not schema.keys() & {"anyOf", "oneOf", "allOf", "properties"} else None)
    return kind == "string" and not schema.keys() & {"enum", "const", "pattern"}


def is_number(schema: Schema) -> bool:
    """Whether a value is one number."""
    return schema.get("type") in ("integer", "number") and not schema.keys() & {"enum", "const"}


def _fits_best(filling: Filling, name: str, value: str, rivals: Sequence[str]) -> Plan[bool]:
    """Whether the model would sooner give a text to this optional argument than to one of those that follow."""
    if not rivals:
        return True
    scores = yield from score([(filling.prefix, f"{filling.joint}{one}={literal(value)}") for one in (name, *rivals)])
    return scores[0] == max(scores)


def simple(schema: Any, root: Schema) -> Schema:
    """The schema with its reference followed and `null` taken out of a union of two."""
    seen = 0
    while isinstance(schema, Mapping) and "$ref" in schema and seen < 16:
        schema, seen = {**cast("Schema", resolve(root, str(schema["$ref"])) or {}), **_without_ref(schema)}, seen + 1  # pyright: ignore[reportUnknownArgumentType]
    if not isinstance(schema, Mapping):
        return {}
    plain = cast("Schema", schema)
    for union in ("anyOf", "oneOf"):
        real = [option for option in plain.get(union, ()) if option != {"type": "null"}]
        if len(real) == 1:
            rest = {key: value for key, value in plain.items() if key != union}
            return {**simple(real[0], root), **rest}
    kind = plain.get("type")
    if isinstance(kind, list):
        kinds = [k for k in cast("list[str]", kind) if k != "null"]
        return {**plain, "type": kinds[0]} if len(kinds) == 1 else plain
    return plain


def _without_ref(schema: Mapping[str, Any]) -> Schema:
    return {key: value for key, value in schema.items() if key != "$ref"}


# ------------------------------------------------------------------ what is given out all at once


def settle(filling: Filling, schemas: Mapping[str, Schema], required: set[str]) -> Plan[None]:
    """Gives dates, lists, numbers and what is meant word for word to the arguments that they fit best."""
    _settle_dates(filling, schemas)
    _settle_lists(filling, schemas, required)
    yield from _settle_marked(filling, schemas, required)
    yield from _settle_numbers(filling, schemas, required)


def _settle_dates(filling: Filling, schemas: Mapping[str, Schema]) -> None:
    """Gives the dates of the request, in its order, to the arguments that are described as dates."""
    wanted = [
        (name, layout)
        for name, schema in schemas.items()
        if schema.get("type") == "string" and (layout := dates.pattern(described(schema), schema.get("format")))
    ]
    found = dates.dates(filling.text)
    if not found:
        return
    for i, (name, layout) in enumerate(wanted):
        if i < len(found):
            filling.settled[name] = dates.written(found[i], layout)
            filling.use(found[i].span)


def _settle_marked(filling: Filling, schemas: Mapping[str, Schema], required: set[str]) -> Plan[None]:
    """Gives what is quoted, and what is no plain word, to the texts whose words stand beside it."""
    names = [name for name, schema in schemas.items() if is_text(schema) and name not in filling.settled]
    found = [(span, piece) for span, piece in pieces.marked(filling.text) if filling.free(span)]
    if not names or not found:
        return
    rows: list[list[float | None]] = []
    for name in names:
        near = [words.nearness(filling.text, span, filling.told[name]) for span, _ in found]
        least = EVIDENCE if name in required else EVIDENCE + 0.15
        rows.append([worth if worth >= least else None for worth in near])
    for name, place in zip(names, assign(rows, [False] * len(names)), strict=True):
        if place is not None:
            filling.settled[name] = found[place][1]
            filling.use(found[place][0])
    # What is quoted for as many texts as are needed still is theirs, in its order.
    left = [name for name in names if name in required and name not in filling.settled]
    quoted = [(span, piece) for span, piece in pieces.quotations(filling.text) if filling.free(span)]
    if left and len(left) == len(quoted):
        for name, (span, piece) in zip(left, quoted, strict=True):
            filling.settled[name] = piece
            filling.use(span)
    yield from ()


def _settle_numbers(filling: Filling, schemas: Mapping[str, Schema], required: set[str]) -> Plan[None]:
    """Gives each number of the request to the argument that it fits best."""
    names = [name for name, schema in schemas.items() if is_number(schema)]
    found = [one for one in numbers(filling.text) if filling.free(one.span)]
    if not names or not found:
        return
    pairs = [
        (name, number, reading(number, schemas[name]))
        for name in names
        for number in found
        if reading(number, schemas[name]) is not None
    ]
    near = {(name, one.span): words.nearness(filling.text, one.span, filling.told[name]) for name, one, _ in pairs}
    asked = [pair for pair in pairs if pair[0] in required or near[pair[0], pair[1].span] >= EVIDENCE]
    worth: dict[tuple[str, Span], float] = {}
    if len(found) > 1 or len({name for name, _, _ in asked}) > 1:
        scores = yield from score([(f"{filling.prefix}{name}=", f"{value}") for name, _, value in asked])
        for (name, one, _), likely in zip(asked, scores, strict=True):
            worth[name, one.span] = likely + NEAR_WORTH * near[name, one.span]
    else:
        worth = {(name, one.span): near[name, one.span] for name, one, _ in asked}
    rows = [[worth.get((name, one.span)) for one in found] for name in names]
    # An optional argument must be worth more than nothing: its likelihood is measured against the best of its kind.
    for name, row in zip(names, rows, strict=True):
        if name not in required:
            row[:] = [None if w is None else 5.0 + near[name, one.span] for w, one in zip(row, found, strict=True)]
    taken = assign(rows, [name in required for name in names])
    for name, place in zip(names, taken, strict=True):
        if place is not None:
            filling.settled[name] = reading(found[place], schemas[name])
            filling.use(found[place].span)
        elif name in required:
            yield from _shared(filling, name, schemas[name])


def _shared(filling: Filling, name: str, schema: Schema) -> Plan[None]:
    """A number that another argument took too, where one is needed and none is left: the likeliest."""
    fitting = [value for one in numbers(filling.text) if (value := reading(one, schema)) is not None]
    if not fitting or "default" in schema:
        return
    scores = yield from score([(f"{filling.prefix}{name}=", f"{value}") for value in fitting])
    filling.settled[name] = fitting[scores.index(max(scores))]


def reading(number: Number, schema: Schema) -> int | float | None:
    """A number as an argument takes it: 5 % is 0.05 unless percents are asked for; None where it is no whole one."""
    value = number.value
    if schema.get("type") == "integer":
        return int(value) if float(value).is_integer() else None
    said = f"{described(schema)} {schema.get('title', '')}".casefold()
    decimal = "decimal" in said or "fraction" in said
    if number.percent and (decimal or not any(word in said for word in ("percent", "%"))):
        return round(value / 100, 10)
    return value


def _settle_lists(filling: Filling, schemas: Mapping[str, Schema], required: set[str]) -> None:
    """Gives the lists that the request writes out, and its runs of numbers, to the arguments that take lists."""
    names = [name for name, schema in schemas.items() if schema.get("type") == "array"]
    if not names:
        return
    found = written_lists(filling.text)
    inside = [span for span, _ in found]
    free = [one for one in numbers(filling.text) if not any(a <= one.span[0] < b for a, b in inside)]
    for run in runs(filling.text, free):
        found.append(((run[0].span[0], run[-1].span[1]), [one.value for one in run]))
    found.sort(key=lambda one: one[0])
    rows = [
        [
            words.nearness(filling.text, span, filling.told[name]) + (0.0 if name in required else -EVIDENCE)
            if _holds(schemas[name], value)
            else None
            for span, value in found
        ]
        for name in names
    ]
    for name, row in zip(names, rows, strict=True):
        if name not in required:
            row[:] = [None if worth is None or worth < 0 else worth for worth in row]
    taken = assign(rows, [name in required for name in names])
    for name, place in zip(names, taken, strict=True):
        if place is not None:
            span, value = found[place]
            filling.settled[name] = value
            filling.use(span)


def _holds(schema: Schema, value: Sequence[Any]) -> bool:
    """Whether a list is one of that kind."""
    items: Any = schema.get("items")
    kind = cast("Schema", items).get("type") if isinstance(items, Mapping) else None
    kinds: dict[Any, tuple[type, ...]] = {
        "integer": (int,), "number": (int, float), "string": (str,), "array": (list,), "object": (dict,), "boolean": (bool,),
    }  # fmt: skip
    if kind == "integer" and any(isinstance(one, float) for one in value):
        return False
    return kind is None or all(isinstance(one, kinds.get(kind, (object,))) for one in value)


# ------------------------------------------------------------------ the other kinds, one after another


def _value(filling: Filling, name: str, schema: Schema, required: bool) -> Plan[Any]:
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


def _boolean(filling: Filling, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """The side whose words the request uses, where the description tells both ("True to lock, false to unlock");
    else True where the request has the words of its name, False where it denies them. Otherwise the likelier, and
    an optional one is left out."""
    told = pieces.side(filling.text, described(schema))
    if told is not None:
        return told
    said = pieces.denied(filling.text, words.stems(name.replace("_", " ")) - words.VERBS - filling.common)
    if said is not None:
        return not said
    if not required:
        return MISSING
    scores = yield from score([(filling.lead(name), literal(value)) for value in (True, False)])
    return scores[0] >= scores[1]


def _option(filling: Filling, name: str, options: list[Any], required: bool) -> Plan[Any]:
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
    filling.use(pieces.find_form(filling.text, _spoken(best)))
    return best


def _named(filling: Filling, options: list[Any]) -> list[Any]:
    """The options that stand in the request, word for word or in another form, untaken rather than taken."""
    exact = {str(option): pieces.find(filling.text, _spoken(option)) for option in options}
    taken = [place for place in exact.values() if place]
    places: list[tuple[Any, Span]] = []
    for option in options:
        place = exact[str(option)] or pieces.find_form(filling.text, _spoken(option)) or _last(filling, option)
        if place and (place in taken or not any(a < place[1] and place[0] < b for a, b in taken)):
            places.append((option, place))
    plain = [(option, place) for option, place in places if _spoken(option).casefold() not in words.STOP] or places
    return [option for option, place in plain if filling.free(place)] or [option for option, _ in plain]


def _last(filling: Filling, option: Any) -> Span | None:
    """Where the last part of an option such as Europe/London stands."""
    *before, last = re.split(r"[/.:]", str(option))
    return pieces.find(filling.text, _spoken(last)) if before and len(last) > 2 else None


def _spoken(option: Any) -> str:
    """A name or an option as it is said."""
    return str(option).replace("_", " ")


def _string(filling: Filling, name: str, schema: Schema, required: bool, opening: str = "") -> Plan[Any]:
    """What the model writes, if the request says it; otherwise the likeliest piece of the request."""
    description = described(schema)
    if (short := pieces.told_for(filling.text, description)) is not None:
        return short
    lead = filling.lead(name) + opening
    reply = yield from ask(Request(prompt=f'{lead}"', stop=('"', "\n"), max_tokens=40, temperature=0))
    written = _unpointed(reply.text)
    place = filling.find(written)
    if written and place and filling.free(place):
        return _copied(filling, place, description)
    if pieces.shaped(filling.text, written, description):
        return written
    if not required:
        return MISSING
    candidates = _pieces(filling)
    if not candidates:
        return written
    best = yield from _likeliest(lead, [(piece, f'"{piece}"') for piece in candidates])
    filling.notes.append(Note("copied", f"{name}: {written!r} is not in the request, {best!r} is"))
    place = filling.find(best)
    return _copied(filling, place, description) if place else best


def _copied(filling: Filling, place: Span, description: str) -> str:
    """A piece of the request as an argument: whole names and quotations, with the place around it where the description
    shows one ("San Francisco, CA"), and in the description's own words where it quotes them."""
    place = pieces.grown(filling.text, place)
    if COMMA.search(description) and (wider := pieces.with_region(filling.text, place)):
        place = wider
    for date in dates.dates(filling.text):
        if date.span[0] <= place[0] and place[1] <= date.span[1]:
            place = date.span
    filling.use(place)
    copied = _unpointed(filling.text[slice(*place)]) if place[1] - place[0] < 60 else filling.text[slice(*place)]
    options = [piece for _, piece in pieces.quotations(description)]
    return next((one for one in options if pieces.find_form(copied, one) == (0, len(copied))), copied)


def _unpointed(text: str) -> str:
    return text.strip().rstrip(".,;!?")


def _likeliest(lead: str, candidates: Sequence[tuple[str, str]]) -> Plan[str]:
    """Of (piece, how it would be written), the likeliest piece, each of its words counted in its favour."""
    scores = yield from score([(lead, written) for _, written in candidates])
    worth = [s + WORD_WORTH * len(WORD.findall(piece)) for s, (piece, _) in zip(scores, candidates, strict=True)]
    return candidates[worth.index(max(worth))][0]


def _pieces(filling: Filling) -> Sequence[str]:
    """The pieces of the request that could be a string argument: quoted ones if there are any, else runs of words."""
    quoted = [piece for span, piece in pieces.quotations(filling.text) if filling.free(span)]
    if quoted:
        return quoted
    every = pieces.runs(filling.text)
    free = [span for span in every if filling.free(span)] or every
    return list(dict.fromkeys(filling.text[start:end] for start, end in free))


def _list(filling: Filling, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """The items of a list, copied: all untaken numbers, the options named, what is quoted, the parts of a series, or one
    piece."""
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
        found = pieces.quoted_series(filling.text) or (yield from _series(filling, name, plain))
    if not found and not required:
        return MISSING
    return found or (yield from _written(filling, name, schema, required))


def _series(filling: Filling, name: str, schema: Schema) -> Plan[list[str]]:
    """The items of a series in the request; without one, a single piece of it."""
    text, lead = filling.text, filling.lead(name)
    parts = pieces.series(text)
    first = [span for span in pieces.endings(text, parts[0]) if filling.free(span)] if parts else []
    last = [span for span in pieces.beginnings(text, parts[-1]) if filling.free(span)] if parts else []
    if not first or not last:
        return [(yield from _string(filling, name, schema, True, "["))]
    items = [text[slice(*span)] for span in parts[1:-1]]
    heads = [text[slice(*span)] for span in first]
    head = yield from _likeliest(lead, [(piece, f"[{literal(piece)}, ") for piece in heads])
    begun = "[" + "".join(f"{literal(item)}, " for item in (head, *items))
    tails = [text[slice(*span)] for span in last]
    tail = yield from _likeliest(lead + begun, [(piece, f"{literal(piece)}]") for piece in tails])
    found = [head, *items, tail]
    for item in found:
        filling.use(filling.find(item))
    return found


def _object(filling: Filling, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """An object, filled as a call is; an optional one only where something in it is."""
    properties: Mapping[str, Any] = schema["properties"]
    needed = set(schema.get("required", ())) if required else set[str]()
    schemas = {key: simple(given, {}) for key, given in properties.items()}
    told = words.weights({key: (key, described(inner)) for key, inner in schemas.items()})
    inner = Filling(filling.text, f"{filling.lead(name)}dict(", told, filling.common, used=list(filling.used))
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


def _written(filling: Filling, name: str, schema: Schema, required: bool) -> Plan[Any]:
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
