"""The grammar of arguments between tags, in schema order. No text value may contain the opener of a later argument."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from ...schema.kinds import Kinds, Shapes
from ...types import Schema
from ..dialect import Tagged, Typed
from ..grammars.arguments import part_of, simple, verbatim
from ..grammars.rules import (
    EMPTY,
    JsonNode,
    Letters,
    Lit,
    Node,
    Pattern,
    Repeat,
    Rules,
    Token,
    alt,
    none_of,
    seq,
)
from ..grammars.value_grammar import fields_of


class TagGrammar:
    """The nodes of one hole and one schema."""

    def __init__(self, hole: Tagged, schema: Schema, rules: Rules) -> None:
        self.hole = hole
        self.root = schema
        self.rules = rules
        self.shapes = Shapes(schema)

    def all(self) -> Node:
        known, needed, rest = fields_of(self.root, self.root)
        rows: list[Node] = []
        before: set[str] = set()
        for key, sub in known.items():
            before |= {key} & needed
            rows.append(
                self.one(Lit(self.hole.open + key), sub, key in needed, self.openers(known.keys() - before - {key}))
            )
        if rest is not False:
            mid = self.hole.typed.before if self.hole.typed else self.hole.mid
            letters = Letters(tuple({mid[0], "\x00-\x1f"}))
            # Without the mark after it, a lexer would read the name and the mark as one word.
            head = seq(Lit(self.hole.open), none_of(known, letters, EMPTY))
            rows.append(Repeat(self.one(head, rest, True, self.openers(known.keys() - needed))))
        return seq(*rows)

    def openers(self, keys: Set[str]) -> tuple[Pattern, ...]:
        """The openers of these keys: a value with one of them may have swallowed that parameter."""
        mid = (self.hole.typed.before if self.hole.typed else self.hole.mid).strip()
        return ((*self.hole.open.strip(), tuple(sorted(keys)), "", *mid[:1]),) if keys else ()

    def one(self, head: Node, sub: Any, needed: bool, barred: tuple[Pattern, ...]) -> Node:
        """An argument; a text value must not contain what is barred."""
        hole, types = self.hole, self.shapes.kinds(sub)
        text = verbatim(sub, self.root, hole.close, self.rules, hole.quote, barred)
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
    """A head and the literal after it as one word."""
    both = seq(head, Lit(more))
    return both if isinstance(both, Lit) else Token(both)
