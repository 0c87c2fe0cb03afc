"""The whole body of a call as its single argument, such as code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ...events import ArgumentsDelta
from ...types import Schema
from ..dialect import Raw
from ..reading.json_tokens import escaped, quoted
from ..reading.marks import marks
from ..reading.source import Scan, until
from ..reading.state import State
from ..reading.turn_over import turn_over
from ..turn_ends import TURN_ENDS
from .hole import ArgumentsHole, Tail, arguments_of

if TYPE_CHECKING:
    from ..grammars.rules import Node, Rules

SPECIAL = r'"\\\x00-\x1f'
"""Characters that JSON escapes in a string, as a character class."""


def read(s: State, hole: Raw, schema: Mapping[str, Any], follow: tuple[str, ...]) -> Scan[None]:
    """Passes on the text up to one of `follow`, or the end, as `{key: text}`, as it arrives."""
    s.emit_arguments(f'{{{quoted(hole.key)}: "')
    yield from rest(s, follow)
    s.emit_arguments('"}')


def rest(s: State, follow: tuple[str, ...]) -> Scan[None]:
    """Passes on the text up to one of `follow`, or the end, as the content of a JSON string. Does not consume what
    ends it. The mark of the end of a turn ends it only if nothing else follows."""
    wanted = marks((*follow, *TURN_ENDS), SPECIAL)
    while hit := (yield from until(s, wanted, lambda piece: s.emit_arguments(escaped(piece)), ArgumentsDelta)):
        s.pos -= len(hit)
        if hit in follow or (yield from turn_over(s, 0, follow)):
            return
        s.emit_arguments(escaped(hit))
        s.pos += len(hit)


def write(hole: Raw, arguments: Mapping[str, Any]) -> str:
    """The text of the argument."""
    text: object = arguments.get(hole.key, "")
    return text if isinstance(text, str) else str(text)


def grammar(hole: Raw, schema: Schema, rules: Rules) -> Node:
    """The argument as all the text there is: a text that matches its grammar, or any text."""
    from ..grammars.arguments import an_object
    from ..grammars.regexes import chars_of
    from ..grammars.rules import Text
    from ..grammars.value_grammar import fields_of, fitting_text, followed

    fields, _, _ = fields_of(an_object(schema), schema)
    sub = followed(fields.get(hole.key), schema)
    text = fitting_text(cast("Schema", sub), chars_of, rules, "verbatim") if isinstance(sub, Mapping) else None
    return Text(end=True) if text is None else text


def _read_arguments(s: State, hole: Raw, schema: Schema, tail: Tail) -> Scan[None]:
    if s.open_call:
        s.open_call.unclosed = True  # whatever follows may belong to it
    return read(s, hole, schema, tail.follow)


HOLE = ArgumentsHole(Raw, _read_arguments, lambda hole, call: write(hole, arguments_of(call)), grammar, anywhere=False)
