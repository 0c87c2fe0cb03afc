"""Arguments in the syntax of a programming language: `(k='v', n=3)`, or `{k:<|"|>v<|"|>,n:3}`.

The literals of Python and of JSON are both read, whichever of them the dialect writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...schema.kinds import Kinds, Shapes
from ...types import Schema
from ..dialect import Keywords
from ..literal_writer import literal_key, literal_text, ordered
from ..reading.brackets import KEYED, NAMED, Frame
from ..reading.call_repairs import behind
from ..reading.json_tokens import AddNote
from ..reading.literal_reader import LiteralReader
from ..reading.source import Malformed, Scan, Source, expect
from ..reading.state import State
from .hole import ArgumentsHole, Tail, arguments_of

if TYPE_CHECKING:
    from ..grammars.rules import Node, Rules

PYTHON = Keywords()
OBJECT: Kinds = frozenset(["object"])
PLAIN_NAME = re.compile(r"[^\W\d][\w.-]*").fullmatch


def read(
    s: State, hole: Keywords, schema: Mapping[str, Any], follow: tuple[str, ...], beyond: tuple[str, ...] = ()
) -> Scan[None]:
    """Passes the arguments on as JSON text, from before their opener to after their closer. One of the words `beyond`
    ends them where their last closers are missing.

    A string ends only if something legal follows its quotes. After the last string that is one of `follow`, another
    call on its own line, or the end (with an empty `follow`: anything).
    """
    yield from expect(s, hole.open)
    reader = LiteralReader(s, s.emit_arguments, s.note, hole, schema, follow, beyond, streams=True)
    reader.push(Frame(NAMED if hole.assign == "=" else KEYED, hole.close, "}"), "{")
    try:
        yield from reader.run()
    except Malformed:
        missing = yield from reader.missing()
        if not missing:
            raise
        s.note("unclosed-object", "".join(frame.close for frame in missing))
        s.emit_arguments("".join(frame.json for frame in missing))


def transcode(text: str, note: AddNote) -> str:
    """A complete Python literal as JSON text, with a note for each repair; "" if it is none."""
    source, parts = Source(), list[str]()
    source.text, source.closed = text, True
    reader = LiteralReader(source, parts.append, note, PYTHON, {})
    try:
        for _ in reader.run():
            pass
    except Malformed:
        return ""
    return "" if text[source.pos :].strip() else "".join(parts)


def write(hole: Keywords, arguments: Mapping[str, Any], schema: Mapping[str, Any] | None = None) -> str:
    """The arguments in the dialect's syntax. A key that is no identifier is written in quotes, or as `**{key: value}`."""
    glue, python = (",", False) if hole.bare else (", ", True)
    rows: list[str] = []
    for key, value in ordered(hole, arguments):
        text = (
            json.dumps(value, ensure_ascii=False)
            if hole.json and isinstance(value, Mapping)
            else literal_text(hole, value)
        )
        if not python:
            rows.append(literal_key(hole, key) + hole.assign + text)
        elif PLAIN_NAME(key):
            rows.append(key + hole.assign + text)
        else:
            rows.append("**{" + literal_key(hole, key) + ": " + text + "}")
    return hole.open + glue.join(rows) + hole.close


def grammar(hole: Keywords, schema: Schema, rules: Rules) -> Node:
    """The arguments after their opener, which distinguishes a call from other text."""
    from ..grammars.arguments import an_object, part_of
    from ..grammars.rules import JsonNode, Lit, seq
    from ..grammars.value_grammar import Values, bare_name, fields_of, literals

    schema = an_object(schema)
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


def _read_arguments(s: State, hole: Keywords, schema: Schema, tail: Tail) -> Scan[None]:
    again = (tail.again,) if tail.again else ()
    return read(s, hole, schema, (*tail.follow, *again), behind((*tail.words, *again), tail.after))


HOLE = ArgumentsHole(
    Keywords,
    _read_arguments,
    lambda hole, call: write(hole, arguments_of(call)),
    grammar,
    openers=lambda hole: (hole.open,),
    prefix=lambda hole: hole.open,
)
