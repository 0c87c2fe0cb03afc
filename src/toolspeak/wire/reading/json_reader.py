"""Reads one JSON value as it arrives. It is passed on as written, and repaired only where a strict parser would reject
it.

A complete value takes one step (`whole_value`), a run of certain tokens one match (`SURE`). A comma waits for the
next token, because a trailing one is dropped."""

from __future__ import annotations

import re
from typing import NoReturn

from .json_states import (
    AFTER,
    AFTER_STRING,
    CLOSER,
    COLON,
    COMMA,
    FIRST_KEY,
    FIRST_VALUE,
    HALF_TEXT,
    HALF_WORD,
    KEY,
    LAST_COMMA,
    LATER,
    LEGAL,
    NAME,
    OPENER,
    OPENS,
    PLACES,
    VALUE,
    WORD,
)
from .json_string_reader import JsonStringReader
from .json_tokens import (
    ENDS,
    IN_QUOTED,
    KEY_WORD,
    NUMBER_OR_WORD,
    PYTHON,
    SCALAR,
    STRING,
    SURE,
    TOKEN,
    quoted,
    whole_value,
)
from .literals import before_word
from .object_names import KeyEmitter, add_name
from .source import GAP, SPACE, Malformed

IN_JSON = IN_QUOTED['"']
NESTED, NUMBER = 1, 2
SHORT_KEY = 32
"""A key of up to so many characters is passed on in one piece."""


class JsonReader(JsonStringReader):
    """Reads token by token. `want` is what may come next, `comma` is held back, `quote` opened the current string.
    `unsure`: why closers may not be added here. `names` are those of each open bracket."""

    __slots__ = ()

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
        s, stack, names, want = self.s, self.stack, self.names, self.want
        text, pos, kind = s.text, s.pos, 0
        while m := SURE[stack[-1]](text, pos):
            kind = m.lastindex or 0
            if want not in PLACES[kind]:
                break
            if kind == OPENER:
                closer, want = OPENS[m[1]]
                self.unsure |= stack[-1] == closer
                stack.append(closer)
                names.append(set())
            elif kind == COMMA:
                want = KEY if stack[-1] == "}" else VALUE
            elif kind == NAME:
                if m[NAME] in names[-1]:
                    break
                names[-1].add(m[NAME])
                want = VALUE
            else:
                want = LATER[kind]
                if kind == CLOSER:
                    stack.pop()
                    names.pop()
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
            self.refuse(m, "a long word" if self.want + WORD in LEGAL else f"{m[2][:40]!r} where none may be")
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
            closer, self.want = OPENS[c]
            self.unsure |= self.stack[-1:] == [closer]
            self.stack.append(closer)
            self.names.append(set())
        elif self.stack[-1] != c:
            self.refuse(m, f"{c!r} where none may be")
        else:
            self.stack.pop()
            self.names.pop()
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
            self.repair(m, "bare-key", quoted(word), word)
            return add_name(self.names[-1], word, self.note, self.s.offset + m.start(2))
        return self.refuse(m, f"{word[:40]!r} is not JSON")

    def string(self, m: re.Match[str], quote: str) -> bool:
        """A complete string is passed on; of another one the quote, with its content to come."""
        self.want = AFTER_STRING[self.want]
        key, place = self.want == COLON and self.note, self.s.offset + m.start(1)
        whole = STRING(self.s.text, m.start(1)) if quote == '"' else None
        if whole and self.closes(quote, whole.end()):
            self.write(whole, self.s.text[self.s.pos : whole.end()])
            if key:
                add_name(self.names[-1], whole[0][1:-1], key, place)
            return False
        if key:
            self.emit = KeyEmitter(self.emit, key, place)
        if quote == '"':
            self.write(m, m[0])
        elif self.note is None:
            self.refuse(m, "a quote that is not JSON's")
        else:
            self.repair(m, "single-quotes" if quote == "'" else "smart-quotes", '"')
        self.quote, self.mode = quote, self.content
        self.watch.begin(quote=quote)
        return True
