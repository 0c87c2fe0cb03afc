"""Arguments as JSON: an object, or a JSON string that holds one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ...events import ArgumentsDelta
from ..jsonscan import ESCAPES, IN_STRING, Emit, Note, json_value, quoted, unescape, whole_value
from ..scan import Delta, Malformed, Scan, Source, at, blank, following, marks, until

NULL = ("null", "None")
RUNS = {
    '"': re.compile(r'(?:[^"\\]+|\\["\\/bfnrt])*').match,
    "'": re.compile(r"""(?:[^'\\]+|\\["'\\/bfnrt])*""").match,
}
"""What of a string in these quotes can be told without looking further."""
SIMPLE = re.compile(r"\\(.)").sub


def read(s: Source, emit: Emit, note: Note, delta: Delta | None = ArgumentsDelta) -> Scan[None]:
    """Pass the arguments on as JSON text; null is {}."""
    c = yield from following(s)
    if c in ('"', "'") and c:
        yield from blank(s)
        yield from _encoded(s, c, emit, note, delta)
    elif c in ("n", "N") and (yield from at(s, *NULL)):
        emit("{}")
    elif c in ("{", "["):
        yield from json_value(s, emit, note, delta)
    else:
        raise Malformed("no arguments")


def _encoded(s: Source, quote: str, emit: Emit, note: Note, delta: Delta | None) -> Scan[None]:
    """The content of a JSON string, unescaped and read as JSON in turn; none at all is {}."""
    inner = _Inner(emit, note, delta)
    s.place = s.base + s.pos
    s.pos += 1
    _give_whole(s, quote, inner)
    run = RUNS[quote]
    while True:
        m = run(s.text, s.pos)
        if m and m.end() > m.start():
            s.pos = m.end()
            inner.give(SIMPLE(_meant, m[0]) if "\\" in m[0] else m[0])
        if s.pos == len(s.text):
            if s.closed:
                raise Malformed("unclosed string")
            lane = delta and inner.source.lane is IN_STRING and quote == '"'
            s.lane, s.delta = (IN_STRING, delta) if lane else (None, None)
            yield
        elif s.text[s.pos] == quote:
            break
        else:
            inner.give((yield from unescape(s)))
    s.pos += 1
    inner.close()
    s.place = None


def _meant(escape: re.Match[str]) -> str:
    return ESCAPES[escape[1]]


def _give_whole(s: Source, quote: str, inner: _Inner) -> None:
    """A string that is all here goes the short way, up to its closing quote."""
    if quote != '"':
        return
    whole = whole_value(s.text, s.pos - 1, strict=False)
    if whole and isinstance(whole[0], str):
        inner.give(whole[0])
        s.pos = whole[1] - 1


class _Inner:
    """A reader of JSON within a string. Its failure waits for the end of the string, so that no cut shows."""

    def __init__(self, emit: Emit, note: Note, delta: Delta | None) -> None:
        self.source = Source()
        self.emit = emit
        self.value = json_value(self.source, emit, note, delta)
        self.failed: Malformed | None = None
        self.filled = self.done = False
        self.step()

    def step(self) -> None:
        try:
            self.done = next(self.value, True) is True
        except Malformed as e:
            self.failed, self.source.lane = e, None

    def give(self, piece: str) -> None:
        self.filled = self.filled or bool(piece.strip())
        if self.failed:
            return
        if not self.done:
            self.source.add(piece)
            self.step()
            piece = self.source.text[self.source.pos :] if self.done else ""
        if piece.strip():
            self.failed = Malformed("text after the arguments")

    def close(self) -> None:
        if not self.filled:
            return self.emit("{}")
        self.source.closed = True
        if not (self.done or self.failed):
            self.step()
        if self.failed:
            raise self.failed
        return None


def read_string(s: Source, emit: Emit, delta: Delta | None) -> Scan[None]:
    """Pass on the content of a JSON string, unescaped."""
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
    """The arguments as JSON text (text that is JSON already stays as it is), or as a JSON string holding it."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, indent=indent)
    return quoted(text) if encoded else text


def read_hole(s, hole, schema, follow):
    yield from read(s, s.args, s.note)
