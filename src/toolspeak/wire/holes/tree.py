"""Reads and writes arguments as nested elements, each tag behind a mark: `MARK<key>valueMARK</key>`.

Only the schema decides their types.

The keys of an object are elements; the values of an array are elements of one name. If the schema says nothing, an
element with inner elements is an array if the first of them has that name, otherwise an object. Whitespace between
elements is free; strings are verbatim. There is no recursion: open elements are on a stack.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from ...schema.kinds import ANY, STRING, Kinds, Shapes
from ...types import Schema
from ..dialect import Tree
from ..reading.json_tokens import quoted
from ..reading.lookahead import ahead, token_ahead
from ..reading.source import SPACE, Malformed, Scan, at, peek
from ..reading.state import State
from . import json_args
from .damaged_tags import lost_closer
from .hole import ArgumentsHole, Tail, arguments_of
from .inner_calls import InnerCalls
from .typed import text_until, value
from .unclosed import closed
from .untyped import UntypedValues

if TYPE_CHECKING:
    from ..grammars.rules import Node, Rules

TAG_END = (">",)
EMPTY = {"null": "null", "string": "", "array": "[]", "object": "{}"}
"""The value of an element without content, by the first of these types that is allowed."""


class _OpenElement:
    """An open element: an object with the `keys` so far, or an array with so many elements."""

    __slots__ = ("array", "count", "keys", "schema", "tag")

    def __init__(self, tag: str, schema: object, array: bool = False) -> None:
        self.tag, self.schema, self.array = tag, schema, array
        self.count = 0
        self.keys: set[str] = set()


def read(
    s: State, hole: Tree, schema: Mapping[str, Any], follow: tuple[str, ...], call: tuple[str, ...] = ()
) -> Scan[set[str] | None]:
    """Passes the arguments on as the text of one JSON object, {} without arguments. Returns the keys that were read;
    None if no further argument could have come. `call` are the words before the name of a call."""
    if (yield from json_args.read_body(s, schema, hole.mark + "<")):
        return None
    reader = _TreeReader(s, hole, schema, tuple(word for word in follow if word), call)
    with reader.untyped:
        yield from reader.read()
    return reader.stack[0].keys


class _TreeReader:
    """Reads the elements of one call. `tags` counts the open elements by name."""

    __slots__ = (
        "call",
        "follow",
        "hole",
        "inner_calls",
        "leaf",
        "opens",
        "s",
        "shapes",
        "shuts",
        "stack",
        "tags",
        "unclosed",
        "untyped",
    )

    def __init__(
        self, s: State, hole: Tree, schema: Mapping[str, Any], follow: tuple[str, ...], call: tuple[str, ...]
    ) -> None:
        self.s, self.hole, self.follow, self.call = s, hole, follow, call
        self.inner_calls = InnerCalls(s, call, follow[:1])
        self.opens, self.shuts = hole.mark + "<", hole.mark + "</"
        self.shapes = Shapes(schema)
        self.untyped = UntypedValues(s, self.shapes)
        self.stack = [_OpenElement("", schema)]
        self.tags: Counter[str] = Counter()
        self.leaf = ""
        self.unclosed = False

    def read(self) -> Scan[None]:
        s, stack = self.s, self.stack
        s.emit_arguments("{")
        while True:
            word = yield from at(s, self.shuts, self.opens, *self.follow, eat=False)
            if word == self.opens:
                yield from self.element()
            elif word == self.shuts and len(stack) > 1:
                yield from self.close()
            elif len(stack) == 1:
                break
            elif word:
                self.missing(1)
                break
            else:
                raise Malformed(f"{'unclosed' if s.closed else 'a text beside elements in'} {stack[-1].tag!r}")
        s.emit_arguments("}")

    def element(self) -> Scan[None]:
        """Reads from an element's opener, which is present, to after its closer, or to the first element in it."""
        s, parent = self.s, self.stack[-1]
        tag = yield from self.tag(self.opens)
        if not tag or tag != tag.strip():
            raise Malformed("expected a name")
        self.eat(self.opens, tag)
        comma = ", " if parent.count else ""
        if parent.array:
            if tag != self.hole.item:
                s.note("odd-item", tag)
            s.emit_arguments(comma)
            schema = self.shapes.items(parent.schema)
        elif tag in parent.keys:
            return (yield from self.drop(tag))
        else:
            s.emit_arguments(f"{comma}{quoted(tag)}: ")
            parent.keys.add(tag)
            schema = self.shapes.member(parent.schema, tag)
        parent.count += 1
        return (yield from self.content(tag, schema))

    def content(self, tag: str, schema: object) -> Scan[None]:
        """The content of an element: elements, nothing, or text."""
        s, kinds = self.s, self.shapes.kinds(schema)
        self.leaf = tag
        if kinds != STRING:
            word = yield from at(s, self.shuts, self.opens, eat=False)
            if word == self.opens and kinds & {"array", "object"}:
                return (yield from self.nest(tag, schema, kinds))
            if word == self.shuts and (nothing := (yield from self.nothing(tag, kinds))):
                return s.emit_arguments(nothing)
        convert = self.untyped.converter(schema, kinds)
        end = yield from value(s, (self.shuts, *self.call[:1]), self.closes, kinds, convert)
        parent = self.stack[-1].schema
        if self.unclosed and (wrong := lost_closer(end, (f"<{tag}>",), lambda key: self.shapes.names(parent, key))):
            s.note("trailing-text", wrong)
        return None

    def nothing(self, tag: str, kinds: Kinds) -> Scan[str]:
        """The value of an element whose closer follows at once, which is consumed; "" if it is a text."""
        s = self.s
        text = "" if kinds == ANY else next((text for kind, text in EMPTY.items() if kind in kinds), "")
        if not text:
            return ""
        if "string" in kinds and (yield from peek(s, len(self.shuts))) != self.shuts:
            return ""
        if (yield from self.tag(self.shuts)) != tag:
            return ""
        self.eat(self.shuts, tag)
        return text

    def nest(self, tag: str, schema: object, kinds: Kinds) -> Scan[None]:
        """The element is an array or an object."""
        array = "array" in kinds
        if array and "object" in kinds:
            first = yield from self.tag(self.opens)
            array = first == self.hole.item and not self.shapes.names(schema, first)
        self.s.emit_arguments("[" if array else "{")
        self.stack.append(_OpenElement(tag, schema, array))
        self.tags[tag] += 1

    def close(self) -> Scan[None]:
        """A closer where an element may come: of the innermost element, of an outer one, or a stray one."""
        s = self.s
        tag = yield from self.tag(self.shuts)
        if self.tags[tag]:
            depth = len(self.stack) - 1
            while self.stack[depth].tag != tag:
                depth -= 1
            self.missing(depth + 1)
            self.eat(self.shuts, tag)
            return self.pop()
        if not tag:
            raise Malformed("expected a name")
        self.eat(self.shuts, tag)
        return s.note("stray-closer", tag)

    def missing(self, depth: int) -> None:
        """Closes all open elements from `depth` on."""
        while len(self.stack) > depth:
            self.s.note("missing-closer", self.stack[-1].tag)
            self.pop()

    def pop(self) -> None:
        done = self.stack.pop()
        self.tags[done.tag] -= 1
        self.s.emit_arguments("]" if done.array else "}")

    def drop(self, tag: str) -> Scan[None]:
        """An element whose key was given before: it is noted, not emitted."""
        self.leaf = tag
        parts: list[str] = []
        yield from text_until(self.s, (self.shuts,), self.closes, parts.append)
        self.s.note("doubled-key", f"{tag}: {''.join(parts)[:200]}")

    def tag(self, before: str) -> Scan[str]:
        """The name in the next tag, which begins with `before`; "" if there is none. Consumes the whitespace before
        it."""
        s = self.s
        s.pos = SPACE(s.text, s.pos).end()
        token = yield from token_ahead(s, len(before), TAG_END)
        return token[0] if token else ""

    def eat(self, before: str, tag: str) -> None:
        self.s.pos += len(before) + len(tag) + 1

    def closes(self, hit: str) -> Scan[str | None]:
        """Whether a closer belongs to the current element and something legal follows it."""
        s, own = self.s, f"{hit}{self.leaf}>"
        if hit in self.call:
            rest = yield from self.inner_calls.rest(self.shuts, TAG_END)
            if name := self.inner_calls.lone:
                s.note("trailing-text", name)  # it may be a call rather than a part of the text
            return hit + rest
        s.pos -= len(hit)
        if (yield from peek(s, len(own))) == own:
            s.pos += len(own)
            return None if (yield from self.legal()) else own
        end = yield from ahead(s, 0, self.follow[:1])
        if end > 0 and (yield from self.runs_out(end)):
            s.note("missing-closer", self.leaf)
            self.unclosed = True
            return None
        tag, parent = (yield from self.tag(hit)), self.stack[-1]
        if tag not in {self.leaf, *parent.keys} and self.shapes.names(parent.schema, tag):
            s.note("trailing-text", tag)  # the closer of a parameter that was not given: its opener may be in the text
        s.pos += len(hit)
        return hit

    def legal(self) -> Scan[bool]:
        """Whether an opener, the closer of an open element, a word that may follow the arguments, or the end comes
        next."""
        if not self.follow and len(self.stack) == 1:
            return True
        end = yield from ahead(self.s, 0, (self.opens, self.shuts, *self.follow))
        if end <= 0:
            return end < 0
        shut, other = (self.s.text.endswith(word, 0, self.s.pos + end) for word in (self.shuts, self.opens))
        if not shut and not other:
            return True
        token = yield from token_ahead(self.s, end, TAG_END)
        if token is None:
            return False
        return self.tags[token[0]] > 0 if shut else "<" not in token[0]

    def runs_out(self, end: int) -> Scan[bool]:
        """Whether from there on there are only words that may follow a call."""
        for _ in self.follow:
            end = yield from ahead(self.s, end, self.follow)
            if end <= 0:
                return end < 0
        return False


def write(hole: Tree, arguments: Mapping[str, Any]) -> str:
    """The arguments in the dialect's syntax: strings verbatim, null as nothing, other scalars as JSON."""
    parts: list[str] = []
    todo: list[Iterator[tuple[str, Any]]] = [iter(arguments.items())]
    shut: list[str] = []
    while todo:
        following = next(todo[-1], None)
        if following is None:
            todo.pop()
            if shut:
                parts.append(shut.pop())
            continue
        tag, value = following
        parts.append(f"{hole.mark}<{tag}>")
        closer = f"{hole.mark}</{tag}>"
        if isinstance(value, Mapping):
            todo.append(iter(cast("Mapping[str, Any]", value).items()))
            shut.append(closer)
        elif isinstance(value, (list, tuple)):
            todo.append(iter([(hole.item, one) for one in cast("list[Any]", value)]))
            shut.append(closer)
        else:
            parts.append(_scalar(value) + closer)
    return "".join(parts)


def _scalar(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def grammar(hole: Tree, schema: Schema, rules: Rules) -> Node:
    """The arguments of a tool with these parameters, as nested elements."""
    from ..grammars.arguments import an_object
    from .tree_grammar import TreeGrammar

    return TreeGrammar(hole, schema, rules).fields(an_object(schema))


def _read_arguments(s: State, hole: Tree, schema: Schema, tail: Tail) -> Scan[None]:
    keys = yield from read(s, hole, schema, tail.follow, tail.begin)
    yield from closed(s, hole.mark + "<", schema, keys, tail.words)


HOLE = ArgumentsHole(
    Tree,
    _read_arguments,
    lambda hole, call: write(hole, arguments_of(call)),
    grammar,
    openers=lambda hole: (hole.mark + "<",),
    optional=True,
)
