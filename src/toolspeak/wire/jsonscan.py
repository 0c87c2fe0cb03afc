"""One JSON value as it arrives: passed on as written, repaired only where a strict reader would refuse it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from .scan import CAP, Delta, Malformed, Scan, Source, blank, following, peek

Emit = Callable[[str], None]
Note = Callable[[str, str], None]

SCALAR = 512
"""A number or a bare word is at most this long, in characters."""

TOKEN = re.compile(r"""\s*([{}\[\],:"']|[^\s{}\[\],:"']+)""").match
IN_STRING = re.compile(r'["\\\x00-\x1f]').search
IN_QUOTED = re.compile(r"""["'\\\x00-\x1f]""").search
SHORT = re.compile(r""""[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'""", re.DOTALL).match
NUMBER_OR_WORD = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null").fullmatch
KEY_WORD = re.compile(r"[^\W\d]\w*").fullmatch
PYTHON = {"True": "true", "False": "false", "None": "null"}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/", "'": "'"}


def _refuse(word: str) -> object:
    raise ValueError(word)


def _number(digits: str) -> None:
    """As strict about length as the reader of pieces."""
    if len(digits) > SCALAR:
        raise ValueError(digits[:40])


_decode = json.JSONDecoder(parse_constant=_refuse, parse_int=_number, parse_float=_number).raw_decode
_encode = json.encoder.encode_basestring


def escaped(text: str) -> str:
    """Text as it stands inside a JSON string."""
    return _encode(text)[1:-1]


def quoted(text: str) -> str:
    """Text as a JSON string."""
    return _encode(text)


def json_value(s: Source, emit: Emit, note: Note | None, delta: Delta | None = None) -> Scan[None]:
    """Pass one JSON value on; raises Malformed where it cannot be one, that place not eaten.

    Repaired, each with a note: single quotes, Python's constants, commas before a closer, bare keys, raw
    control characters, unknown escapes. Without `note` nothing is repaired: what passes is as written.
    """
    if not (yield from blank(s)):
        raise Malformed("no value")
    if s.text[s.pos] in '{["':
        try:
            _, end = _decode(s.text, s.pos)
        except (ValueError, RecursionError):
            pass
        else:
            emit(s.text[s.pos : end])
            s.pos = end
            return
    yield from _Tokens(s, emit, note, delta).value()


class _Tokens:
    """A value token by token. `want` is what the grammar allows next; a comma waits for what follows it."""

    __slots__ = ("comma", "delta", "emit", "note", "s", "stack", "want")

    def __init__(self, s: Source, emit: Emit, note: Note | None, delta: Delta | None) -> None:
        self.s, self.emit, self.note, self.delta = s, emit, note, delta
        self.stack: list[str] = []
        self.want = "value"
        self.comma = ""

    def value(self) -> Scan[None]:
        s = self.s
        while True:
            word = yield from self.word()
            c = word[0]
            if c == ",":
                self.separate()
                continue
            if c in "}]":
                self.leave(c)
            elif self.comma:
                self.emit(self.comma)
                self.comma = ""
            if c in "\"'" and self.want not in ("after", "colon"):
                yield from self.string(c)
            elif c not in "}]":
                s.pos += len(word)
                self.emit(self.other(c, word))
            if not self.stack:
                return

    def word(self) -> Scan[str]:
        """The next token, the white space before it eaten: a bracket, comma, colon or quote, or a whole bare word."""
        s = self.s
        while True:
            text, pos = s.text, s.pos
            m = TOKEN(text, pos)
            start = m.start(1) if m else len(text)
            if start > pos:
                self.blank(text[pos:start])
                s.pos = start
            if m is None:
                if s.closed:
                    raise Malformed("unclosed JSON")
                yield
                continue
            word = m[1]
            if len(word) > 1 or word not in "{}[],:\"'":
                if len(word) > SCALAR:
                    raise Malformed("long word")
                if m.end() == len(text) and not s.closed:
                    yield
                    continue
            return word

    def blank(self, space: str) -> None:
        if self.comma:
            self.comma += space
        else:
            self.emit(space)

    def separate(self) -> None:
        """A comma."""
        if self.want != "after":
            raise Malformed("a comma where none may be")
        self.s.pos += 1
        self.want = "key" if self.stack[-1] == "}" else "value"
        if self.note is None:
            self.emit(",")
        else:
            self.comma = ","

    def leave(self, c: str) -> None:
        """A closing bracket."""
        if (
            not self.stack
            or self.stack[-1] != c
            or not (self.comma or self.want in ("after", "first key", "first value"))
        ):
            raise Malformed(f"{c!r} where none may be")
        if self.comma and self.note:
            self.note("trailing-comma", "")
            self.emit(self.comma[1:])
            self.comma = ""
        self.s.pos += 1
        self.emit(c)
        self.stack.pop()
        self.want = "after"

    def other(self, c: str, word: str) -> str:
        """What to write for a colon, an opening bracket or a bare word."""
        want = self.want
        if want == "after" or (want == "colon") != (c == ":"):
            self.s.pos -= len(word)
            raise Malformed(f"{word[:40]!r} where {'a comma' if want == 'after' else 'a ' + want} was expected")
        if c == ":":
            self.want = "value"
        elif want in ("key", "first key"):
            self.want = "colon"
            return self.bare_key(word)
        elif c in "{[":
            self.stack.append("}" if c == "{" else "]")
            self.want = "first key" if c == "{" else "first value"
        else:
            self.want = "after"
            return self.scalar(word)
        return word

    def scalar(self, word: str) -> str:
        if NUMBER_OR_WORD(word):
            return word
        if self.note is None or word not in PYTHON:
            self.s.pos -= len(word)
            raise Malformed(f"not JSON: {word[:40]!r}")
        self.note("python-literal", word)
        return PYTHON[word]

    def bare_key(self, word: str) -> str:
        if self.note is None or not KEY_WORD(word):
            self.s.pos -= len(word)
            raise Malformed(f"not a key: {word[:40]!r}")
        self.note("bare-key", word)
        return quoted(word)

    def string(self, quote: str) -> Scan[None]:
        """A string, its quotes included, as JSON writes it."""
        s, emit, note, delta = self.s, self.emit, self.note, self.delta
        if quote == "'":
            if note is None:
                raise Malformed("a single quote")
            note("single-quotes", "")
        self.want = "colon" if self.want in ("key", "first key") else "after"
        emit('"')
        s.pos += 1
        search = IN_STRING if quote == '"' else IN_QUOTED
        while True:
            text, pos = s.text, s.pos
            m = search(text, pos)
            if m is None:
                if pos < len(text):
                    emit(text[pos:])
                    s.pos = len(text)
                if s.closed:
                    raise Malformed("unclosed string")
                s.lane, s.delta = (search, delta) if delta else (None, None)
                yield
                continue
            i, c = m.start(), m[0]
            if i > pos:
                emit(text[pos:i])
            s.pos = i
            if c == quote and (c == '"' or (yield from following(s, 1)) in ",:}]"):
                s.pos += 1
                return emit('"')
            if c == "\\":
                yield from _escape(s, emit, note)
            else:
                s.pos += 1
                if c < " " and note:
                    note("raw-control", "")
                emit(escaped(c) if note else c)


def _escape(s: Source, emit: Emit, note: Note | None) -> Scan[None]:
    """A backslash and what follows it."""
    pair = yield from peek(s, 2)
    s.pos += len(pair)
    if note is None or (len(pair) == 2 and pair[1] in '"\\/bfnrt'):
        emit(pair)
        return
    if pair[1:] == "u":
        digits = yield from peek(s, 4)
        if re.fullmatch("[0-9a-fA-F]{4}", digits):
            return emit(pair)
    if pair == "\\'":
        return emit("'")
    note("bad-escape", pair)
    emit("\\\\" + escaped(pair[1:]))


def short_string(s: Source, most: int = CAP) -> Scan[str]:
    """A short string in either quotes, as Python text. Eats nothing until it is whole."""
    if (yield from following(s)) not in ('"', "'"):
        raise Malformed("expected a string")
    yield from blank(s)
    while not (m := SHORT(s.text, s.pos, s.pos + most + 2)):
        if s.closed or len(s.text) - s.pos >= most + 2:
            raise Malformed("an unclosed or long string")
        yield
    s.pos = m.end()
    body = m[0][1:-1] if m[0][0] == '"' else m[0][1:-1].replace("\\'", "'").replace('"', '\\"')
    try:
        return json.loads(f'"{body}"', strict=False)
    except ValueError:
        return body


def unescape(s: Source) -> Scan[str]:
    """What a backslash and the characters after it stand for, as text; an unknown escape stays as written.

    Half of a surrogate pair, which no text can hold, becomes U+FFFD.
    """
    pair = yield from peek(s, 2)
    s.pos += len(pair)
    if pair[1:] != "u":
        return ESCAPES.get(pair[1:], pair)
    code = yield from _hex(s, 0)
    if code < 0:
        return pair
    s.pos += 4
    if 0xD800 <= code < 0xDC00 and (yield from peek(s, 2)) == "\\u":
        low = yield from _hex(s, 2)
        if 0xDC00 <= low < 0xE000:
            s.pos += 6
            code = 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00
    return chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd"


def _hex(s: Source, offset: int) -> Scan[int]:
    """Four hexadecimal digits at `offset` from here as a number, -1 if there are none. Eats nothing."""
    digits = (yield from peek(s, offset + 4))[offset:]
    return int(digits, 16) if re.fullmatch("[0-9a-fA-F]{4}", digits) else -1
