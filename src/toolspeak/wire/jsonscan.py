"""One JSON value as it arrives: passed on as written, repaired only where a strict reader would refuse it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NoReturn

from .literal import begins_key, begins_value, comes, next_visible
from .scan import CAP, GAP, Delta, Malformed, Scan, Source, blank, following, peek

Emit = Callable[[str], None]
Note = Callable[[str, str], None]

SCALAR = 512
"""A number or a bare word is at most this long, in characters."""

TOKEN = re.compile(r"""\s*(?:([{}\[\],:"'“”„‘’«»])|([^\s{}\[\],:"'“”„‘’«»]+))""").match
STRING = re.compile(r'"[^"\\\x00-\x1f]*"').match
IN_STRING = re.compile(r'["\\\x00-\x1f]').search
ENDS = {'"': '"', "'": "'"} | dict.fromkeys("“”„", "“”") | dict.fromkeys("‘’", "‘’") | {"«": "»", "»": "«"}
"""What may end a string, by what begins it."""
IN_QUOTED = {c: re.compile(rf"""["{ends}\\\x00-\x1f]""").search for c, ends in ENDS.items()} | {'"': IN_STRING}
CLEAN = {
    c: re.compile(rf"""(?:[^{ends}"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{{4}})*+""").match
    for c, ends in ENDS.items()
}
"""What of a string's content may stand as it is."""
IN_SHORT = {c: re.compile(rf"(?:[^{ends}\\]+|\\.)*", re.DOTALL).match for c, ends in ENDS.items()}
NUMBER_OR_WORD = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null").fullmatch
KEY_WORD = re.compile(r"[^\W\d]\w*").fullmatch
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]").search
LONE = re.compile("[\ud800-\udfff]").sub
PYTHON = {"True": "true", "False": "false", "None": "null"}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/", "'": "'"}


def _refuse(word: str) -> object:
    raise ValueError(word)


def _number(digits: str) -> None:
    """As strict about length as the reader of pieces."""
    if len(digits) > SCALAR:
        raise ValueError(digits[:40])


_strict = json.JSONDecoder(
    parse_constant=_refuse,
    parse_int=_number,
    parse_float=_number,
    object_pairs_hook=len,  # only where the value ends is asked: objects that nobody reads cost memory, and time
).raw_decode
_lenient = json.JSONDecoder(strict=False).raw_decode
_lenient_text = json.JSONDecoder(strict=False).decode
_encode = json.encoder.encode_basestring


def escaped(text: str) -> str:
    """Text as it stands inside a JSON string."""
    return _encode(text)[1:-1]


def quoted(text: str) -> str:
    """Text as a JSON string."""
    return _encode(text)


def whole_value(text: str, pos: int, strict: bool = True) -> tuple[object, int] | None:
    """The JSON value at `pos` and where it ends, if all of it is there; `strict` tells that end alone.

    One with escapes of surrogates, of which a half may be missing, is left to those who look closer.
    Looks at small windows first: a decoder's error costs time in proportion to what lies before it.
    """
    size = 1024
    while True:
        window = text[pos : pos + size]
        try:
            value, end = (_strict if strict else _lenient)(window)
        except json.JSONDecodeError as e:
            cut = e.pos > len(window) - 16 or e.msg.startswith("Unterminated")
            if not cut or pos + size >= len(text):
                return None
        except (ValueError, RecursionError):
            return None
        else:
            return None if SURROGATE(window, 0, end) else (value, pos + end)
        # Then all the rest at once: one window after another would double the work at each of their lengths.
        size = size * 8 if size < 8192 else len(text)


def json_value(s: Source, emit: Emit, note: Note | None, delta: Delta | None = None) -> Scan[None]:
    """Pass one JSON value on; raises Malformed where it cannot be one, that place not eaten.

    Repaired, each with a note: single and typographic quotes, quotes within strings, Python's constants, commas before a closer, bare keys, raw
    control characters, unknown escapes, halves of surrogate pairs. Without `note` nothing is repaired: what passes is as written.
    """
    if not (yield from blank(s)):
        raise Malformed("no value")
    if s.text[s.pos] in '{["' and (whole := whole_value(s.text, s.pos)):
        emit(s.text[s.pos : whole[1]])
        s.pos = whole[1]
        return
    yield from _Tokens(s, emit, note, delta).value()


# What may come where: a value (V: or the end of its list), a key (K: or the end of its object), a colon, or what
# comes after a value. A word is any run of other characters.
VALUE, FIRST_VALUE, KEY, FIRST_KEY, COLON, AFTER = "vVkKca"
WORD = "w"
LEGAL = frozenset(
    want + kind
    for wants, kinds in (
        ("vV", ["{", "[", "w", *ENDS]),
        ("kK", ["w", *ENDS]),
        ("c", ":"),
        ("a", ",}]"),
        ("V", "]"),
        ("K", "}"),
    )
    for want in wants
    for kind in kinds
)
AFTER_STRING = {VALUE: AFTER, FIRST_VALUE: AFTER, KEY: COLON, FIRST_KEY: COLON}


class _Tokens:
    """A value token by token. `want` is what may come next; a comma waits for what follows it."""

    __slots__ = ("comma", "comma_at", "delta", "emit", "note", "s", "stack", "want")

    def __init__(self, s: Source, emit: Emit, note: Note | None, delta: Delta | None) -> None:
        self.s, self.emit, self.note, self.delta = s, emit, note, delta
        self.stack: list[str] = []
        self.want = VALUE
        self.comma = ""
        self.comma_at = 0

    def value(self) -> Scan[None]:
        s, stack = self.s, self.stack
        while True:
            text, pos = s.text, s.pos
            m = TOKEN(text, pos)
            if m is None or (m.end() == len(text) and m.lastindex == 2 and not s.closed):
                self.pause(m)
                yield
                continue
            kind = m[1] or WORD
            if self.want + kind not in LEGAL and not (self.comma and kind in "}]"):
                self.refuse(m, f"{m[m.lastindex or 0][:40]!r} where none may be")
            if kind == WORD:
                self.word(m)
            elif kind == ",":
                self.separate(m)
            elif kind in ENDS:
                yield from self.string(m, kind)
            else:
                self.bracket(m, kind)
            if not stack:
                return

    def pause(self, m: re.Match[str] | None) -> None:
        """More text is needed. What is certain goes out: white space, which may be endless."""
        s = self.s
        start = m.start(2) if m else len(s.text)
        if m and len(m[2]) > SCALAR:
            self.refuse(m, "a long word")
        self.blank(s.text[s.pos : start])
        s.pos = start
        if m is None and s.closed:
            raise Malformed("unclosed JSON")

    def blank(self, space: str) -> None:
        if self.comma:
            self.comma = (self.comma + space)[:GAP]
        elif space:
            self.emit(space)

    def here(self, m: re.Match[str]) -> None:
        """Pass the white space before the token on, so that nothing shows where the text was cut."""
        start = m.start(m.lastindex or 0)
        self.blank(self.s.text[self.s.pos : start])
        self.s.pos = start

    def refuse(self, m: re.Match[str], why: str) -> NoReturn:
        self.here(m)
        raise Malformed(why)

    def repair(self, m: re.Match[str], rule: str, text: str, detail: str = "") -> None:
        """Pass the token on as `text`, with a note."""
        self.here(m)
        if self.note:
            self.note(rule, detail)
        self.write(m, text)

    def separate(self, m: re.Match[str]) -> None:
        """A comma. Where commas may be repaired it waits, in case a closer follows."""
        self.want = KEY if self.stack[-1] == "}" else VALUE
        if self.note is None:
            self.write(m, m[0])
        else:
            self.here(m)
            self.comma_at = self.s.base + self.s.pos
            self.s.pos, self.comma = m.end(), ","

    def bracket(self, m: re.Match[str], c: str) -> None:
        """A bracket or a colon."""
        if c == ":":
            self.want = VALUE
        elif c == "{" or c == "[":
            self.stack.append("}" if c == "{" else "]")
            self.want = FIRST_KEY if c == "{" else FIRST_VALUE
        elif self.stack[-1] != c:
            self.refuse(m, f"{c!r} where none may be")
        else:
            self.stack.pop()
            self.want = AFTER
            if self.comma:
                return self.drop_comma(m)
        return self.write(m, m[0])

    def drop_comma(self, m: re.Match[str]) -> None:
        """A closer follows the comma that waited: it goes, the white space behind it stays."""
        self.here(m)
        space, self.comma = self.comma[1:], ""
        if self.note:
            place, self.s.place = self.s.place, self.comma_at if self.s.place is None else self.s.place
            self.note("trailing-comma", "")
            self.s.place = place
        self.write(m, space + m[0].strip())

    def write(self, m: re.Match[str], text: str) -> None:
        """Pass the token on, after the comma that waited for it."""
        if self.comma:
            text, self.comma = self.comma + text, ""
        self.emit(text)
        self.s.pos = m.end()

    def word(self, m: re.Match[str]) -> None:
        """A number, a constant, a key without quotes."""
        word, want = m[2], self.want
        self.want = AFTER_STRING[want]
        if len(word) > SCALAR:
            self.refuse(m, "a long word")
        if self.want == AFTER and NUMBER_OR_WORD(word):
            return self.write(m, m[0])
        if self.note and self.want == AFTER and word in PYTHON:
            return self.repair(m, "python-literal", PYTHON[word], word)
        if self.note and self.want == COLON and KEY_WORD(word):
            return self.repair(m, "bare-key", quoted(word), word)
        return self.refuse(m, f"{word[:40]!r} is not JSON")

    def string(self, m: re.Match[str], quote: str) -> Scan[None]:
        """A string, its quotes included, as JSON writes it."""
        self.want = AFTER_STRING[self.want]
        if quote == '"':
            if (whole := STRING(self.s.text, m.start(1))) and self.closes(quote, whole.end()):
                return self.write(whole, self.s.text[self.s.pos : whole.end()])
            self.write(m, m[0])
        elif self.note is None:
            self.refuse(m, "a quote that is not JSON's")
        else:
            self.repair(m, "single-quotes" if quote == "'" else "smart-quotes", '"')
        yield from self.content(quote)

    def content(self, quote: str) -> Scan[None]:
        """The rest of a string whose quote was passed on."""
        s, emit, note, delta = self.s, self.emit, self.note, self.delta
        clean, ends = CLEAN[quote], ENDS[quote]
        while True:
            text, pos = s.text, s.pos
            m = clean(text, pos)
            s.pos = i = m.end() if m else pos
            if i > pos:
                emit(text[pos:i])
            if i == len(text):
                if s.closed:
                    raise Malformed("unclosed string")
                s.lane, s.delta = (IN_QUOTED[quote], delta) if delta else (None, None)
                yield
                continue
            c = text[i]
            if c in ends:
                while (closes := self.closes(quote, s.pos + 1)) is None:
                    yield
                if closes:
                    s.pos += 1
                    return emit('"')
                if note and quote != "'":
                    note("quote-in-string", "")
            if c == "\\":
                yield from _escape(s, emit, note)
            else:
                s.pos += 1
                if c < " " and note:
                    note("raw-control", "")
                emit(escaped(c) if note else c)

    def closes(self, quote: str, i: int) -> bool | None:
        """Does the quote before `i` end its string? One in a value does where something legal follows; None: not known yet."""
        if self.note is None or (quote == '"' and (self.want == COLON or not self.stack)):
            return True
        s = self.s
        if s.text[i : i + 1] in ("}", "]"):
            return True
        j = next_visible(s.text, i, s.closed)
        if j is None or j < 0:
            return None if j is None else True
        c = s.text[j]
        if c == "," and self.want == AFTER and self.stack:
            return self.goes_on(j + 1)
        if c in ENDS:
            return j > i  # a string behind a string is refused, not taken for one of them
        return c in ",}]" or (c == ":" and self.want == COLON) or comes(s.text, j, s.beyond, s.closed)

    def goes_on(self, i: int) -> bool | None:
        """May what comes at `i` follow a comma here?"""
        s = self.s
        j = next_visible(s.text, i, s.closed)
        if j is None or j < 0:
            return None if j is None else True
        if s.text[j] in ENDS or s.text[j] == self.stack[-1]:
            return True
        if self.stack[-1] == "}":
            return begins_key(s.text, j, ":", s.closed)
        return begins_value(s.text, j, s.closed)


def _escape(s: Source, emit: Emit, note: Note | None) -> Scan[None]:
    """A backslash and what follows it."""
    pair = yield from peek(s, 2)
    s.pos += len(pair)
    if note is None or (len(pair) == 2 and pair[1] in '"\\/bfnrt'):
        emit(pair)
        return
    if pair[1:] == "u" and (code := (yield from _hex(s, 0))) >= 0:
        size = 4
        if 0xD800 <= code < 0xDC00 and (yield from peek(s, 6))[4:] == "\\u":
            size = 10 if 0xDC00 <= (yield from _hex(s, 6)) < 0xE000 else 4
        lone = 0xD800 <= code < 0xE000 and size == 4
        emit("\\ufffd" if lone else pair + s.text[s.pos : s.pos + size])
        s.pos += size
        return note("lone-surrogate", "") if lone else None
    if pair == "\\'":
        return emit("'")
    note("bad-escape", pair)
    emit("\\\\" + escaped(pair[1:]))


def short_string(s: Source, most: int = CAP) -> Scan[str]:
    """A string of at most `most` characters in any quotes, as Python text. Eats nothing until it is whole."""
    if (yield from following(s)) not in ENDS:
        raise Malformed("expected a string")
    yield from blank(s)
    quote, size = s.text[s.pos], 1
    while True:
        m = IN_SHORT[quote](s.text, s.pos + size, s.pos + most + 2)
        size = m.end() - s.pos if m else size
        if s.text.startswith(tuple(ENDS[quote]), s.pos + size):
            break
        if s.closed or size > most:
            raise Malformed("an unclosed or long string")
        yield
    body = s.text[s.pos + 1 : s.pos + size]
    s.pos += size + 1
    if quote != '"':
        body = body.replace("\\'", "'").replace('"', '\\"')
    try:
        return LONE("\ufffd", _lenient_text(f'"{body}"'))
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
