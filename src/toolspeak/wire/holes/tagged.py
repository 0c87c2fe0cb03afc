"""Arguments one by one, each between tags: open key mid value close; some dialects also write their types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...types import Schema
from ..dialect import Tagged
from ..reading.source import Scan, at
from ..reading.state import State
from . import json_args
from .hole import ArgumentsHole, Tail, arguments_of
from .tag_reader import TagReader
from .tag_words import tag_words
from .unclosed import closed

if TYPE_CHECKING:
    from ..grammars.rules import Node, Rules


def read(
    s: State, hole: Tagged, schema: Mapping[str, Any], follow: tuple[str, ...], call: tuple[str, ...] = ()
) -> Scan[set[str] | None]:
    """Passes the arguments on as the text of one JSON object, {} without arguments. Returns the keys that were read;
    None if no further argument could have come. `call` are the words before the name of a call."""
    words = tag_words(hole, follow, call)
    if (yield from json_args.read_body(s, schema, words.opener)):
        return None
    reader = TagReader(s, hole, words, schema)
    with reader.untyped:
        s.emit_arguments("{")
        while True:
            if (yield from at(s, words.opener, eat=False)):
                yield from reader.parameter()
            elif other := (yield from reader.other()):
                yield from reader.respelled(other)
            else:
                break
        if lost := reader.unsure - reader.keys:
            s.note("trailing-text", words.opener + min(lost))  # these may be parameters rather than parts of a value
        if reader.swallowed:
            s.note("trailing-text", reader.swallowed)  # so may a call
        s.emit_arguments("}")
    yield from reader.ended()
    return reader.keys


def write(hole: Tagged, arguments: Mapping[str, Any]) -> str:
    """The arguments in the dialect's syntax: strings verbatim, anything else as JSON."""
    return "".join(
        f"{hole.open}{key}{_type(hole, value)}{hole.mid}{_text(hole, value)}{hole.close}"
        for key, value in arguments.items()
    )


def _text(hole: Tagged, value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if hole.quote and any(c in value for c in "<&\n"):
        return value.join(hole.quote)
    return value


def _type(hole: Tagged, value: object) -> str:
    if hole.typed is None:
        return ""
    if isinstance(value, str):
        return hole.typed.before + hole.typed.string
    return hole.typed.before + (hole.typed.other or json_type(value))


def json_type(value: object) -> str:
    """The JSON type of a value that is no string."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "object" if isinstance(value, Mapping) else "array"


def grammar(hole: Tagged, schema: Schema, rules: Rules) -> Node:
    """The arguments of a tool with these parameters, one by one between tags."""
    from ..grammars.arguments import an_object
    from .tag_grammar import TagGrammar

    return TagGrammar(hole, an_object(schema), rules).all()


def _read_arguments(s: State, hole: Tagged, schema: Schema, tail: Tail) -> Scan[None]:
    keys = yield from read(s, hole, schema, tail.follow, tail.begin)
    yield from closed(s, hole.open.strip(), schema, keys, tail.words)


def _name_ends(_hole: Tagged, ends: tuple[str, ...]) -> tuple[str, ...]:
    """Any tag, object or list ends a name before tagged parameters."""
    return (*ends, "<", "{", "[") if ends[0][0] == "<" else ends


HOLE = ArgumentsHole(
    Tagged,
    _read_arguments,
    lambda hole, call: write(hole, arguments_of(call)),
    grammar,
    openers=lambda hole: (hole.open.strip(),),
    optional=True,
    name_ends=_name_ends,
)
