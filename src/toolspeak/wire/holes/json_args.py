"""Reads and writes arguments as JSON (`dialect.Json`), an object or a JSON string that holds one, and gives their grammar."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from ...events import ArgumentsDelta
from ...schema.kinds import OF_NAME, Shapes
from ...types import Schema, ToolCall
from ..dialect import Json
from ..reading.call_repairs import behind, closing
from ..reading.fences import FENCE, fence_of_arguments
from ..reading.json_reader import JsonReader
from ..reading.json_string import ESCAPES, unescape, unescaped
from ..reading.json_tokens import IN_QUOTED, IN_STRING, AddNote, Emit, quoted, whole_value
from ..reading.json_value import json_value, last_closers
from ..reading.marks import marks
from ..reading.source import (
    SPACE,
    Delta,
    Machine,
    Malformed,
    Scan,
    Source,
    at,
    blank,
    following,
    until,
)
from ..reading.state import State
from ..reading.turn_over import turn_over
from ..turn_ends import TURN_ENDS
from . import plain_argument
from .hole import ArgumentsHole, Tail
from .unclosed import end_by, ended, holds_all

if TYPE_CHECKING:
    from ..grammars.rules import Node, Rules

NULL = ("null", "None")
PARAGRAPH = ("\n\n", "\n\r\n")
"""Ends of a paragraph."""
RUNS = {
    '"': re.compile(r'(?:[^"\\]+|\\["\\/bfnrt])*').match,
    "'": re.compile(r"""(?:[^'\\]+|\\["'\\/bfnrt])*""").match,
}
"""By quote: the beginning of a string's content that needs no further look."""
CLEAN_TWICE = cast(
    "Callable[[str, int], re.Match[str]]",
    re.compile(r'(?:[^"\\\x00-\x1f]++|\\\\(?:\\["\\]|[bfnrt/]))*+').match,
)
"""Content of a JSON string inside a JSON string that needs no change, with its simple escapes complete."""
IN_JSON = IN_QUOTED['"']
HALF_TWICE = ("\\", "\\\\", "\\\\\\")
SIMPLE = re.compile(r"\\(.)").sub


def read(
    s: Source, emit: Emit, note: AddNote, delta: Delta | None = ArgumentsDelta, beyond: tuple[str, ...] = ()
) -> Scan[None]:
    """Passes the arguments on as JSON text; null becomes {}. The words `beyond` end the enclosing call."""
    c = yield from following(s)
    if c in ('"', "'"):
        yield from blank(s)
        if c == '"' and (yield from _unescaped(s)):
            note("quote-in-string", "")
            s.pos += 1
            yield from json_value(s, emit, note, delta, beyond)
            yield from at(s, '"')
        else:
            yield from _Encoded(s, c, emit, note, delta).run()
    elif c in ("n", "N") and (yield from at(s, *NULL)):
        emit("{}")
    elif c in ("{", "["):
        yield from json_value(s, emit, note, delta, beyond)
    else:
        raise Malformed("no arguments")


def read_body(s: State, schema: Mapping[str, Any], opener: str) -> Scan[bool]:
    """Reads arguments that are JSON in place of a dialect's own form, which begins with `opener`. A list is the value of
    the only parameter, if that is an array. Returns whether there are any."""
    first = yield from at(s, opener, "{", "[", eat=False)
    key = _only_array(schema) if first == "[" else ""
    if first != "{" and not key:
        return False
    s.note("json-body")
    if not key:
        yield from read(s, s.emit_arguments, s.note)
        return True
    s.note("plain-argument", key)
    s.emit_arguments(f"{{{quoted(key)}: ")
    yield from json_value(s, s.emit_arguments, s.note, ArgumentsDelta)
    s.emit_arguments("}")
    return True


def _only_array(schema: Mapping[str, Any]) -> str:
    """The only parameter, if it is an array; else ""."""
    properties: object = schema.get("properties")
    names = list(cast("Mapping[str, Any]", properties)) if isinstance(properties, Mapping) else []
    shapes = Shapes(schema)
    return names[0] if len(names) == 1 and shapes.kinds(shapes.member(schema, names[0])) == OF_NAME["array"] else ""


def read_arguments(s: State, hole: Json, schema: Schema, tail: Tail) -> Scan[None]:
    """The arguments of a call; missing ones are {}."""
    follow = (*tail.follow, FENCE) if s.fenced else tail.follow
    if not (yield from at(s, "{", '"', eat=False)):
        nothing = yield from _nothing(s, hole, follow)
        # A label that nothing closes is all that a model writes for a tool that lists no parameters.
        closed = {"additionalProperties": False, **schema} if _labels(tail.begin) and not tail.words else schema
        if nothing or (ended(s) and holds_all(closed, set())):
            s.emit_arguments("{}")
            if s.open_call:
                s.open_call.unclosed = True
            return s.note("no-arguments")
        if ended(s):
            raise Malformed("no arguments")
    if (yield from read_hole(s, hole, schema, follow, behind(tail.words, tail.after), _labels(tail.begin))):
        end_by(s, tail.words)  # only the closer says that a text is complete
        if s.open_call:
            s.open_call.unclosed = True


def _labels(begin: tuple[str, ...]) -> bool:
    """Whether the words before a call's name are a label, such as `Action:`, and no control marker."""
    return bool(begin) and begin[0].strip("*")[0].isalpha()


def _nothing(s: State, hole: Json, follow: tuple[str, ...]) -> Scan[bool]:
    """Whether what follows the arguments comes at once. Consumes nothing."""
    word = yield from at(s, *follow, *(TURN_ENDS if hole.plain else ()), eat=False)
    return (yield from turn_over(s, 0, follow)) if word else False


def read_hole(
    s: State,
    hole: Json,
    schema: Mapping[str, Any],
    follow: tuple[str, ...],
    beyond: tuple[str, ...] = (),
    paragraph: bool = False,
) -> Scan[bool]:
    """Passes the arguments on as JSON text. If the hole may be `plain`, anything but a JSON object is the text of the
    schema's first property ("input" without a schema), up to one of `follow` or the end, or of the `paragraph`. Both may
    be in a fence. Returns whether it was a text."""
    fence = (yield from fence_of_arguments(s)) if hole.plain else ""
    json = not hole.plain or (yield from following(s)) == "{" or (yield from _holds_json(s))
    yield from blank(s)
    nothing = () if json else (yield from at(s, *NULL, eat=False))
    if json or (nothing and (yield from turn_over(s, len(nothing), follow))):
        json = True
        yield from read(s, s.emit_arguments, s.note, beyond=(*beyond, fence) if fence else beyond)
    else:
        ends = (fence,) if fence else (*follow, *PARAGRAPH) if paragraph else follow
        yield from plain_argument.read(s, schema, ends)
    if fence:
        s.note("fence", fence)
        yield from _close_fence(s, fence, json, follow)
    return not json


def _close_fence(s: State, fence: str, json: bool, follow: tuple[str, ...]) -> Scan[None]:
    """Consumes the closer of a fence around arguments. A text without it is incomplete."""
    if not json and not (yield from at(s, fence, eat=False)):
        raise Malformed("an unclosed fence")
    yield from closing(s, [fence], tuple(map(str.strip, follow)))


def _unescaped(s: Source) -> Scan[bool]:
    """Whether an object comes between quotes that do not escape it. Consumes nothing."""
    if (yield from following(s, 1)) != "{":
        return False
    return (yield from following(s, SPACE(s.text, s.pos + 1).end() - s.pos + 1)) == '"'


def _holds_json(s: State) -> Scan[bool]:
    """Whether a string with an object comes next. Consumes nothing."""
    if (yield from following(s)) != '"':
        return False
    return (yield from following(s, SPACE(s.text, s.pos).end() - s.pos + 1)) == "{"


class _Encoded(Machine):
    """The content of a JSON string, unescaped and read as JSON itself; missing content is {}.

    An error in the JSON is raised at the end of the string, so that the result does not depend on how the text is cut.
    """

    __slots__ = ("delta", "emit", "failed", "inner", "note", "place", "quote", "reader")

    def __init__(self, s: Source, quote: str, emit: Emit, note: AddNote, delta: Delta | None) -> None:
        super().__init__(s, self.begin)
        self.quote, self.emit, self.note, self.delta = quote, emit, note, delta
        self.inner, self.place = Source(decoded=s.decoded), 0
        self.reader = JsonReader(self.inner, emit, self.note_here, delta)
        self.failed: Malformed | None = None

    def begin(self) -> bool:
        """Fast path for a string that has arrived completely, up to its closing quote."""
        s = self.s
        self.place = s.offset + s.pos
        s.pos += 1
        whole = whole_value(s.text, s.pos - 1, strict=False) if self.quote == '"' else None
        if whole and isinstance(whole[0], str):
            self.give(whole[0])
            s.pos = whole[1] - 1
        self.mode = self.content
        return True

    def content(self) -> bool:
        s, run = self.s, RUNS[self.quote]
        if self.inner.fast_search is IN_JSON and self.quote == '"' and self.clean():
            return False
        while True:
            text, pos = s.text, s.pos
            m = run(text, pos)
            end = m.end() if m else pos
            if end > pos:
                piece = text[pos:end]
                s.pos = end
                if "\\" in piece:
                    plain = piece.replace('\\"', '"')
                    piece = SIMPLE(_unescape, piece) if "\\" in plain else plain
                self.give(piece)
            if end == len(text):
                if s.closed:
                    raise Malformed("unclosed string")
                if self.inner.fast_search is IN_JSON and self.quote == '"':
                    self.reader.watch.let_pass(s, IN_STRING, self.delta)
                return False
            if text[end] == self.quote:
                s.pos += 1
                self.mode = None
                return self.close()
            escape = unescaped(text, end, s.closed)
            if escape is None:
                return False
            s.pos += escape[1]
            self.give(escape[0])

    def clean(self) -> bool:
        """Passes on content that needs no change. Returns whether more text is needed."""
        s = self.s
        text, pos = s.text, s.pos
        end = CLEAN_TWICE(text, pos).end()
        if end > pos:
            piece = text[pos:end].replace("\\\\", "\\").replace('\\"', '"')
            self.emit(piece)
            self.reader.watch.content += piece
            s.pos = end
        if end == len(text):
            self.reader.watch.let_pass(s, IN_STRING, self.delta)
        return not s.closed and (end == len(text) or text[end:] in HALF_TWICE)

    def give(self, piece: str) -> None:
        """More of the JSON."""
        if self.failed:
            return
        if self.reader.mode:
            self.inner.add(piece)
            try:
                if not self.reader.step():
                    return
            except Malformed as e:
                self.failed, self.inner.fast_search = e, None
                return
            piece = self.inner.text[self.inner.pos :]
        if piece.strip():
            self.failed = Malformed("text after the arguments")

    def close(self) -> bool:
        """The string has ended."""
        if self.reader.mode == self.reader.begin:
            self.emit("{}")
            return True
        self.inner.closed = True
        if self.failed:
            raise self.failed
        try:
            self.reader.step()
        except Malformed:
            closers = last_closers(self.reader)
            if not closers:
                raise
            self.note_here("unclosed-object", closers)
            self.emit(closers)
        return True

    def note_here(self, rule: str, detail: str, _: int | None = None) -> None:
        """Notes about the JSON get the position of its string. A control character in it was an escape there."""
        self.reader.watch.escaped |= rule == "raw-control"
        self.note(rule, detail, self.place)


def _unescape(escape: re.Match[str]) -> str:
    return ESCAPES[escape[1]]


def read_string(s: Source, emit: Emit, delta: Delta | None) -> Scan[None]:
    """Passes on the content of a JSON string, unescaped."""
    quote = yield from at(s, '"', "'")
    if not quote:
        raise Malformed("expected a string")
    wanted = marks((quote, "\\"))
    while (hit := (yield from until(s, wanted, emit, delta))) is not None:
        if hit == "\\":
            s.pos -= 1
            emit((yield from unescape(s)))
        elif quote == '"' or (yield from following(s)) in ",:}]":
            return
        else:
            emit(hit)
    raise Malformed("unclosed string")


def write(arguments: Mapping[str, Any] | str, encoded: bool = False, indent: int | None = None) -> str:
    """The arguments as JSON text (text that is JSON already stays unchanged), or as a JSON string that contains it."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, indent=indent)
    return quoted(text) if encoded else text


def grammar(_hole: Json, schema: Schema, _rules: Rules) -> Node:
    """The arguments of a tool with these parameters: a JSON object."""
    from ..grammars.arguments import an_object
    from ..grammars.rules import JsonNode

    return JsonNode(an_object(schema))


def _write_call(_hole: Json, call: ToolCall) -> str:
    return write(call.json or call.arguments)


def _name_ends(hole: Json, ends: tuple[str, ...]) -> tuple[str, ...]:
    """If text may replace the object, the name ends with its line."""
    return ("\n", "{") if hole.plain else ends


HOLE = ArgumentsHole(Json, read_arguments, _write_call, grammar, name_ends=_name_ends)
