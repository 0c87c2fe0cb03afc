"""One JSON value as it arrives: passed on as written, repaired only where a strict reader would refuse it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NoReturn

from . import literal
from .literal import begins_key, begins_value, next_visible
from .scan import GAP, SPACE, Delta, Machine, Malformed, Scan, Source

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
NUMBER_OR_WORD = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null").fullmatch
KEY_WORD = re.compile(r"[^\W\d]\w*").fullmatch
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]").search
PYTHON = {"True": "true", "False": "false", "None": "null"}


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
    yield from JsonReader(s, emit, note, delta).run()


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
_WORD = r"(?:-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?|true|false|null)(?=[\s,\]}])"
_TEXT = r'"[^"\\\x00-\x1f]*+"'
SURE = {
    close: re.compile(
        rf"\s*+(?:([\[{{])|({re.escape(close)})|(,)(?=\s*+{after})|({_TEXT})(?=\s*+(?:[\]}}]|,\s*+{follows}))|({_WORD}){key})"
    ).match
    for close, after, follows, key in (
        ("]", rf'(?:["\[{{]|{_WORD})', rf'(?:["\[{{\]]|{_WORD})', ""),
        ("}", '"', r'["}]', rf"|({_TEXT}\s*+:)"),
    )
}
"""A token that is legal and needs no repair whatever follows, by what closes the bracket it is in."""
OPENER, CLOSER, COMMA, KEY_AND_COLON = 1, 2, 3, 6
AFTER_STRING = {VALUE: AFTER, FIRST_VALUE: AFTER, KEY: COLON, FIRST_KEY: COLON}


class JsonReader(Machine):
    """A value token by token. `want` is what may come next; a comma waits for what follows it; `quote` opened the string read."""

    __slots__ = ("comma", "comma_at", "delta", "emit", "note", "quote", "stack", "want")

    def __init__(self, s: Source, emit: Emit, note: Note | None, delta: Delta | None) -> None:
        super().__init__(s, self.begin)
        self.emit, self.note, self.delta = emit, note, delta
        self.stack: list[str] = []
        self.want = VALUE
        self.comma = self.quote = ""
        self.comma_at = 0

    def begin(self) -> bool:
        """A value that is all here goes the short way."""
        s = self.s
        s.pos = SPACE(s.text, s.pos).end()
        if s.pos == len(s.text):
            if s.closed:
                raise Malformed("no value")
            return False
        self.mode = self.tokens
        if s.text[s.pos] in '{["' and (whole := whole_value(s.text, s.pos)):
            self.emit(s.text[s.pos : whole[1]])
            s.pos = whole[1]
            self.mode = None
        return True

    def tokens(self) -> bool:
        s, stack = self.s, self.stack
        while True:
            if stack and self.sure():
                self.mode = None
                return True
            text, pos = s.text, s.pos
            if pos == len(text) and not s.closed:
                return False
            m = TOKEN(text, pos)
            if m is None or (m.end() == len(text) and m.lastindex == 2 and not s.closed):
                self.pause(m)
                return False
            kind = m[1] or WORD
            if self.want + kind not in LEGAL and not (self.comma and kind in "}]"):
                self.refuse(m, f"{m[m.lastindex or 0][:40]!r} where none may be")
            if kind == WORD:
                self.word(m)
            elif kind == ",":
                self.separate(m)
            elif kind in ENDS:
                if self.string(m, kind):
                    return True
            else:
                self.bracket(m, kind)
            if not stack:
                self.mode = None
                return True

    def sure(self) -> bool:
        """Pass on, as they are, the tokens that are sure. Is the value whole?"""
        stack, want, text = self.stack, self.want, self.s.text
        start = pos = self.s.pos
        while m := SURE[stack[-1]](text, pos):
            kind = m.lastindex
            if kind == CLOSER:
                if want != AFTER and want != FIRST_VALUE and want != FIRST_KEY:
                    break
                stack.pop()
                want = AFTER
            elif kind == COMMA:
                if want != AFTER:
                    break
                want = KEY if stack[-1] == "}" else VALUE
            elif kind == KEY_AND_COLON:
                if want != KEY and want != FIRST_KEY:
                    break
                want = VALUE
            elif want != VALUE and want != FIRST_VALUE:
                break
            elif kind == OPENER:
                opened = m[1] == "{"
                stack.append("}" if opened else "]")
                want = FIRST_KEY if opened else FIRST_VALUE
            else:
                want = AFTER
            pos = m.end()
            if not stack:
                break
        if pos > start:
            self.emit(self.comma + text[start:pos])
            self.s.pos, self.want, self.comma = pos, want, ""
        return not stack

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

    def string(self, m: re.Match[str], quote: str) -> bool:
        """A string that is all here passes as it is, another one's quote, with its content to come."""
        self.want = AFTER_STRING[self.want]
        if quote == '"':
            if (whole := STRING(self.s.text, m.start(1))) and self.closes(quote, whole.end()):
                self.write(whole, self.s.text[self.s.pos : whole.end()])
                return False
            self.write(m, m[0])
        elif self.note is None:
            self.refuse(m, "a quote that is not JSON's")
        else:
            self.repair(m, "single-quotes" if quote == "'" else "smart-quotes", '"')
        self.quote, self.mode = quote, self.content
        return True

    def content(self) -> bool:
        """The rest of a string whose quote was passed on."""
        s, emit, quote = self.s, self.emit, self.quote
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
                if self.delta:
                    s.lane, s.delta = IN_QUOTED[quote], self.delta
                return False
            c = text[i]
            if c in ends and (closes := self.closes(quote, i + 1)) is not False:
                if closes:
                    s.pos += 1
                    emit('"')
                    self.mode = self.tokens if self.stack else None
                return bool(closes)
            if c == "\\":
                if not self.escape():
                    return False
            else:
                self.odd(c)

    def odd(self, c: str) -> None:
        """A quote that ends nothing, or a raw control character."""
        if self.note and c in ENDS[self.quote] and self.quote != "'":
            self.note("quote-in-string", "")
        self.s.pos += 1
        if self.note and c < " ":
            self.note("raw-control", "")
        self.emit(escaped(c) if self.note else c)

    def escape(self) -> bool:
        """A backslash and what follows it."""
        s, note = self.s, self.note
        pair = s.text[s.pos : s.pos + 2]
        if len(pair) < 2 and not s.closed:
            return False
        if note is None or (len(pair) == 2 and pair[1] in '"\\/bfnrt'):
            s.pos += len(pair)
            self.emit(pair)
            return True
        found = literal.escape(s.text, s.pos, s.closed) if pair[1:] == "u" else ("", 1, False)
        if found is None:
            return False
        _, size, lone = found
        written = s.text[s.pos : s.pos + size]
        s.pos += max(size, len(pair))
        if size > 1:
            self.emit("\\ufffd" if lone else written)
            if lone:
                note("lone-surrogate", "")
        elif pair == "\\'":
            self.emit("'")
        else:
            note("bad-escape", pair)
            self.emit("\\\\" + escaped(pair[1:]))
        return True

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
        return c in ",}]" or (c == ":" and self.want == COLON)

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
