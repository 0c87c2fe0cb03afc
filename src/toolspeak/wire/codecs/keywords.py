"""Arguments in a syntax like a programming language's: `(k='v', n=3)`, or `{k:<|"|>v<|"|>,n:3}`.

Read are the literals of Python and of JSON, whichever of them the dialect writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ..brackets import KEYED, NAMED, Frame
from ..jsonscan import quoted
from ..litscan import LiteralReader
from ..scan import Malformed, Scan, Source, expect
from ..state import State
from ..syntax import Keywords

PYTHON = Keywords()
PLAIN_NAME = re.compile(r"[^\W\d][\w.-]*").fullmatch
BARE_NAME = re.compile(r"[\w.-]+").fullmatch


def read(s: State, hole: Keywords, schema: Mapping[str, Any], follow: tuple[str, ...]) -> Scan[None]:
    """Pass the arguments on as JSON text, from before what opens them to behind what closes them.

    A string ends only where something legal follows its quotes: behind the last, one of `follow`, another
    call on a line of its own, or the end (no `follow`: anything).
    """
    yield from expect(s, hole.open)
    reader = LiteralReader(s, s.args, s.note, hole, schema, follow)
    reader.streams = True
    reader.push(Frame(NAMED if hole.assign == "=" else KEYED, hole.close, "}"), "{")
    yield from reader.run()


def transcode(text: str) -> str | None:
    """A whole Python literal as JSON text; None if it is none, or not without a repair."""
    source, parts, notes = Source(), list[str](), list[str]()
    source.text, source.closed = text, True
    reader = LiteralReader(source, parts.append, lambda rule, _: notes.append(rule), PYTHON, {})
    try:
        for _ in reader.run():
            pass
    except Malformed:
        return None
    return None if notes or text[source.pos :].strip() else "".join(parts)


def write(hole: Keywords, arguments: Mapping[str, Any], schema: Mapping[str, Any] | None = None) -> str:
    """The arguments as the dialect writes them. A key that is no name stands in quotes, or as `**{key: value}`."""
    glue, python = (",", False) if hole.bare else (", ", True)
    rows: list[str] = []
    for key, value in ordered(hole, arguments):
        text = json.dumps(value, ensure_ascii=False) if hole.json and _is_object(value) else literal_text(hole, value)
        if not python:
            rows.append(_key(hole, key) + hole.assign + text)
        elif PLAIN_NAME(key):
            rows.append(key + hole.assign + text)
        else:
            rows.append("**{" + _key(hole, key) + ": " + text + "}")
    return hole.open + glue.join(rows) + hole.close


def ordered(hole: Keywords, arguments: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The keys and values in the order in which they are written: bare keys are sorted."""
    rows = list(arguments.items())
    return sorted(rows, key=lambda row: row[0].lower()) if hole.bare else rows


def literal_text(hole: Keywords, value: object) -> str:
    """A value as the dialect writes it."""
    if isinstance(value, str):
        return _string(hole, value)
    if value is None or isinstance(value, bool):
        true, false, null = hole.constants
        return null if value is None else true if value else false
    glue = "," if hole.bare else ", "
    if isinstance(value, Mapping):
        assign = ":" if hole.bare else ": "
        rows = ordered(hole, cast("Mapping[str, Any]", value))
        return "{" + glue.join(_key(hole, k) + assign + literal_text(hole, v) for k, v in rows) + "}"
    if isinstance(value, list | tuple):
        return "[" + glue.join(literal_text(hole, v) for v in cast("Iterable[object]", value)) + "]"
    return repr(value)


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)


def _key(hole: Keywords, key: str) -> str:
    return key if hole.bare and BARE_NAME(key) else _string(hole, key)


def _string(hole: Keywords, text: str) -> str:
    quote = hole.quotes[0]
    if not hole.escapes:
        return quote + text + quote
    return repr(text) if quote == "'" else quoted(text)
