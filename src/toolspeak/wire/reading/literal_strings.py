"""Reads the strings of a literal: their content as it arrives, and where they end.

The difficulty is the end of a string: models forget to escape quotes, so a quote ends its string only if something
legal follows (`Brackets`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ...events import ArgumentsDelta
from ..dialect import Keywords
from . import literals, missing_quotes
from .brackets import Brackets
from .doubtful import UNBALANCED
from .json_tokens import AddNote, Emit, escaped
from .missing_quotes import Watch
from .source import SPACE, Machine, Source


class StringReader(Machine):
    """The modes inside a string. `schema` is that of all the arguments, `follow` what may come after them,
    `beyond` the words of it that end the call wherever they come."""

    def __init__(
        self,
        s: Source,
        begin: Callable[[], bool],
        emit: Emit,
        note: AddNote,
        hole: Keywords,
        schema: Mapping[str, Any],
        follow: tuple[str, ...],
        beyond: tuple[str, ...],
        streams: bool,
    ) -> None:
        super().__init__(s, begin)
        self.emit, self.note, self.hole = emit, note, hole
        self.schema, self.streams = schema, streams
        self.syntax = literals.syntax(hole)
        self.brackets = Brackets(hole, follow, beyond)
        self.stack = self.brackets.stack
        self.quote = self.syntax.quotes[hole.quotes[0]]
        self.in_key = self.odd = False
        self.formatted = self.placeholder = False
        self.watch = Watch(named=True)

    def visible(self) -> str:
        """The next visible character, with everything before it consumed; "" if it has not arrived."""
        s = self.s
        text, pos = s.text, s.pos
        if pos == len(text):
            return ""
        if " " < (c := text[pos]) < "\x7f":
            return c
        s.pos = pos = SPACE(text, pos).end()
        return text[pos : pos + 1]

    def shut(self, text: str) -> bool:
        """A string has ended; `text` is the rest of it."""
        raise NotImplementedError

    def open(self, opener: re.Match[str], joined: bool = False) -> bool:
        """A string begins, or continues in the next one (`joined`)."""
        prefix, quote = opener[1].lower(), opener[2]
        if {*"fb"} & {*prefix}:
            self.note("string-prefix", opener[1])
        if quote not in self.syntax.own:
            self.note("quotes", quote)
        self.quote = self.syntax.quotes["r" + quote if "r" in prefix else quote]
        self.s.pos = opener.end()
        self.mode = self.content
        self.watch.begin(quote=quote)
        self.formatted, self.placeholder = "f" in prefix, False
        if not joined:
            self.odd = False
            m = None if self.formatted else self.quote.whole(self.s.text, opener.end())
            if m and self.closes(m.end()) is True:
                self.s.pos = m.end()
                return self.shut(f'"{m[1]}"')
            self.emit('"')
        return True

    def content(self) -> bool:
        """The content of a string, as it arrives."""
        s, quote, watch = self.s, self.quote, self.watch
        while True:
            text, pos = s.text, s.pos
            end = quote.run(text, pos).end()
            if end > pos:
                piece = text[pos:end]
                self.emit(quote.json(piece))
                watch.content += piece
                s.pos = end
                self.placeholder |= self.formatted & ("{" in piece)
            if end == len(text):
                passes = self.streams and not self.formatted | self.in_key
                watch.let_pass(s, quote.lane, ArgumentsDelta if passes else None)
                return False
            step = self.escape() if text[end] == "\\" and quote.slash else self.mark()
            if not step:
                return False
            if self.mode != self.content:
                return True

    def mark(self) -> bool:
        """A quote, or text that looks like the beginning of one."""
        s, quote = self.s, self.quote.text
        here = literals.comes(s.text, s.pos, (quote,), s.closed)
        if not here:
            if here is False:
                self.emit(escaped(s.text[s.pos]))
                self.watch.content += s.text[s.pos]
                s.pos += 1
            return here is False
        ends = self.ends(len(quote))
        if ends:
            self.content_ends()
        if ends is False:
            self.odd = True
            self.note("quote-in-string", "")
            if literals.DOUBTED(s.text, s.pos + len(quote)) or literals.CONDITION(self.watch.content, 1):
                self.note("expression", "")
            after = s.pos + len(quote)
            doubtful = self.brackets.may_continue(self.watch, s.text, after, self.schema)
            doubtful |= (len(quote) > 1) & self.brackets.ends_member(s.text, after)
            if doubtful:
                self.note("missing-quote", missing_quotes.DETAIL)
            self.emit(escaped(quote))
        elif ends == "join":
            self.mode = self.another
        elif ends:
            if self.watch.open:
                self.note("missing-quote", missing_quotes.DETAIL)
            self.shut('"')
        else:
            return False
        s.pos += len(quote)
        return True

    def ends(self, size: int) -> bool | str | None:
        """Whether the quote of this size that comes next ends its string, as in `closes`, or belongs to the next call."""
        ends, next_call = self.closes(self.s.pos + size), self.s.next_call
        if next_call is None or any((ends is not False, not self.stack, self.in_key)):
            return ends
        brackets = "".join(frame.close for frame in reversed(self.stack))
        return None if next_call.look(self.s, self.watch, size, brackets) else False

    def content_ends(self) -> None:
        """Notes what makes the content of a string doubtful. An f-string with a placeholder is an expression: the model
        means the value of a variable."""
        if self.placeholder:
            self.note("expression", "a placeholder in an f-string")
        if self.watch.half_escaped():
            self.note("half-escaped", "")
        if self.s.ran_on & self.watch.quoted:
            self.note(UNBALANCED, self.quote.text)

    def another(self) -> bool:
        """The next of several adjacent strings that are one."""
        opener = self.visible() and self.syntax.opener(self.s.text, self.s.pos, self.s.closed)
        return bool(opener) and self.open(opener, joined=True)

    def escape(self) -> bool:
        """A backslash escape that is not a simple one; in a raw string, one at the end of the text."""
        s = self.s
        parsed = literals.escape(s.text, s.pos, s.closed)
        if parsed is None:
            return False
        text, size, lone = parsed
        if lone:
            self.note("lone-surrogate", "")
        self.emit(escaped(text))
        if self.quote.slash == "escape":
            self.watch.escape(s.text[s.pos : s.pos + 2], text == "\\", size)
        s.pos += size
        return True

    def closes(self, i: int) -> bool | str | None:
        """Whether the quote before `i` ends its string. None: not known yet; "join": the next string continues it."""
        return self.brackets.closes(self.s.text, i, self.s.closed, self.in_key, self.odd)
