"""With which arguments a tool is called: one after another, each held to its type and to the request.

Enumerations and booleans are scored. Numbers are taken from the request, the likeliest first. A string
is what the model writes if that stands in the request; otherwise the likeliest piece of the request, for
a weak model copies worse than it recognises. What is optional is given only when the request holds
evidence for it. Lists, objects and unions are written under their JSON Schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ..schema.walk import resolve
from ..types import Note, Request, Schema, Tool
from .effects import Plan, ask, score
from .signature import framed, literal, request

UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Letters of scripts that put no blanks between words: each of them counts as a word."""
LETTER = rf"[^\W_{UNSPACED}]"
WORD = re.compile(rf"[{UNSPACED}]|[/~]?{LETTER}+(?:['’.:@/_+-]+{LETTER}+)*")
NUMBER = re.compile(r"(?<![A-Za-z0-9_.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", re.ASCII)
LONGEST_SPAN = 8
"""Words in a piece of the request that may be copied as a string."""
WORD_WORTH = 1.0
"""Nats that each further word of a copied piece is worth: without it the shortest piece always wins."""
QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|‘([^’]+)’|(?<!\w)'([^']+)'(?!\w)")
MISSING = object()


@dataclass(slots=True)
class Filling:
    """The call so far, and which pieces of the request it has used up."""

    text: str
    prefix: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    used: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    notes: list[Note] = field(default_factory=list[Note])

    def lead(self, name: str) -> str:
        """Everything up to the value of the next argument."""
        return f"{self.prefix}{', ' if self.arguments else ''}{name}="

    def give(self, name: str, value: Any) -> None:
        self.prefix = self.lead(name) + literal(value)
        self.arguments[name] = value
        if isinstance(value, str):
            self.use(self.find(value))

    def find(self, piece: str) -> tuple[int, int] | None:
        """Where `piece` stands in the request as whole words, whatever its case."""
        if not piece.strip():
            return None
        before = rf"(?<!{LETTER})" if re.match(LETTER, piece) else ""
        after = rf"(?!{LETTER})" if re.match(LETTER, piece[-1]) else ""
        found = re.search(f"{before}{re.escape(piece)}{after}", self.text, re.IGNORECASE)
        return found.span() if found else None

    def free(self, span: tuple[int, int]) -> bool:
        return not any(span[0] < end and start < span[1] for start, end in self.used)

    def use(self, span: tuple[int, int] | None) -> None:
        if span:
            self.used.append(span)


def fill(tool: Tool[..., Any], text: str) -> Plan[tuple[dict[str, Any], tuple[Note, ...]]]:
    """The arguments of a call to `tool` that `text` asks for, and what is doubtful about them."""
    filling = Filling(text, f"{framed(tool)}{request(text)}{tool.name}(")
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = set(tool.parameters.get("required", ()))
    for name, given in sorted(properties.items(), key=lambda item: item[0] not in required):
        schema = _simple(given, tool.parameters)
        value = yield from _value(filling, name, schema, name in required)
        if value is not MISSING and (name in required or value != schema.get("default", MISSING)):
            filling.give(name, value)
    return filling.arguments, tuple(filling.notes)


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
            return (yield from _option(filling, name, [True, False], required, evident=False))
        case "integer" | "number" as kind:
            return (yield from _number(filling, name, schema, kind, required))
        case "string" if not schema.get("format") and not schema.get("pattern"):
            return (yield from _string(filling, name, required))
        case _:
            return (yield from _written(filling, name, schema, required))


def _option(filling: Filling, name: str, options: list[Any], required: bool, *, evident: bool = True) -> Plan[Any]:
    """The likeliest of a few values; an optional one only if it stands in the request."""
    if evident:
        named = [option for option in options if filling.find(str(option).replace("_", " "))]
        if not named and not required:
            return MISSING
        options = named or options
    elif not required and not filling.find(name.replace("_", " ")):
        return MISSING
    scores = yield from score([(filling.lead(name), literal(option)) for option in options])
    return options[scores.index(max(scores))]


def _number(filling: Filling, name: str, schema: Schema, kind: str, required: bool) -> Plan[Any]:
    """The likeliest number of the request that no other argument took; free, if there is none and one is needed."""
    spans = [found.span() for found in NUMBER.finditer(filling.text)]
    fitting = [(span, value) for span in spans if (value := _as_number(filling.text[slice(*span)], kind)) is not None]
    free = [one for one in fitting if filling.free(one[0])]
    choices = free or (fitting if required else [])
    if not choices:
        return (yield from _written(filling, name, schema, required)) if required else MISSING
    scores = yield from score([(filling.lead(name), f"{value}") for _, value in choices])
    span, value = choices[scores.index(max(scores))]
    filling.use(span)
    return value


def _as_number(text: str, kind: str) -> int | float | None:
    plain = text.replace(",", "").lstrip("+")
    value = float(plain) if "." in plain else int(plain)
    if kind == "integer" and not float(value).is_integer():
        return None
    return int(value) if kind == "integer" else value


def _string(filling: Filling, name: str, required: bool) -> Plan[Any]:
    """What the model writes, if the request says it; otherwise the likeliest piece of the request."""
    reply = yield from ask(Request(prompt=f'{filling.lead(name)}"', stop=('"', "\n"), max_tokens=40, temperature=0))
    written = reply.text.strip().rstrip(".,;!?")
    place = filling.find(written)
    if written and place and filling.free(place):
        return written
    if not required:
        return MISSING
    pieces = _pieces(filling)
    if not pieces:
        return written
    scores = yield from score([(filling.lead(name), f'"{piece}"') for piece in pieces])
    worth = [s + WORD_WORTH * len(WORD.findall(piece)) for s, piece in zip(scores, pieces, strict=True)]
    best = pieces[worth.index(max(worth))]
    filling.notes.append(Note("copied", f"{name}: {written!r} is not in the request, {best!r} is"))
    return best


def _pieces(filling: Filling) -> Sequence[str]:
    """The pieces of the request that could be a string argument: quoted ones if there are any, else runs of words."""
    quoted = [found for found in QUOTED.finditer(filling.text) if filling.free(found.span())]
    if quoted:
        return [next(filter(None, found.groups())) for found in quoted]
    words = [found.span() for found in WORD.finditer(filling.text)]
    runs = [
        (words[i][0], words[j][1])
        for i in range(len(words))
        for j in range(i, min(len(words), i + LONGEST_SPAN))
        if re.search(r"[,.;:!?]\s", filling.text[words[i][0] : words[j][0]]) is None
    ]
    free = [span for span in runs if filling.free(span)] or runs
    return list(dict.fromkeys(filling.text[start:end] for start, end in free))


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
