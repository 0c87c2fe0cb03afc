"""The arguments of a tool as each hole writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, cast

from ...schema.judge import closed
from ...schema.kinds import Kinds, Shapes
from ...schema.walk import nodes, rebuild
from ..codecs.keywords import PLAIN_NAME, ordered
from ..syntax import Arguments, Json, Keywords, Raw, Tagged, Tree, Typed
from .rules import EMPTY, Letters, Lit, Node, Pattern, Repeat, Rules, Text, Token, alt, none_of, seq, text_until
from .rules import Json as JsonNode
from .values import Schema, Values, bare_name, fields_of, followed, literal_key, literals

SCALARS = ("boolean", "integer", "null", "number")
OBJECT: Kinds = frozenset(["object"])


def arguments(hole: Arguments, schema: Schema, rules: Rules) -> Node:
    """The arguments of a tool with these parameters, as the hole writes them."""
    if isinstance(hole, Json):
        return JsonNode(an_object(schema))
    if isinstance(hole, Tagged):
        return _Tags(hole, an_object(schema)).all()
    if isinstance(hole, Tree):
        return _Elements(hole, schema, rules).fields(an_object(schema))
    if isinstance(hole, Raw):
        return Text(end=True)
    return _keywords(hole, an_object(schema), rules)


def an_object(schema: Schema) -> Schema:
    """The schema of arguments as it is judged, which are an object whether it says so or not."""
    return {**closed(schema), "type": "object"}


def part_of(sub: Any, root: Schema, kind: str = "") -> Schema:
    """A schema inside another as one that stands for itself; with `kind` only that type of it."""
    found: Schema = dict(cast("Schema", sub)) if isinstance(sub, Mapping) else {}
    if kind:
        found = {"type": kind} if "type" not in found and kind in SCALARS else _narrowed(found, root, kind)
    if not any("$ref" in node for _, node in nodes(found)):
        return found
    return {**moved(found, "#/$defs/root"), "$defs": {"root": moved(root, "#/$defs/root")}}


def _narrowed(schema: Schema, root: Schema, kind: str) -> Schema:
    """Of the values that fit a schema those of one type, as far as that can be said simply."""
    s = dict(cast("Schema", followed(schema, root)))
    for key in ("anyOf", "oneOf"):
        if isinstance(options := s.pop(key, None), list):
            fit = [option for option in cast("list[Any]", options) if kind in Shapes(root).kinds(option)]
            return {"anyOf": [_narrowed(cast("Schema", option), root, kind) for option in fit]}
    return s if "enum" in s or "const" in s else {**s, "type": kind}


def moved(schema: Schema, to: str) -> Schema:
    """The schema when it stands at `to`: its references point there."""

    def change(node: dict[str, Any], _: str) -> Any:
        ref = node.get("$ref")
        if isinstance(ref, str) and ref.startswith("#"):
            node["$ref"] = to + ref[1:]
        return node

    return cast("Schema", rebuild(schema, change))


def verbatim(
    schema: Any, root: Schema, close: str, quote: tuple[str, str] | None = None, barred: tuple[Pattern, ...] = ()
) -> Node:
    """A string as it is, and what closes it: one of the schema's own, or any text up to the closer."""
    s = followed(schema, root)
    values = cast("Schema", s).get("enum") if isinstance(s, Mapping) else None
    if isinstance(values, list) and values and all(isinstance(v, str) for v in cast("list[object]", values)):
        return alt(*(Lit(v + close) for v in cast("list[str]", values)))
    if quote is None:
        return text_until(close, barred)
    inner = seq(Lit(quote[0]), text_until(quote[1] + close))
    return alt(text_until(close, barred, (tuple(quote[0]),)), inner)


def simple(types: Kinds) -> Kinds:
    """The types, of which no one is among another."""
    return types - {"integer"} if "number" in types else types


class _Tags:
    """Arguments one by one between tags."""

    def __init__(self, hole: Tagged, schema: Schema) -> None:
        self.hole = hole
        self.root = schema
        self.shapes = Shapes(schema)

    def all(self) -> Node:
        known, needed, rest = fields_of(self.root, self.root)
        rows: list[Node] = []
        before: set[str] = set()
        for key, sub in known.items():
            before |= {key} & needed
            rows.append(
                self.one(Lit(self.hole.open + key), sub, key in needed, self.lines(known.keys() - before - {key}))
            )
        if rest is not False:
            mid = self.hole.typed.before if self.hole.typed else self.hole.mid
            letters = Letters(tuple({mid[0], "\x00-\x1f"}))
            # Without the mark behind it the name would be read as one word with that.
            head = seq(Lit(self.hole.open), none_of(known, letters, EMPTY))
            rows.append(Repeat(self.one(head, rest, True, self.lines(known.keys() - needed))))
        return seq(*rows)

    def lines(self, keys: Set[str]) -> tuple[Pattern, ...]:
        """The lines that open one of these: they end a value, closed or not."""
        mid = (self.hole.typed.before if self.hole.typed else self.hole.mid).strip()
        return (("\n", "", *self.hole.open.strip(), tuple(sorted(keys)), "", *mid[:1]),) if keys else ()

    def one(self, head: Node, sub: Any, needed: bool, barred: tuple[Pattern, ...]) -> Node:
        """An argument; a text in it may hold nothing that is barred."""
        hole, types = self.hole, self.shapes.kinds(sub)
        text = verbatim(sub, self.root, hole.close, hole.quote, barred)
        if hole.typed is None:
            mark = _word(head, hole.mid)
            node = seq(mark, text if "string" in types else seq(JsonNode(part_of(sub, self.root)), Lit(hole.close)))
        else:
            node = alt(*self._typed(head, sub, hole.typed, types, text))
        return node if needed else Repeat(node, 0, 1)

    def _typed(self, head: Node, sub: Any, typed: Typed, types: Kinds, text: Node) -> list[Node]:
        words: dict[str, list[str]] = {}
        for kind in sorted(simple(types) - {"string"}):
            words.setdefault(typed.other or {"integer": "number"}.get(kind, kind), []).append(kind)
        nodes = [
            seq(
                _word(head, f"{typed.before}{word}{self.hole.mid}"),
                alt(*(JsonNode(part_of(sub, self.root, kind)) for kind in same)),
                Lit(self.hole.close),
            )
            for word, same in words.items()
        ]
        if "string" in types:
            nodes.append(seq(_word(head, f"{typed.before}{typed.string}{self.hole.mid}"), text))
        return nodes


def _word(head: Node, more: str) -> Node:
    """A head and the literal behind it as one word."""
    both = seq(head, Lit(more))
    return both if isinstance(both, Lit) else Token(both)


class _Elements:
    """Arguments as nested elements."""

    def __init__(self, hole: Tree, root: Schema, rules: Rules) -> None:
        self.hole = hole
        self.root = root
        self.shapes = Shapes(root)
        self.rules = rules

    def fields(self, schema: Schema) -> Node:
        known, needed, rest = fields_of(schema, self.root)
        rows: list[Node] = []
        for key, sub in known.items():
            node = self.element(key, sub)
            rows.append(node if key in needed else Repeat(node, 0, 1))
        if rest is not False:
            rows.append(Repeat(self.other(known, rest)))
        return seq(*rows)

    def other(self, known: Mapping[str, Any], rest: Any) -> Node:
        """An element of another name. Its closer's name is not held to be the same."""
        mark, letters, types = self.hole.mark, Letters((">", "/", "\x00-\x1f")), self.shapes.kinds(rest)
        head = Token(seq(Lit(f"{mark}<"), none_of(known, letters, Lit(">"))))
        name = Token(seq(Repeat(letters.one(), 1), Lit(">")))
        if "string" in types:
            return seq(head, Text(((f"{mark}</", EMPTY),)), name)
        return seq(head, alt(*self._inside(rest, types)), Lit(f"{mark}</"), name)

    def element(self, key: str, sub: Any) -> Node:
        """An element and what it holds."""
        if isinstance(sub, Mapping) and isinstance(ref := cast("Schema", sub).get("$ref"), str):
            node = followed(sub, self.root)
            make: Callable[[], Node] = lambda: self._element(key, node)  # noqa: E731
            return self.rules.ref((repr(self.hole), id(self.root), key, ref), "element", make)
        return self._element(key, sub)

    def _element(self, key: str, sub: Any) -> Node:
        mark = self.hole.mark
        head, close = Lit(f"{mark}<{key}>"), f"{mark}</{key}>"
        types = self.shapes.kinds(sub)
        if "string" in types:
            return seq(head, verbatim(sub, self.root, close))
        return alt(*(seq(head, node, Lit(close)) for node in self._inside(sub, types)))

    def _inside(self, sub: Any, types: Kinds) -> list[Node]:
        found: list[Node] = []
        if scalars := sorted(simple(types) & {"boolean", "integer", "number"}):
            found.append(alt(*(JsonNode(part_of(sub, self.root, kind)) for kind in scalars)))
        if "object" in types:
            found.append(self.fields(_narrowed(sub, self.root, "object")))
        if "array" in types:
            found.append(Repeat(self.element(self.hole.item, _narrowed(sub, self.root, "array").get("items", {}))))
        if "null" in types:
            found.append(EMPTY)
        return found


def _keywords(hole: Keywords, schema: Schema, rules: Rules) -> Node:
    """The arguments from behind what opens them, which tells a call from other text."""
    values = Values(rules, literals(hole), schema)
    shapes = Shapes(schema)
    known, needed, rest = fields_of(schema, schema)
    pairs: list[tuple[Node, bool]] = []
    for key, sub in ordered(hole, known):
        wrapped = not hole.bare and not PLAIN_NAME(key)
        json = hole.json and shapes.kinds(sub) == OBJECT
        value = JsonNode(part_of(sub, schema)) if json else values.of(sub)
        name = "**{" + literal_key(hole, key) + ": " if wrapped else literal_key(hole, key) if hole.bare else key
        pairs.append((seq(Lit(name + hole.assign * (not wrapped)), value, Lit("}" * wrapped)), key in needed))
    more = None if rest is False else seq(bare_name(known), Lit(hole.assign), values.of(rest))
    return seq(values.listed(pairs, more), Lit(hole.close))
