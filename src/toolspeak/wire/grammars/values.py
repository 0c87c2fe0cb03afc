"""JSON values by their schema, in the syntax of JSON or of a dialect's own literals.

What the schema says of types, names, choices and numbers of items is held to; what a keyword says beyond that
(pattern, minimum, format, uniqueItems, ..) is not: a grammar may be looser than the schema, never stricter. The one
exception is order: properties come in that of the schema, then others, where the schema lets them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from ...schema.walk import resolve
from ..jsonscan import escaped, quoted
from ..syntax import Keywords
from .rules import EMPTY, Letters, Lit, Node, Repeat, Rules, Text, Token, alt, chars, none_of, opt, seq

Schema = Mapping[str, Any]
NUMBERED = 256
"""Larger bounds on the number of items are not held to: each item would be a rule."""
DEPTH = 64
"""Deeper in a schema than this, anything goes."""
DIGIT = chars("0-9")
WHOLE = seq(opt(Lit("-")), alt(Lit("0"), seq(chars("1-9"), Repeat(DIGIT))))
INTEGER = Token(WHOLE)
EXPONENT = seq(chars("e", "E"), opt(chars("+", "-")), Repeat(DIGIT, 1))
NUMBER = Token(seq(WHOLE, opt(seq(Lit("."), Repeat(DIGIT, 1))), opt(EXPONENT)))
HEX = chars("0-9", "a-f", "A-F")
TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")


@dataclass(frozen=True, slots=True)
class Style:
    """How values are written. `quotes` are (quote, its letters, any string in it); the first is for constants.

    `level` is how many times what stands here is escaped as the content of a JSON string; `key` are the quotes of a
    name, "" for a bare one; `before` may stand before whatever closes, `after` behind what opens or separates.
    """

    name: str
    quotes: tuple[tuple[str, Letters | None, Node], ...]
    constants: tuple[str, str, str] = ("true", "false", "null")
    level: int = 0
    key: str = '"'
    colon: str = ":"
    after: Node = EMPTY
    before: Node = EMPTY

    def constant(self, value: object) -> str:
        """A value that the schema itself gives, as text."""
        if value is True or value is False or value is None:
            return self.constants[(True, False, None).index(value)]
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, list):
            return "[" + ", ".join(map(self.constant, cast("list[object]", value))) + "]"
        if isinstance(value, Mapping):
            rows = cast("Mapping[str, object]", value).items()
            return "{" + ", ".join(f"{self.name_of(k)}{self.colon} {self.constant(v)}" for k, v in rows) + "}"
        return json.dumps(value)

    def _string(self, text: str) -> str:
        quote, letters, _ = self.quotes[0]
        if letters is None:
            return quote + text + quote
        text = quoted(text) if quote[-1] == '"' else "'" + escaped(text).replace('\\"', '"').replace("'", "\\'") + "'"
        return self.deep(text)

    def deep(self, text: str) -> str:
        """Text of this style as it stands in the JSON string around it."""
        for _ in range(self.level):
            text = escaped(text)
        return text

    def name_of(self, key: str) -> str:
        return self._string(key) if self.key else key


def _letters(quote: str, level: int) -> Letters:
    """What a string in this quote is made of, when it stands in `level` JSON strings."""
    slash = "\\"
    for _ in range(level):
        slash, quote = escaped(slash), escaped(quote)
    marks = alt(*(Lit(slash + c) for c in "/bfnrt"), Lit(slash * 2), Lit(slash + quote))
    escapes = Token(alt(marks, seq(Lit(slash + "u"), Repeat(HEX, 4, 4))))
    return Letters(tuple(dict.fromkeys(("\\", quote[-1], '"' if level else quote[-1], "\x00-\x1f"))), escapes)


def _quoted(quote: str, level: int = 0) -> tuple[str, Letters, Node]:
    letters = _letters(quote, level)
    for _ in range(level):
        quote = escaped(quote)
    return quote, letters, Token(seq(Lit(quote), Repeat(letters.one()), Lit(quote)))


BLANK = opt(Token(alt(Lit(" "), seq(Lit("\n"), Repeat(chars(" ", "\t"), 0, 64)))))
SPACE = opt(Lit(" "))
JSON = Style("json", (_quoted('"'),), after=BLANK, before=BLANK)
ENCODED = Style("encoded", (_quoted('"', 1),), level=1, key='\\"', after=SPACE, before=SPACE)


def literals(hole: Keywords) -> Style:
    """The style of the values among keywords."""
    quotes = [_quoted(q) if hole.escapes else (q, None, _verbatim(q)) for q in hole.quotes]
    return Style(repr(hole), tuple(quotes), hole.constants, key="" if hole.bare else hole.quotes[0], after=SPACE)


def _verbatim(quote: str) -> Node:
    return seq(Lit(quote), Text(((quote, EMPTY),)))


class Values:
    """Nodes for values of one schema `root`, in one style."""

    def __init__(self, rules: Rules, style: Style, root: Schema) -> None:
        self.rules = rules
        self.style = style
        self.root = root

    def of(self, schema: Any, depth: int = 0) -> Node:
        """A value that fits the schema."""
        if not isinstance(schema, Mapping) or depth > DEPTH:
            return self.any()
        s = cast("dict[str, Any]", dict(cast("Schema", schema)))
        if isinstance(ref := s.get("$ref"), str):
            there = resolve(self.root, ref)
            if not isinstance(there, Mapping):
                return self.any()
            key = (self.style.name, id(self.root), ref)
            return self.rules.ref(key, "ref", lambda: self.of(there, depth + 1))
        for key in ("anyOf", "oneOf"):
            if isinstance(options := s.pop(key, None), list) and options:
                return alt(*(self.of(merged(s, option), depth + 1) for option in cast("list[Any]", options)))
        if isinstance(parts := s.pop("allOf", None), list):
            for part in cast("list[Any]", parts):
                s = merged(s, followed(part, self.root))
            return self.of(s, depth + 1)
        if "const" in s:
            return Lit(self.style.constant(s["const"]))
        if isinstance(values := s.get("enum"), list) and values:
            return alt(*(Lit(self.style.constant(value)) for value in cast("list[Any]", values)))
        return self.typed(s, depth)

    def typed(self, s: Schema, depth: int) -> Node:
        kinds = types_of(s)
        if not kinds:
            return self.any()
        if "number" in kinds:
            kinds = [k for k in kinds if k != "integer"]
        return alt(*(self._kind(kind, s, depth) for kind in kinds))

    def _kind(self, kind: str, s: Schema, depth: int) -> Node:
        style = self.style
        true, false, null = style.constants
        if kind == "object":
            return self.object(s, depth)
        if kind == "array":
            return self.array(s, depth)
        if kind == "boolean":
            return alt(Lit(true), Lit(false))
        if kind == "string":
            return alt(*(node for _, _, node in style.quotes))
        return {"number": NUMBER, "integer": INTEGER, "null": Lit(null)}[kind]

    def any(self) -> Node:
        """Any value."""
        return self.rules.ref((self.style.name, "any"), "any", lambda: self.typed({"type": list(TYPES)}, 0))

    def array(self, s: Schema, depth: int) -> Node:
        first = s.get("prefixItems")
        rest: Any = s.get("items", {})
        if isinstance(first, list) and first:
            item = alt(*(self.of(part, depth + 1) for part in cast("list[Any]", first)), self.of(rest, depth + 1))
        else:
            item = self.of(rest, depth + 1)
        least, most = _bounds(s)
        if most == 0:
            return seq(Lit("["), self.style.after, Lit("]"))
        body = seq(item, Repeat(seq(self.comma(), item), max(0, least - 1), None if most is None else most - 1))
        body = seq(body, self.style.before)
        return seq(Lit("["), self.style.after, body if least else opt(body), Lit("]"))

    def comma(self) -> Node:
        return seq(Lit(","), self.style.after)

    def object(self, s: Schema, depth: int) -> Node:
        pairs, more = self.pairs(s, depth, self.style.name_of, self.style.colon)
        body = self.listed(pairs, more)
        return seq(Lit("{"), self.style.after, seq(body, self.style.before) if body != EMPTY else EMPTY, Lit("}"))

    def pairs(self, s: Schema, depth: int, name: Any, colon: str) -> tuple[list[tuple[Node, bool]], Node | None]:
        """Each property with its name, and whether it must be there; and any other property, where one may be."""
        fields, needed, rest = fields_of(s)
        pairs = [
            (seq(Lit(name(key) + colon), self.style.after, self.of(sub, depth + 1)), key in needed)
            for key, sub in fields.items()
        ]
        if rest is False:
            return pairs, None
        return pairs, seq(self.other_key(fields), Lit(colon), self.style.after, self.of(rest, depth + 1))

    def other_key(self, known: Mapping[str, Any]) -> Node:
        """A name that is none of the known ones."""
        if not self.style.key:
            return bare_name(known)
        quote, letters, _ = self.style.quotes[0]
        if letters is None:
            return seq(Lit(quote), Text(((quote, EMPTY),)))
        inner = [self.style.name_of(key)[len(quote) : -len(quote)] for key in known]
        return Token(seq(Lit(quote), none_of(inner, letters, Lit(quote))))

    def listed(self, pairs: list[tuple[Node, bool]], more: Node | None) -> Node:
        """Pairs with commas between them; those that need not be there may be left out."""
        comma = self.comma()
        first: Node = EMPTY  # nothing was written yet
        later: Node = EMPTY  # something was
        if more is not None:
            later = Repeat(seq(comma, more))
            first = opt(seq(more, later))
        for i, (pair, needed) in enumerate(reversed(pairs)):
            here, after = later, first
            if i and later != EMPTY:  # each tail is used twice, so it gets a name
                here = self.rules.ref(object(), "rest", lambda here=here: here)
            first = seq(pair, here) if needed else alt(seq(pair, here), after)
            later = seq(comma, pair, here) if needed else seq(opt(seq(comma, pair)), here)
        return first


def bare_name(known: Mapping[str, Any]) -> Node:
    """A name without quotes that is none of the known ones."""
    letters = Letters(("\x00-,", ".", "/", ":-@", "[-^", "`", "{-\x7f"))
    tree = none_of(known, letters, EMPTY)
    return Token(tree)


def _bounds(s: Schema) -> tuple[int, int | None]:
    least, most = s.get("minItems", 0), s.get("maxItems")
    least = min(least, NUMBERED) if isinstance(least, int) else 0
    return least, most if isinstance(most, int) and least <= most <= NUMBERED else None


def fields_of(s: Schema) -> tuple[dict[str, Any], set[str], Any]:
    """The properties of an object by name, those that must be there, and the schema of others, False for none."""
    properties: Any = s.get("properties")
    fields: dict[str, Any] = dict(cast("Schema", properties)) if isinstance(properties, Mapping) else {}
    required: Any = s.get("required")
    needed = {str(key) for key in cast("list[Any]", required)} if isinstance(required, list) else set[str]()
    for key in cast("list[Any]", required) if isinstance(required, list) else ():
        fields.setdefault(str(key), {})
    rest: Any = s.get("additionalProperties", s.get("unevaluatedProperties", {}))
    if s.get("patternProperties"):
        rest = {}
    return fields, needed, rest


def types_of(s: Schema) -> list[str]:
    """The JSON types that a schema without alternatives names or means, [] for all."""
    kind: Any = s.get("type")
    kinds = [str(k) for k in cast("list[Any]", kind if isinstance(kind, list) else [kind])]
    known = [k for k in kinds if k in TYPES]
    if not known and isinstance(s.get("properties"), Mapping):
        known = ["object"]
    if known and s.get("nullable") is True and "null" not in known:
        known.append("null")
    return known


def merged(base: Schema, part: Any) -> dict[str, Any]:
    """Both schemas in one: all properties, all that must be there; else the second says how it is."""
    if not isinstance(part, Mapping):
        return dict(base)
    more = cast("Schema", part)
    both = {**base, **more}
    for key in ("properties", "$defs"):
        if isinstance(base.get(key), Mapping) and isinstance(more.get(key), Mapping):
            both[key] = {**base[key], **more[key]}
    if isinstance(base.get("required"), list) and isinstance(more.get("required"), list):
        both["required"] = [*base["required"], *more["required"]]
    return both


def followed(schema: Any, root: Schema) -> Any:
    """What a schema's reference points to, or itself; {} where that is itself a reference without end."""
    for _ in range(20):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            return cast("Any", schema)
        schema = resolve(root, str(cast("Schema", schema)["$ref"]))
    return {}


def kinds(schema: Any, root: Schema, depth: int = 0) -> set[str]:
    """The JSON types of the values that fit a schema, through references and alternatives; empty for all of them."""
    s = followed(schema, root)
    if not isinstance(s, Mapping) or depth > 20:
        return set()
    s = cast("Schema", s)
    for key in ("anyOf", "oneOf"):
        if isinstance(options := s.get(key), list) and options:
            found = [kinds(option, root, depth + 1) for option in cast("list[Any]", options)]
            return set[str]().union(*found) if all(found) else set()
    if isinstance(parts := s.get("allOf"), list):
        for part in cast("list[Any]", parts):
            if found := kinds(part, root, depth + 1):
                return found
    if "const" in s or isinstance(s.get("enum"), list):
        values = [s["const"]] if "const" in s else cast("list[Any]", s["enum"])
        return {_type(value) for value in values}
    return set(types_of(s))


def _type(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((str, "string"), (int, "integer"), (float, "number"), (list, "array"), (Mapping, "object")):
        if isinstance(value, kind):
            return name
    return "null"


__all__ = ["ENCODED", "JSON", "Style", "Values", "fields_of", "followed", "kinds", "literals"]
