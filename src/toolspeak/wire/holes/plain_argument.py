"""Reads an argument that is only a text, where a dialect wants a JSON object (`Json.plain`).

It is the value of the tool's first parameter, up to what may follow the call. Models write such texts for tools like
`python`. Not every text is one:

- An object that lacks its brace, and perhaps the beginning of its first key, is no text: `h": "/data"}`. Nor is one that
  lacks all up to the middle of a value, so that it only ends like an object: `ta", "dry_run": true}`.
- A text that begins with the name of a parameter, as in `city=Rome` or `City: Rome`, names its arguments in a form that
  only the model knows, and so does `get_weather(city="Rome")`.
- The mark of the end of a turn (`turn_ends`) is no part of a text that it ends. Elsewhere it is: a text may be about it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from ...events import ArgumentsDelta
from ..reading.json_tokens import escaped, quoted, whole_value
from ..reading.lookahead import ahead
from ..reading.marks import marks
from ..reading.source import CAP, GAP, Malformed, Scan, blank
from ..reading.state import State
from ..reading.turn_over import turn_over
from ..turn_ends import TURN_ENDS

SPECIAL = r'"\\\x00-\x1f{}'
"""Characters that JSON escapes in a string, and braces, as a character class."""
A_STRING = re.compile(rf'"(?:[^"\\\n]|\\.){{0,{CAP}}}"').match
HALF_STRING = re.compile(rf'"(?:[^"\\\n]|\\.){{0,{CAP}}}\\?\Z').match
REST_OF_KEY = re.compile(rf'"?([^"\\\n]{{1,{CAP}}})"\s{{0,{GAP}}}:').match
WORD = rf"""[-*(\['"` ]{{0,4}}([\w-]{{1,{CAP}}})"""
BEFORE_VALUE = rf"""["'`*]{{0,2}}[^\S\n]{{0,{GAP}}}"""
FIRST_WORD = re.compile(rf"{WORD}(?:(\()|{BEFORE_VALUE}(?:=(?![=~])|:(?![/:=])))").match
"""Matches a first word that is called, or that a value is assigned to."""
HALF_WORD = re.compile(rf"""(?:[-*(\['"` ]{{0,4}}|{WORD}{BEFORE_VALUE}[=:]?)\Z""").match
HALF_KEY = re.compile(rf'"?([^"\\\n]{{0,{CAP}}})(?:"\s{{0,{GAP}}})?\Z').match


def read(s: State, schema: Mapping[str, Any], follow: tuple[str, ...]) -> Scan[None]:
    """Passes on the text up to one of `follow`, or the end, as the value of the schema's first property ("input" without
    a schema)."""
    yield from blank(s)
    yield from _refuse_assignment(s, schema)
    text = yield from _only_string(s, follow)
    properties: object = schema.get("properties")
    names = tuple(cast("Mapping[str, Any]", properties)) if isinstance(properties, Mapping) else ()
    if (yield from _ends_key(s, () if text else names)):
        raise Malformed("an object without its brace")
    key = next(iter(names), "input")
    s.note("plain-argument", key)
    s.emit_arguments(f"{{{quoted(key)}: ")
    if text:
        s.emit_arguments(text)
    else:
        s.emit_arguments('"')
        yield from _text(s, follow, tuple(map(quoted, names)))
        s.emit_arguments('"')
    s.emit_arguments("}")


def _refuse_assignment(s: State, schema: Mapping[str, Any]) -> Scan[None]:
    """Raises Malformed for a text that begins with the name of a parameter and `=` or `:`, or with a call of the tool."""
    while not s.closed and HALF_WORD(s.text, s.pos):
        yield
    first = FIRST_WORD(s.text, s.pos)
    properties: object = schema.get("properties")
    names = cast("Mapping[str, Any]", properties) if isinstance(properties, Mapping) and first else ()
    tool = s.open_call.name if s.open_call else None
    if first and (first[1] == tool if first[2] else first[1].lower() in map(str.lower, names)):
        raise Malformed("a parameter's name, but no JSON object")


def _ends_key(s: State, names: tuple[str, ...]) -> Scan[bool]:
    """Whether the end of one of these keys comes next, with its quote and its colon. Consumes nothing."""
    while not s.closed:
        half = HALF_KEY(s.text, s.pos)
        if not any(half[1] in name for name in names if half):
            break
        yield
    key = REST_OF_KEY(s.text, s.pos)
    return any(name.endswith(key[1]) for name in names) if key else False


def _only_string(s: State, follow: tuple[str, ...]) -> Scan[str]:
    """A short JSON string that is everything up to `follow`, consumed; otherwise "" and nothing is consumed."""
    while (m := A_STRING(s.text, s.pos)) is None:
        if s.closed or not HALF_STRING(s.text, s.pos):
            return ""
        yield
    text = m[0]
    behind = tuple(word.strip() for word in follow if word.strip())
    if whole_value(text, 0) is None or not (yield from turn_over(s, len(text), behind)):
        return ""
    s.pos += len(text)
    return text


def _text(s: State, follow: tuple[str, ...], keys: tuple[str, ...]) -> Scan[None]:
    """Text as the content of a JSON string, without the line break after it. An object with one of these keys ends it."""
    ends, depth, last = marks((*follow, *TURN_ENDS), SPECIAL), 0, ""
    while True:
        text, pos = s.text, s.pos
        m = (ends.full if s.closed else ends.search)(text, pos)
        mark = m[0] * bool(m.lastindex) if m else ""
        stop = m.start() if m else len(text)
        line_end = text.endswith("\n", pos, stop)
        piece = text[pos : stop - line_end]
        depth += piece.count("{") - piece.count("}")
        last = (last + piece.rstrip("\n"))[-1:]
        s.emit_arguments(escaped(piece))
        s.pos = stop - line_end
        if (yield from _ends(s, mark, follow, keys)):
            s.pos += line_end
            if (depth < 0) & (last == "}"):
                s.note("trailing-text", last)
            return
        if mark:
            s.emit_arguments(escaped(s.text[s.pos : s.pos + line_end + len(mark)]))
            s.pos, last = s.pos + line_end + len(mark), mark[-1]
            depth += mark == "{"
            continue
        if s.pos == len(text):
            s.fast_search, s.fast_event = ends.fast_search, ArgumentsDelta
        place = s.offset + s.pos
        yield
        last = last if s.offset + s.pos == place else ""  # text that was passed on has no brace


def _ends(s: State, mark: str, follow: tuple[str, ...], keys: tuple[str, ...]) -> Scan[bool]:
    """Whether the text ends before this mark or, without one, here."""
    if mark == "{":  # an object may follow the call, but code has braces too
        brace = yield from ahead(s, 0, (mark,))
        return (yield from ahead(s, brace, keys)) > 0
    if mark in follow:
        return True
    return (yield from turn_over(s, 0, follow)) if mark else s.closed
