"""Arguments one by one, each between tags: open key mid value close, some with their type written beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from typing import Any

from ...schema.kinds import Kinds, Shapes
from ..dialect import Tagged, Typed
from ..grammars.arguments import an_object, part_of, simple, verbatim
from ..grammars.rules import (
    EMPTY,
    Json as JsonNode,
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
from ..grammars.values import Schema, fields_of
from ..reading.source import Scan, at
from ..reading.state import State
from . import json_args
from .hole import ArgumentsHole, Tail, arguments_of
from .tag_reader import TagReader, tag_words
from .unclosed import closed


def read(s: State, hole: Tagged, schema: Mapping[str, Any], follow: tuple[str, ...]) -> Scan[set[str] | None]:
    """Pass the arguments on as the text of one JSON object, {} where there are none; the keys that were there, None
    where no more of them could come."""
    words = tag_words(hole, follow)
    if (yield from at(s, words.opener, "{", eat=False)) == "{":
        s.note("json-body")
        yield from json_args.read(s, s.args, s.note)
        return None
    reader = TagReader(s, hole, words, schema)
    s.args("{")
    while True:
        if (yield from at(s, words.opener, eat=False)):
            yield from reader.parameter()
        elif other := (yield from reader.other()):
            yield from reader.respelled(other)
        else:
            break
    if lost := reader.unsure - reader.given:
        s.note("trailing-text", words.opener + min(lost))  # these may be parameters, and not a part of a value
    s.args("}")
    yield from reader.ended()
    return reader.given


def write(hole: Tagged, arguments: Mapping[str, Any]) -> str:
    """The arguments as the dialect writes them: strings as they are, all else as JSON."""
    return "".join(
        f"{hole.open}{key}{_type(hole, given)}{hole.mid}{_text(hole, given)}{hole.close}"
        for key, given in arguments.items()
    )


def _text(hole: Tagged, given: object) -> str:
    if not isinstance(given, str):
        return json.dumps(given, ensure_ascii=False)
    if hole.quote and any(c in given for c in "<&\n"):
        return given.join(hole.quote)
    return given


def _type(hole: Tagged, given: object) -> str:
    if hole.typed is None:
        return ""
    if isinstance(given, str):
        return hole.typed.before + hole.typed.string
    return hole.typed.before + (hole.typed.other or json_type(given))


def json_type(given: object) -> str:
    """The JSON type of a value that is no string."""
    if given is None or isinstance(given, bool):
        return "null" if given is None else "boolean"
    if isinstance(given, (int, float)):
        return "number"
    return "object" if isinstance(given, Mapping) else "array"


def grammar(hole: Tagged, schema: Schema, rules: Rules) -> Node:
    """The arguments of a tool with these parameters, one by one between tags."""
    return _Grammar(hole, an_object(schema), rules).all()


class _Grammar:
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
            # Without the mark behind it the name would be read as one word with that.
            head = seq(Lit(self.hole.open), none_of(known, letters, EMPTY))
            rows.append(Repeat(self.one(head, rest, True, self.openers(known.keys() - needed))))
        return seq(*rows)

    def openers(self, keys: Set[str]) -> tuple[Pattern, ...]:
        """What opens one of these: a value that holds it may have swallowed that parameter."""
        mid = (self.hole.typed.before if self.hole.typed else self.hole.mid).strip()
        return ((*self.hole.open.strip(), tuple(sorted(keys)), "", *mid[:1]),) if keys else ()

    def one(self, head: Node, sub: Any, needed: bool, barred: tuple[Pattern, ...]) -> Node:
        """An argument; a text in it may hold nothing that is barred."""
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
    """A head and the literal behind it as one word."""
    both = seq(head, Lit(more))
    return both if isinstance(both, Lit) else Token(both)


def _read_arguments(s: State, hole: Tagged, schema: Schema, tail: Tail) -> Scan[None]:
    keys = yield from read(s, hole, schema, tail.follow)
    yield from closed(s, hole.open.strip(), schema, keys, tail.words)


def _name_ends(_hole: Tagged, ends: tuple[str, ...]) -> tuple[str, ...]:
    """Any tag, or an object, ends a name before parameters in tags."""
    return (*ends, "<", "{") if ends[0][0] == "<" else ends


HOLE = ArgumentsHole(
    Tagged,
    _read_arguments,
    lambda hole, call: write(hole, arguments_of(call)),
    grammar,
    openers=lambda hole: (hole.open.strip(),),
    optional=True,
    name_ends=_name_ends,
)
