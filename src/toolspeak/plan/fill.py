"""With which arguments a tool is called: one after another, each held to its type and to the request.

Enumerations and booleans are scored. Numbers are taken from the request, the likeliest first; where it has none, none is given. A string
is what the model writes if that stands in the request; otherwise the likeliest piece of the request, for
a weak model copies worse than it recognises. A list is copied from a series in the request. What is
optional is given only when the request holds evidence for it. Objects and unions are written under
their JSON Schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ..schema.walk import resolve
from ..types import Note, Request, Schema, Tool
from . import pieces
from .effects import Plan, ask, score
from .pieces import WORD, Span
from .signature import framed, literal, request

WORD_WORTH = 1.0
"""Nats that each further word of a copied piece is worth: without it the shortest piece always wins."""
MISSING = object()


@dataclass(slots=True)
class Filling:
    """The call so far, and which pieces of the request it has used up."""

    text: str
    prefix: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    used: list[Span] = field(default_factory=list[Span])
    notes: list[Note] = field(default_factory=list[Note])

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


def fill(tool: Tool[..., Any], text: str) -> Plan[tuple[dict[str, Any], tuple[Note, ...]]]:
    """The arguments of a call to `tool` that `text` asks for, and what is doubtful about them."""
    filling = Filling(text, f"{framed(tool)}{request(text)}{tool.name}(")
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = set(tool.parameters.get("required", ()))
    schemas = {name: _simple(given, tool.parameters) for name, given in properties.items()}
    order = sorted(schemas, key=lambda name: name not in required)
    for i, name in enumerate(order):
        value = yield from _value(filling, name, schemas[name], name in required)
        if value is not MISSING and name not in required and _is_text(schemas[name]):
            rivals = [other for other in order[i + 1 :] if _is_text(schemas[other])]
            value = value if (yield from _fits_best(filling, name, value, rivals)) else MISSING
        if value is not MISSING and (name in required or value != schemas[name].get("default", MISSING)):
            filling.give(name, value)
    return filling.arguments, tuple(filling.notes)


def _is_text(schema: Schema) -> bool:
    """Whether a value is copied from the request as it stands."""
    return schema.get("type") == "string" and not schema.keys() & {"enum", "const", "format", "pattern"}


def _fits_best(filling: Filling, name: str, value: str, rivals: Sequence[str]) -> Plan[bool]:
    """Whether the model would sooner give a text to this optional argument than to one of those that follow."""
    if not rivals:
        return True
    scores = yield from score([(filling.prefix, f"{filling.joint}{one}={literal(value)}") for one in (name, *rivals)])
    return scores[0] == max(scores)


def _simple(schema: Any, root: Schema) -> Schema:
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
            return {**_simple(real[0], root), **rest}
    kind = plain.get("type")
    if isinstance(kind, list):
        kinds = [k for k in cast("list[str]", kind) if k != "null"]
        return {**plain, "type": kinds[0]} if len(kinds) == 1 else plain
    return plain


def _without_ref(schema: Mapping[str, Any]) -> Schema:
    return {key: value for key, value in schema.items() if key != "$ref"}


def _value(filling: Filling, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """The value of one argument, or MISSING."""
    if "const" in schema:
        return schema["const"] if required else MISSING
    if "enum" in schema:
        return (yield from _option(filling, name, list(schema["enum"]), required))
    match schema.get("type"):
        case "boolean":
            return (yield from _boolean(filling, name, schema, required))
        case "integer" | "number" as kind:
            return (yield from _number(filling, name, schema, kind, required))
        case "string" if _is_text(schema):
            return (yield from _string(filling, name, required))
        case "array":
            return (yield from _list(filling, name, schema, required))
        case _:
            return (yield from _written(filling, name, schema, required))


def _boolean(filling: Filling, name: str, schema: Schema, required: bool) -> Plan[Any]:
    """The side whose words the request uses, where the description tells both ("True to lock, false to unlock");
    otherwise the likelier. An optional one only if its name or such words stand in the request."""
    told = pieces.side(filling.text, str(schema.get("description", "")))
    if told is not None:
        return told
    if not required and not filling.find(_spoken(name)):
        return MISSING
    scores = yield from score([(filling.lead(name), literal(value)) for value in (True, False)])
    return scores[0] >= scores[1]


def _option(filling: Filling, name: str, options: list[Any], required: bool) -> Plan[Any]:
    """The likeliest of a few values; an optional one only if it stands in the request."""
    named = _named(filling, options)
    if not named and not required:
        return MISSING
    options = named or options
    scores = yield from score([(filling.lead(name), literal(option)) for option in options])
    best = options[scores.index(max(scores))]
    filling.use(pieces.find_form(filling.text, _spoken(best)))
    return best


def _named(filling: Filling, options: list[Any]) -> list[Any]:
    """The options that stand in the request: word for word rather than in another form, untaken rather than taken."""
    for find in (pieces.find, pieces.find_form):
        places = [(option, place) for option in options if (place := find(filling.text, _spoken(option)))]
        if places:
            return [option for option, place in places if filling.free(place)] or [option for option, _ in places]
    return []


def _spoken(option: Any) -> str:
    """A name or an option as it is said."""
    return str(option).replace("_", " ")


def _number(filling: Filling, name: str, schema: Schema, kind: str, required: bool) -> Plan[Any]:
    """The likeliest number of the request that no other argument took; a taken one, if there is none and one is needed."""
    fitting = _numbers(filling, kind)
    free = [one for one in fitting if filling.free(one[0])]
    choices = free or (fitting if required else [])
    if not choices:
        return MISSING  # written freely, it would be a guess
    scores = yield from score([(filling.lead(name), f"{value}") for _, value in choices])
    span, value = choices[scores.index(max(scores))]
    filling.use(span)
    return value


def _numbers(filling: Filling, kind: str) -> list[tuple[Span, int | float]]:
    """The numbers of the request that are of that kind."""
    found = pieces.numbers(filling.text)
    if kind == "integer":
        return [(span, int(value)) for span, value in found if float(value).is_integer()]
    return found


def _string(filling: Filling, name: str, required: bool, opening: str = "") -> Plan[Any]:
    """What the model writes, if the request says it; otherwise the likeliest piece of the request."""
    lead = filling.lead(name) + opening
    reply = yield from ask(Request(prompt=f'{lead}"', stop=('"', "\n"), max_tokens=40, temperature=0))
    written = _unpointed(reply.text)
    place = filling.find(written)
    if written and place and filling.free(place):
        whole = [piece for _, piece in pieces.quotations(filling.text) if _unpointed(piece) == written]
        return whole[0] if whole else written
    if not required:
        return MISSING
    candidates = _pieces(filling)
    if not candidates:
        return written
    best = yield from _likeliest(lead, [(piece, f'"{piece}"') for piece in candidates])
    filling.notes.append(Note("copied", f"{name}: {written!r} is not in the request, {best!r} is"))
    return best


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
    """The items of a list, copied: all untaken numbers, the options named, the parts of a series, or one piece."""
    items: Any = schema.get("items")
    plain: Schema = cast("Schema", items) if isinstance(items, Mapping) else {}
    kind = plain.get("type")
    found: list[Any] = []
    if not required:
        return MISSING
    if "enum" in plain:
        found = _named(filling, list(plain["enum"]))
    elif kind in ("integer", "number"):
        free = [(span, value) for span, value in _numbers(filling, kind) if filling.free(span)]
        found = [value for _, value in free]
        filling.used += [span for span, _ in free]
    elif _is_text(plain):
        found = yield from _series(filling, name)
    return found or (yield from _written(filling, name, schema, required))


def _series(filling: Filling, name: str) -> Plan[list[str]]:
    """The items of a series in the request; without one, a single piece of it."""
    text, lead = filling.text, filling.lead(name)
    parts = pieces.series(text)
    first = [span for span in pieces.endings(text, parts[0]) if filling.free(span)] if parts else []
    last = [span for span in pieces.beginnings(text, parts[-1]) if filling.free(span)] if parts else []
    if not first or not last:
        return [(yield from _string(filling, name, True, "["))]
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
