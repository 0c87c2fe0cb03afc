"""The grammar of nested elements: the keys of an object are elements, the values of an array are elements of one name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from ...schema.kinds import Kinds, Shapes
from ...types import Schema
from ..dialect import Tree
from ..grammars.arguments import narrowed, part_of, simple, verbatim
from ..grammars.rules import (
    EMPTY as NOTHING,
    JsonNode,
    Letters,
    Lit,
    Node,
    Repeat,
    Rules,
    Text,
    Token,
    alt,
    none_of,
    seq,
)
from ..grammars.value_grammar import fields_of, followed


class TreeGrammar:
    """The grammar of nested elements."""

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
        """An element with another name. Its closer's name is not required to be the same."""
        mark, letters, types = self.hole.mark, Letters((">", "/", "\x00-\x1f")), self.shapes.kinds(rest)
        head = Token(seq(Lit(f"{mark}<"), none_of(known, letters, Lit(">"))))
        name = Token(seq(Repeat(letters.one(), 1), Lit(">")))
        if "string" in types:
            return seq(head, Text(((f"{mark}</", NOTHING),)), name)
        return seq(head, alt(*self._inside(rest, types)), Lit(f"{mark}</"), name)

    def element(self, key: str, sub: Any) -> Node:
        """An element with its content."""
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
            return seq(head, verbatim(sub, self.root, close, self.rules))
        return alt(*(seq(head, node, Lit(close)) for node in self._inside(sub, types)))

    def _inside(self, sub: Any, types: Kinds) -> list[Node]:
        nodes: list[Node] = []
        if scalars := sorted(simple(types) & {"boolean", "integer", "number"}):
            nodes.append(alt(*(JsonNode(part_of(sub, self.root, kind)) for kind in scalars)))
        if "object" in types:
            nodes.append(self.fields(narrowed(sub, self.root, "object")))
        if "array" in types:
            nodes.append(Repeat(self.element(self.hole.item, narrowed(sub, self.root, "array").get("items", {}))))
        if "null" in types:
            nodes.append(NOTHING)
        return nodes
