"""Grammars of JSON values by their schema, in the syntax of JSON or of a dialect's literals.

Types, names, enumerated values and numbers of items are enforced. Further keywords (pattern, minimum, format,
uniqueItems, ..) are not: a grammar may allow more than the schema, never less. The one exception is order: properties
come in that of the schema, then others, if the schema allows them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from ...schema.text_grammars import KEYWORD
from ...schema.walk import nodes, resolve
from ...types import Schema
from ..dialect import Keywords
from ..literal_writer import literal_key, literal_text
from ..reading.json_tokens import escaped, quoted
from .lark_source import Spell, regex_node, text_node
from .regexes import Ranges, chars_of, complement, ranges_of, union, without
from .rules import EMPTY, Letters, Lit, Node, Repeat, Rules, Text, Token, alt, chars, none_of, opt, seq

NUMBERED = 256
"""Larger bounds on the number of items are not enforced: each item would be a rule."""
DEPTH = 64
"""Below this depth of a schema, any value is allowed."""
DIGIT = chars("0-9")
WHOLE = seq(opt(Lit("-")), alt(Lit("0"), seq(chars("1-9"), Repeat(DIGIT))))
INTEGER = Token(WHOLE)
EXPONENT = seq(chars("e", "E"), opt(chars("+", "-")), Repeat(DIGIT, 1))
NUMBER = Token(seq(WHOLE, opt(seq(Lit("."), Repeat(DIGIT, 1))), opt(EXPONENT)))
HEX = chars("0-9", "a-f", "A-F")
SHORT = "\n\r\t\b\f"
"""Control characters with a one-letter escape."""
CODES_OF_SHORT = tuple((ord(c), ord(c)) for c in SHORT)
TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")


@dataclass(frozen=True, slots=True)
class Style:
    """How values are written: any string, any unknown name, a value from the schema, a name.

    `quotes` are (quote, letters of a string in it; None: any). `before` may precede a closing token, `after` may
    follow an opening or separating one.
    """

    name: str
    quotes: tuple[tuple[str, Letters | None], ...]
    constant: Callable[[object], str]
    key: Callable[[str], str]
    bare: bool = False
    sorted: bool = False
    after: Node = EMPTY
    before: Node = EMPTY

    def string(self) -> Node:
        """Any string."""
        return alt(*(_string(quote, letters) for quote, letters in self.quotes))

    def spell(self, letters: Letters | None, ranges: Ranges) -> Node:
        """One character of a set, as it is written in a string with these letters."""
        if letters is None:
            return chars_of(ranges)
        special = ranges_of(chars(*letters.special))
        plain, escaped = without(ranges, special), without(ranges, complement(union(special, CODES_OF_SHORT)))
        points = [chr(c) for low, high in escaped for c in range(low, high + 1)]
        known = [Lit(self._escaped(c)) for c in points if c >= " " or c in SHORT]
        codes = [seq(Lit(self._escaped("\x01")[:-2]), chars("0", "1"), HEX)] if len(points) > len(known) else []
        return alt(*([chars_of(plain)] if plain else []), *known, *codes)

    def _escaped(self, c: str) -> str:
        """A character that must be escaped in a string."""
        text = self.constant(c)
        quote = next(quote for quote, _ in self.quotes if text.startswith(quote))
        inner = text[len(quote) : -len(quote)]
        return f"\\{c}" if inner == c else inner

    def other(self, known: Iterable[str]) -> Node:
        """A name that is none of the known ones."""
        if self.bare:
            return bare_name(known)
        quote, letters = self.quotes[0]
        if letters is None:
            return _string(quote, letters)
        inner = [key[len(quote) : -len(quote)] for key in map(self.key, known)]
        return Token(seq(Lit(quote), none_of(inner, letters, Lit(quote))))


def _string(quote: str, letters: Letters | None) -> Node:
    if letters is None:
        return seq(Lit(quote), Text(((quote, EMPTY),)))
    return Token(seq(Lit(quote), Repeat(letters.one()), Lit(quote)))


def bare_name(known: Iterable[str]) -> Node:
    """An unquoted name that is none of the known ones."""
    return Token(none_of(known, Letters(("\x00-,", "/", ":-@", "[-^", "`", "{-\x7f")), EMPTY))


def _escapes(slash: str, quote: str) -> Node:
    """An escape, with a backslash written as `slash` and a quote as `quote`."""
    known = alt(*(Lit(slash + c) for c in "bfnrt/"), Lit(slash * 2), Lit(slash + quote))
    return Token(alt(known, seq(Lit(slash + "u"), Repeat(HEX, 4, 4))))


BLANK = opt(Token(alt(Lit(" "), seq(Lit("\n"), Repeat(Lit(" "), 0, 64)))))
WHITE_SPACE = r" |\n {0,64}"
"""The same as a regular expression: a space, or a line break and its indentation, which is limited to keep it finite.
"""
SPACE = opt(Lit(" "))
CONTROL = "\x00-\x1f"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _encoded(value: object) -> str:
    return escaped(_json(value))


JSON = Style(
    "json", (('"', Letters(('"', "\\", CONTROL), _escapes("\\", '"'))),), _json, quoted, after=BLANK, before=BLANK
)
ENCODED = Style(
    "encoded", (('\\"', Letters(('"', "\\", CONTROL), _escapes("\\\\", '\\"'))),), _encoded, _encoded,
    after=SPACE, before=SPACE,
)  # fmt: skip
"""JSON inside a JSON string."""


def literals(hole: Keywords) -> Style:
    """The style of values in keyword arguments."""
    quotes = tuple((q, _letters(q) if hole.escapes else None) for q in hole.quotes)
    write = partial(literal_text, hole)
    return Style(repr(hole), quotes, write, lambda key: literal_key(hole, key), hole.bare, hole.bare, after=SPACE)


def _letters(quote: str) -> Letters:
    """The letters of a string in a programming language; a control character may be verbatim or escaped."""
    python = seq(Lit("\\"), alt(chars("a", "b", "f", "n", "r", "t", "v", "0", "/", "'", '"', "\\"), _CODES))
    return Letters((quote, "\\", "\n"), Token(python))


_CODES = alt(*(seq(Lit(c), Repeat(HEX, n, n)) for c, n in (("x", 2), ("u", 4), ("U", 8))))


def fitting_text(schema: Schema, spell: Spell, rules: Rules, key: str) -> Node | None:
    """A text that matches the grammar in its schema, or its pattern if that covers the whole text; None if neither can
    be expressed."""
    grammar, pattern = schema.get(KEYWORD), schema.get("pattern")
    if isinstance(grammar, str):
        return text_node(grammar, spell, rules, key)
    if isinstance(pattern, str) and pattern.startswith("^(") and pattern.endswith(")$"):
        return regex_node(pattern[1:-1], spell, rules)
    return None


def has_form(schema: Any) -> bool:
    """Whether a string in a schema has a grammar, which only rules can express."""
    return any(KEYWORD in node for _, node in nodes(schema))


def has_format_beyond(schema: Any) -> bool:
    """Whether a string in a schema has a format that rules cannot express: a grammar, or a pattern for the whole text."""
    formats = [node for _, node in nodes(schema) if _has_format(node)]
    return any(fitting_text(node, chars_of, Rules(), "any") is None for node in formats)


def _has_format(node: Schema) -> bool:
    pattern = str(node.get("pattern"))
    return KEYWORD in node or pattern[:2] + pattern[-2:] == "^()$"


class Values:
    """Nodes for values of the schema `root`, in one style."""

    def __init__(self, rules: Rules, style: Style, root: Schema) -> None:
        self.rules = rules
        self.style = style
        self.root = root

    def of(self, schema: Any, depth: int = 0) -> Node:
        """A value that matches the schema."""
        if not isinstance(schema, Mapping) or depth > DEPTH:
            return self.any()
        style, s = self.style, dict(cast("Schema", schema))
        if isinstance(ref := s.get("$ref"), str):
            there = resolve(self.root, ref)
            if not isinstance(there, Mapping):
                return self.any()
            key = (style.name, id(self.root), ref)
            return self.rules.ref(key, "ref", lambda: self.of(there, depth + 1))
        for key in ("anyOf", "oneOf"):
            if isinstance(options := s.pop(key, None), list) and options:
                return alt(*(self.of(merged(s, option), depth + 1) for option in cast("list[Any]", options)))
        if isinstance(parts := s.pop("allOf", None), list):
            for part in cast("list[Any]", parts):
                s = merged(s, followed(part, self.root))
            return self.of(s, depth + 1)
        if "const" in s:
            return Lit(style.constant(s["const"]))
        if isinstance(values := s.get("enum"), list) and values:
            return alt(*(Lit(style.constant(value)) for value in cast("list[Any]", values)))
        return self.typed(s, depth)

    def typed(self, s: Schema, depth: int) -> Node:
        kinds = types_of(s)
        if not kinds:
            return self.any()
        if "number" in kinds:
            kinds = [k for k in kinds if k != "integer"]
        return alt(*(self._kind(kind, s, depth) for kind in kinds))

    def _kind(self, kind: str, s: Schema, depth: int) -> Node:
        if kind == "object":
            return self.object(s, depth)
        if kind == "array":
            return self.array(s, depth)
        if kind == "boolean":
            return alt(*(Lit(self.style.constant(value)) for value in (True, False)))
        if kind == "string":
            return self._fitting(s) or self.style.string()
        return {"number": NUMBER, "integer": INTEGER}.get(kind) or Lit(self.style.constant(None))

    def _fitting(self, s: Schema) -> Node | None:
        """A string that matches the grammar in its schema; None if it cannot be expressed."""
        style = self.style
        nodes: list[Node] = []
        for quote, letters in style.quotes:
            text = fitting_text(s, partial(style.spell, letters), self.rules, style.name + quote)
            if text is None:
                return None
            nodes.append(seq(Lit(quote), text, Lit(quote)))
        return alt(*nodes)

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
        return seq(self.style.before, Lit(","), self.style.after)

    def object(self, s: Schema, depth: int) -> Node:
        style = self.style
        colon = seq(style.before, Lit(":"), style.after)
        pairs, more = self.pairs(s, depth, style.key, colon)
        if more is not None:
            more = seq(style.other(fields_of(s, self.root)[0]), colon, more)
        body = self.listed(pairs, more)
        inner = EMPTY if body == EMPTY else seq(style.after, body, style.before)
        return seq(Lit("{"), inner, Lit("}"))

    def pairs(
        self, s: Schema, depth: int, name: Callable[[str], str], colon: Node
    ) -> tuple[list[tuple[Node, bool]], Node | None]:
        """Each property with its name, and whether it is required; and the value of further properties, None if none
        are allowed."""
        fields, needed, rest = fields_of(s, self.root)
        rows = sorted(fields.items(), key=lambda row: row[0].lower()) if self.style.sorted else fields.items()
        pairs = [(seq(Lit(name(key)), colon, self.of(sub, depth + 1)), key in needed) for key, sub in rows]
        return pairs, None if rest is False else self.of(rest, depth + 1)

    def listed(self, pairs: list[tuple[Node, bool]], more: Node | None) -> Node:
        """Pairs separated by commas; optional ones may be omitted."""
        comma = self.comma()
        first: Node = EMPTY  # after nothing was written
        later: Node = EMPTY  # after something was written
        if more is not None:
            later = Repeat(seq(comma, more))
            first = opt(seq(more, later))
        for pair, needed in reversed(pairs):
            here, after = later, first
            if here != EMPTY:  # each tail is used twice, so it becomes a rule
                here = self.rules.ref(object(), "rest", lambda here=here: here)
            first = seq(pair, here) if needed else alt(seq(pair, here), after)
            later = seq(comma, pair, here) if needed else seq(opt(seq(comma, pair)), here)
            if more is not None and self.style.sorted:  # further names are sorted in between
                between = seq(Repeat(seq(comma, more)), later)
                later = self.rules.ref(object(), "rest", lambda between=between: between)
                first = alt(first, seq(more, later))
        return first


def _bounds(s: Schema) -> tuple[int, int | None]:
    least, most = s.get("minItems", 0), s.get("maxItems")
    least = min(least, NUMBERED) if isinstance(least, int) else 0
    return least, most if isinstance(most, int) and least <= most <= NUMBERED else None


def fields_of(schema: Schema, root: Schema) -> tuple[dict[str, Any], set[str], Any]:
    """The properties of an object by name, the required ones, and the schema of further ones (False for none).

    If the schema has alternatives, the properties of all of them are allowed, and those that each one requires are
    required.
    """
    s = together(schema, root)
    properties, required = s.get("properties"), s.get("required")
    fields: dict[str, Any] = dict(cast("Schema", properties)) if isinstance(properties, Mapping) else {}
    needed = {key for key in cast("list[Any]", required or ()) if isinstance(key, str)}
    rest: Any = s.get("additionalProperties", s.get("unevaluatedProperties", {}))
    if s.get("patternProperties"):
        rest = {}
    for key in sorted(needed - fields.keys()):
        fields[key] = rest or {}
    return fields, needed, rest


def together(schema: Any, root: Schema, depth: int = 0) -> dict[str, Any]:
    """An object's schema with references resolved and alternatives merged."""
    s = dict(cast("Schema", schema)) if isinstance(schema, Mapping) and depth < 20 else {}
    parts = [*s.pop("allOf", ())]
    if isinstance(s.get("$ref"), str):
        parts.append(resolve(root, s.pop("$ref")))
    for part in parts:
        s = merged(together(part, root, depth + 1), s)
    options = [together(part, root, depth + 1) for key in ("anyOf", "oneOf") for part in s.pop(key, ())]
    if objects := [option for option in options if "object" in (types_of(option) or ["object"])]:
        s = merged(_either(objects), s)
    return s


def _either(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """One schema for any of several objects: it requires what all of them require."""
    one: dict[str, Any] = {}
    for option in objects:
        one = merged(one, option)
    one["required"] = [k for k in one.get("required", ()) if all(k in o.get("required", ()) for o in objects)]
    if any(option.get("additionalProperties", True) is not False for option in objects):
        one.pop("additionalProperties", None)
    return one


def types_of(s: Schema) -> list[str]:
    """The JSON types that a schema without alternatives names or implies; [] for all."""
    kind: Any = s.get("type")
    kinds = [str(k) for k in cast("list[Any]", kind if isinstance(kind, list) else [kind])]
    known = [k for k in kinds if k in TYPES]
    if not known and isinstance(s.get("properties"), Mapping):
        known = ["object"]
    if known and s.get("nullable") is True and "null" not in known:
        known.append("null")
    return known


def merged(base: Schema, part: Any) -> dict[str, Any]:
    """Two schemas combined: all properties, all required names; otherwise the second one wins."""
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
    """The schema with its reference resolved; {} if the reference is circular."""
    for _ in range(20):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            return cast("Any", schema)
        schema = resolve(root, str(cast("Schema", schema)["$ref"]))
    return {}
