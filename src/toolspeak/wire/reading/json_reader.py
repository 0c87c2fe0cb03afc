"""Reads one JSON value as it arrives. It is passed on as written, and repaired only where a strict parser would reject
it.

A complete value takes one step (`whole_value`), a run of certain tokens one match (`SURE`). A comma waits for the
next token, because a trailing one is dropped."""

from __future__ import annotations

import re
from typing import NoReturn

from . import literals, missing_quotes
from .json_string import repaired_escape
from .json_tokens import (
    CLEAN,
    ENDS,
    IN_QUOTED,
    KEY_WORD,
    NUMBER_OR_WORD,
    PYTHON,
    SCALAR,
    STRING,
    SURE,
    TOKEN,
    AddNote,
    Emit,
    escaped,
    quoted,
    whole_value,
)
from .literals import before_word, begins_key, begins_value, comes, next_visible
from .source import GAP, SPACE, Delta, Machine, Malformed, Source, Words

# What may come next: a value (V: or the end of its list), a key (K: or the end of its object), a colon, or what
# follows a value. A word is any run of other characters.
VALUE, FIRST_VALUE, KEY, FIRST_KEY, COLON, AFTER = "vVkKca"
WORD = "w"
LEGAL = frozenset(
    want + kind
    for wants, kinds in (
        *(("vV", ["{", "[", "w", *ENDS]), ("kK", ["w", *ENDS]), ("c", ":")),
        *(("a", ",}]"), ("V", "]"), ("K", "}")),
    )
    for want in wants
    for kind in kinds
)
OPENER, CLOSER, COMMA, HALF_TEXT, HALF_WORD, LAST_COMMA = 1, 2, 3, 7, 8, 9
PLACES = ("", "vV", "aVK", "a", "vV", "vV", "kK", "", "", "")
"""By group of SURE: the states in which such a token is legal. LATER has the state after it."""
LATER = ("", "", AFTER, "", AFTER, AFTER, VALUE)
IN_JSON = IN_QUOTED['"']
NESTED, NUMBER = 1, 2
SHORT_KEY = 32
"""A key of up to so many characters is passed on in one piece."""
AFTER_STRING = {VALUE: AFTER, FIRST_VALUE: AFTER, KEY: COLON, FIRST_KEY: COLON}


class JsonReader(Machine):
    """Reads token by token. `want` is what may come next, `comma` is held back, `quote` opened the current string.
    `unsure`: why closers may not be added here."""

    __slots__ = ("beyond", "comma", "comma_at", "delta", "emit", "note", "quote", "stack", "unsure", "want", "watch")

    def __init__(self, s: Source, emit: Emit, note: AddNote | None, delta: Delta | None, beyond: Words = ()) -> None:
        super().__init__(s, self.begin)
        self.emit, self.note, self.delta, self.beyond = emit, note, delta, beyond
        self.stack: list[str] = []
        self.want = VALUE
        self.comma = self.quote = ""
        self.comma_at, self.unsure = 0, 0
        self.watch = missing_quotes.Watch(named=False)

    def begin(self) -> bool:
        """Fast path for a value that has arrived completely."""
        s = self.s
        s.pos = SPACE(s.text, s.pos).end()
        if s.pos == len(s.text):
            if s.closed:
                raise Malformed("no value")
            return False
        self.mode = self.tokens
        if s.text[s.pos] in '{["' and (whole := whole_value(s.text, s.pos)):
            text = s.text[s.pos : whole[1]]
            self.emit(text)
            s.pos = whole[1]
            if s.decoded is not None:
                s.decoded[id(text)] = text, whole[0]
            self.mode = None
        return True

    def tokens(self) -> bool:
        s, stack = self.s, self.stack
        while True:
            if stack:
                waits = self.sure()
                if not stack:
                    self.mode = None
                if waits or not stack:
                    return not waits
            text, pos = s.text, s.pos
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
        """Passes on tokens that need no check. Returns whether the next one needs more text."""
        s, stack, want = self.s, self.stack, self.want
        text, pos, kind = s.text, s.pos, 0
        while m := SURE[stack[-1]](text, pos):
            kind = m.lastindex or 0
            if want not in PLACES[kind]:
                break
            if kind == OPENER:
                closer = "}" if m[1] == "{" else "]"
                self.unsure |= stack[-1] == closer
                stack.append(closer)
                want = FIRST_KEY if m[1] == "{" else FIRST_VALUE
            elif kind == COMMA:
                want = KEY if stack[-1] == "}" else VALUE
            else:
                want = LATER[kind]
                if kind == CLOSER:
                    stack.pop()
            pos = m.end()
            if not stack:
                break
        if pos > s.pos:
            self.emit(self.comma + text[s.pos : pos])
            s.pos, self.want, self.comma = pos, want, ""
        if not stack or s.closed:
            return False
        return self.half(m, kind) if m and kind >= HALF_TEXT else pos == len(text)

    def half(self, m: re.Match[str], kind: int) -> bool:
        """An incomplete token; the present part of a string is passed on. Returns whether more text is needed."""
        s, want, end = self.s, self.want, m.end(HALF_TEXT)
        if kind == HALF_WORD:
            self.here(m)
            return True
        if kind == LAST_COMMA:
            return self.note is not None and want == AFTER and self.hold(m)
        if want in (KEY, FIRST_KEY):
            self.here(m)
            if self.comma:  # a key follows, so the comma is no trailing one
                self.emit(self.comma)
                self.comma = ""
            return m.end() - s.pos <= SHORT_KEY  # including whitespace after it, which may be endless
        if want not in (VALUE, FIRST_VALUE):
            return False
        piece = s.text[s.pos : end]
        self.emit(self.comma + piece)
        s.pos, self.want, self.comma = end, AFTER, ""
        self.quote, self.mode = '"', self.content
        self.watch.begin(piece.lstrip()[1:])
        if end == len(s.text):
            self.watch.let_pass(s, IN_JSON, self.delta)
        return True

    def hold(self, m: re.Match[str]) -> bool:
        """Holds a comma back in case a closer follows."""
        s, start = self.s, m.start(m.lastindex or 0)
        self.blank(s.text[s.pos : start])
        self.want = KEY if self.stack[-1] == "}" else VALUE
        self.comma_at, self.comma = s.offset + start, s.text[start : m.end()][:GAP]
        s.pos = m.end()
        return True

    def pause(self, m: re.Match[str] | None) -> None:
        """More text is needed. Whitespace, which may be endless, is passed on."""
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
        """Passes on the whitespace before the token, so that the result does not depend on how the text is cut."""
        start = m.start(m.lastindex or 0)
        self.blank(self.s.text[self.s.pos : start])
        self.s.pos = start

    def refuse(self, m: re.Match[str], why: str) -> NoReturn:
        self.here(m)
        raise Malformed(why)

    def repair(self, m: re.Match[str], rule: str, text: str, detail: str = "") -> None:
        """Passes the token on as `text`, with a note."""
        self.here(m)
        if self.note:
            self.note(rule, detail)
        self.write(m, text)

    def separate(self, m: re.Match[str]) -> None:
        """A comma. It is held back if commas may be repaired."""
        if self.note is not None:
            self.hold(m)
        else:
            self.want = KEY if self.stack[-1] == "}" else VALUE
            self.write(m, m[0])

    def bracket(self, m: re.Match[str], c: str) -> None:
        """A bracket or a colon."""
        if c == ":":
            self.want = VALUE
        elif c == "{" or c == "[":
            closer = "}" if c == "{" else "]"
            self.unsure |= self.stack[-1:] == [closer]
            self.stack.append(closer)
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
        """Drops the comma that was held back, since a closer follows; the whitespace after it stays."""
        self.here(m)
        space, self.comma = self.comma[1:], ""
        if self.note:
            self.note("trailing-comma", "", self.comma_at)
        self.write(m, space + m[0].strip())

    def write(self, m: re.Match[str], text: str) -> None:
        """Passes the token on, after the comma that was held back."""
        if self.comma:
            text, self.comma = self.comma + text, ""
        self.emit(text)
        self.s.pos = m.end()

    def word(self, m: re.Match[str]) -> None:
        """A number, a constant, or an unquoted key."""
        word, want = m[2], self.want
        self.want = AFTER_STRING[want]
        if len(word) > SCALAR:
            self.refuse(m, "a long word")
        if before := before_word(word, self.beyond):
            word, m = before, TOKEN(self.s.text, self.s.pos, m.start(2) + len(before)) or m
            self.unsure |= NUMBER * before[-1].isdigit()
        if self.want == AFTER and NUMBER_OR_WORD(word):
            return self.write(m, m[0])
        if self.note and self.want == AFTER and word in PYTHON:
            return self.repair(m, "python-literal", PYTHON[word], word)
        if self.note and self.want == COLON and KEY_WORD(word):
            return self.repair(m, "bare-key", quoted(word), word)
        return self.refuse(m, f"{word[:40]!r} is not JSON")

    def string(self, m: re.Match[str], quote: str) -> bool:
        """A complete string is passed on; of another one the quote, with its content to come."""
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
        self.watch.begin(quote=quote)
        return True

    def content(self) -> bool:
        """The rest of a string whose quote was passed on."""
        s, emit, quote = self.s, self.emit, self.quote
        clean = CLEAN[quote]
        while True:
            text, pos = s.text, s.pos
            s.pos = i = clean(text, pos).end()
            if i > pos:
                piece = text[pos:i]
                emit(piece)
                self.watch.content += piece
            if i == len(text):
                if s.closed:
                    raise Malformed("unclosed string")
                self.watch.let_pass(s, IN_QUOTED[quote], self.delta)
                return False
            c = text[i]
            if c in ENDS[quote] and (closes := self.closes(quote, i + 1)) is not False:
                if closes:
                    self.shut()
                return bool(closes)
            if c == "\\":
                if i + 1 == len(text) + s.closed or not self.escape():  # more text decides about the last character
                    return False
            else:
                self.odd(c)

    def shut(self) -> None:
        """The string has ended."""
        if self.watch.open and self.note:
            self.note("missing-quote", missing_quotes.DETAIL)
        if self.watch.half_escaped() and self.note:
            self.note("half-escaped", "")
        self.s.pos += 1
        self.emit('"')
        self.mode = self.tokens if self.stack else None

    def odd(self, c: str) -> None:
        """A quote that ends nothing, or a raw control character."""
        if self.note and c in ENDS[self.quote]:
            self.quote_inside(self.note)
        else:
            self.s.pos += 1
            self.watch.content += c
        if self.note and c < " ":
            self.note("raw-control", "")
        self.emit(escaped(c) if self.note else c)

    def quote_inside(self, note: AddNote) -> None:
        """A quote that ends nothing. The call is ambiguous if the next member of the bracket may begin with it."""
        s = self.s
        if self.quote != "'":
            note("quote-in-string", "")
        s.pos += 1
        if literals.SUM(s.text, s.pos):
            note("expression", "")
        begins, key_ends, _ = self.watch.quote(s.text, s.pos)
        if begins if self.stack[-1:] == ["]"] else key_ends:
            note("missing-quote", missing_quotes.DETAIL)

    def escape(self) -> bool:
        """A backslash and what follows it."""
        s, note = self.s, self.note
        pair = s.text[s.pos : s.pos + 2]
        if note is None or (len(pair) == 2 and pair[1] in '"\\/bfnrt'):
            self.watch.content += pair
            s.pos += len(pair)
            self.emit(pair)
            return True
        repair = repaired_escape(s.text, s.pos, s.closed)
        if repair is None:
            return False
        s.pos += repair[1]
        self.watch.escape(pair, repair[2] == "bad-escape", repair[1])
        self.emit(repair[0])
        if repair[2]:
            note("bad-escape" if repair[1] == len(pair) else "lone-surrogate", pair if repair[1] == len(pair) else "")
        return True

    def closes(self, quote: str, i: int) -> bool | None:
        """Whether the quote before `i` ends its string: in a value only if something legal follows. None: not known
        yet."""
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
            return j > i  # two strings in sequence are an error, not one string
        return c in ",}]" or (c == ":" and self.want == COLON) or comes(s.text, j, self.beyond, s.closed)

    def goes_on(self, i: int) -> bool | None:
        """Whether the text at `i` may follow a comma here."""
        s = self.s
        j = next_visible(s.text, i, s.closed)
        if j is None or j < 0:
            return None if j is None else True
        if s.text[j] in ENDS or s.text[j] == self.stack[-1]:
            return True
        if self.stack[-1] == "}":
            return begins_key(s.text, j, ":", s.closed)
        return begins_value(s.text, j, s.closed)
