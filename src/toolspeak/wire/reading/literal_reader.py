"""Reads Python and JSON literals as they arrive, and converts them to JSON text. Repairs only what is unambiguous.

Nothing is ever evaluated. Like `json_reader` this is a state machine. The difficulty is the end of a string: models
forget to escape quotes, so a quote ends its string only if something legal follows (`Brackets`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from ...events import ArgumentsDelta
from ...schema.kinds import ANY, STRING, Shapes
from ..dialect import Keywords
from . import literals, missing_quotes
from .brackets import ITEMS, KEYED, NAMED, SPREAD, Brackets, Frame
from .json_tokens import SCALAR, escaped, quoted
from .missing_quotes import Watch
from .source import SPACE, Machine, Malformed, Source

Note = Callable[[str, str], None]

CLOSERS = {"[": "]", "(": ")", "{": "}"}
SIMPLE = re.compile(r"\\(.)").sub


class LiteralReader(Machine):
    """Reads a literal, mode by mode.

    `schema` is that of all the arguments, `follow` what may come after them. `text_only`: a string is wanted here.
    """

    def __init__(
        self,
        s: Source,
        emit: Callable[[str], None],
        note: Note,
        hole: Keywords,
        schema: Mapping[str, Any],
        follow: tuple[str, ...] = (),
        streams: bool = False,
    ) -> None:
        super().__init__(s, self.value)
        self.emit, self.note, self.hole = emit, note, hole
        self.syntax = literals.syntax(hole)
        self.schema, self.shapes, self.streams = schema, Shapes(schema), streams
        self.keys: set[str] = set()
        self.brackets = Brackets(hole, follow)
        self.stack = self.brackets.stack
        self.quote = self.syntax.quotes[hole.quotes[0]]
        self.in_key = self.odd = self.text_only = False
        self.watch = Watch(named=True)

    def push(self, frame: Frame, opener: str) -> None:
        self.emit(opener)
        self.stack.append(frame)
        self.go_on(frame)

    def wants_text(self, key: str) -> bool:
        """Whether the schema wants a string here, and nothing else."""
        return self.shapes.kinds(self.shapes.member(self.schema, key)) == STRING

    def go_on(self, frame: Frame) -> None:
        """An element of this bracket comes next, or its end."""
        self.text_only = False
        self.mode = self.value if frame.kind == ITEMS else self.name if frame.kind == NAMED else self.key

    def pop(self, frame: Frame) -> bool:
        self.s.pos += len(frame.close)
        self.emit(frame.json)
        self.stack.pop()
        if frame.kind == SPREAD:
            self.stack[-1].filled |= frame.filled
        self.mode = self.after if self.stack else None
        return True

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

    def begin(self, frame: Frame) -> None:
        """One more element begins."""
        if frame.filled:
            self.emit(", ")
        frame.filled = True

    def closing(self, c: str) -> bool | None:
        """Whether the innermost bracket closes here, where `c` comes next. None: not known yet."""
        close = self.stack[-1].close
        return c == close if len(close) == 1 else literals.comes(self.s.text, self.s.pos, (close,), self.s.closed)

    def name(self) -> bool:
        """At a place for `name=value`, or for a value without a name."""
        if not (c := self.visible()) or (close := self.closing(c)) is None:
            return False
        s, frame = self.s, self.stack[-1]
        if close:
            return self.pop(frame)
        m = literals.NAME(s.text, s.pos)
        if m is None:
            if not s.closed and literals.HALF_NAME(s.text, s.pos):
                return False
            return self.spread(frame) if s.text.startswith("*", s.pos) else self.unnamed(frame)
        self.begin(frame)
        key = m[1] or m[3]
        if key in self.keys:
            self.note("doubled-key", key)
        self.keys.update([key] if len(self.stack) == 1 else ())
        self.emit(quoted(key) + ": ")
        self.text_only = self.wants_text(key)
        s.pos = m.end()
        self.mode = self.value
        return True

    def spread(self, frame: Frame) -> bool:
        """`**{..}`: keys that are no identifiers, or a dict with all the arguments."""
        s = self.s
        m = literals.STARS(s.text, s.pos)
        if m is None:
            if not s.closed and literals.HALF_STARS(s.text, s.pos):
                return False
            raise Malformed("'*' where none may be")
        s.pos = m.end()
        self.push(Frame(SPREAD, "}", "", frame.filled), "")
        return True

    def unnamed(self, frame: Frame) -> bool:
        """A value without a name gets that of the next property."""
        s, i = self.s, frame.positional
        properties: object = self.schema.get("properties")
        names = list(cast("Mapping[str, Any]", properties)) if isinstance(properties, Mapping) else []
        key = names[i] if i < len(names) else f"arg{i}"
        kinds = self.shapes.kinds(self.shapes.member(self.schema, key))
        self.note("positional", key)
        if s.text[s.pos] == "{" and not i and (kinds == ANY or "object" not in kinds):
            s.pos += 1
            self.push(Frame(SPREAD, "}", "", frame.filled), "")
            return True
        frame.positional += 1
        self.begin(frame)
        self.emit(quoted(key) + ": ")
        self.text_only = kinds == STRING
        self.mode = self.value
        return True

    def key(self) -> bool:
        """At a place for `key: value`."""
        if not (c := self.visible()) or (close := self.closing(c)) is None:
            return False
        s, frame = self.s, self.stack[-1]
        if close:
            return self.pop(frame)
        opener = self.syntax.opener(self.s.text, self.s.pos, self.s.closed)
        if opener is None:
            return False
        if opener:
            self.begin(frame)
            self.in_key = True
            return self.open(opener)
        m = literals.KEY(s.text, s.pos)
        if m is None:
            if not s.closed and literals.HALF_KEY(s.text, s.pos):
                return False
            raise Malformed(f"expected a key, found {s.text[s.pos]!r}")
        self.begin(frame)
        word = m[1]
        self.emit(quoted(word if self.hole.bare else self.syntax.constants.get(word, word)))
        outer = len(self.stack) == 1 or frame.kind == SPREAD
        self.text_only = outer and self.wants_text(word)
        s.pos += len(word)
        self.mode = self.assign
        return True

    def assign(self) -> bool:
        c = self.visible()
        if not c:
            return False
        if c not in ":=":
            raise Malformed(f"expected {self.hole.assign!r}, found {c!r}")
        self.s.pos += 1
        self.emit(": ")
        self.mode = self.value
        return True

    def after(self) -> bool:
        """After a value: a comma, or the end of the enclosing bracket."""
        c = self.visible()
        frame = self.stack[-1]
        if c == ",":
            self.s.pos += 1
            self.go_on(frame)
            return True
        if not c or (close := self.closing(c)) is None:
            return False
        if close:
            return self.pop(frame)
        raise Malformed(f"expected ',', found {c!r}")

    def value(self) -> bool:
        s = self.s
        if not self.text_only and s.pos < len(s.text) and (m := literals.SURE(s.text, s.pos)):
            if m[1]:
                return self.sure(m)
            if not s.closed:
                return False
        return self.unsure()

    def unsure(self) -> bool:
        """A value that must be examined."""
        c = self.visible()
        if not c:
            return False
        frame = self.stack[-1] if self.stack and self.stack[-1].kind == ITEMS else None
        if frame:
            close = self.closing(c)
            if close is None:
                return False
            if close:
                return self.pop(frame)
        if c in ",)]}":
            raise Malformed(f"expected a value, found {c!r}")
        if c not in "[({":
            return self.scalar(frame)
        a_set = c == "{" and self.hole.escapes and literals.opens_set(self.s.text, self.s.pos, self.s.closed)
        if a_set is None:
            return False
        if frame:
            self.begin(frame)
        if a_set:
            self.note("set", "")
        self.s.pos += 1
        if c == "{" and not a_set:
            self.push(Frame(KEYED, "}", "}"), "{")
        else:
            self.push(Frame(ITEMS, CLOSERS[c], "]"), "[")
        return True

    def sure(self, m: re.Match[str]) -> bool:
        """A value that is certain, and the comma after it."""
        frame = self.stack[-1] if self.stack else None
        text = literals.CONSTANTS.get(m[1], m[1])
        if frame and frame.kind == ITEMS:
            text = ", " + text if frame.filled else text
            frame.filled = True
        self.emit(text)
        if frame and m[2]:
            self.s.pos = m.end()
            self.go_on(frame)
        else:
            self.s.pos = m.end(1)
            self.mode = self.after if frame else None
        return True

    def scalar(self, frame: Frame | None) -> bool:
        """A string, a number, or a word."""
        s = self.s
        opener = self.syntax.opener(s.text, s.pos, s.closed)
        if opener is None:
            return False
        if opener:
            if frame:
                self.begin(frame)
            self.in_key = False
            return self.open(opener)
        if not s.closed and literals.HALF_EXPRESSION(s.text, s.pos):
            return False
        m = literals.EXPRESSION(s.text, s.pos) or literals.BARE(s.text, s.pos, s.pos + SCALAR + 1)
        if m is None or m.end() - s.pos > SCALAR:
            raise Malformed("a long word")
        if m.end() == len(s.text) and not s.closed:
            return False
        if frame:
            self.begin(frame)
        self.emit(self.plain(m[0].strip()))
        s.pos = m.end()
        self.mode = self.after if self.stack else None
        return True

    def plain(self, word: str) -> str:
        """An unquoted word as JSON."""
        if word in self.syntax.constants:
            return self.syntax.constants[word]
        number = None if self.text_only else literals.number(word)
        if number is None:
            self.note("bare-word", word[:40])
            if literals.WORKED_OUT(word):
                self.note("expression", word[:40])
            return quoted(word)
        return number

    def open(self, opener: re.Match[str], joined: bool = False) -> bool:
        """A string begins, or continues in the next one (`joined`)."""
        prefix, quote = opener[1].lower(), opener[2]
        if "f" in prefix or "b" in prefix:
            self.note("string-prefix", opener[1])
        if quote not in self.syntax.own:
            self.note("quotes", quote)
        self.quote = self.syntax.quotes["r" + quote if "r" in prefix else quote]
        self.s.pos = opener.end()
        self.mode = self.content
        self.watch.begin()
        if not joined:
            self.odd = False
            if (m := self.quote.whole(self.s.text, opener.end())) and self.closes(m.end()) is True:
                self.s.pos = m.end()
                return self.shut(f'"{m[1]}"')
            self.emit('"')
        return True

    def shut(self, text: str) -> bool:
        """A string has ended."""
        self.emit(text)
        self.mode = self.assign if self.in_key else self.after if self.stack else None
        return True

    def content(self) -> bool:
        """The content of a string, as it arrives."""
        s, quote, watch = self.s, self.quote, self.watch
        while True:
            text, pos = s.text, s.pos
            end = quote.run(text, pos).end()
            if end > pos:
                content = piece = text[pos:end]
                if not (same := quote.same) or not same(piece):
                    piece = quoted(SIMPLE(literals.simple, piece) if same and "\\" in piece else piece)[1:-1]
                self.emit(piece)
                watch.content += content
                s.pos = end
            if end == len(text):
                if len(watch.content) > missing_quotes.LONG:
                    watch.shorten()
                if self.streams:
                    s.fast_search, s.fast_event, s.watch = quote.lane, ArgumentsDelta, watch
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
        ends = self.closes(s.pos + len(quote))
        if ends is False:
            self.odd = True
            self.note("quote-in-string", "")
            if literals.DOUBTED(s.text, s.pos + len(quote)):
                self.note("expression", "")
            if self.brackets.may_continue(self.watch, s.text, s.pos + len(quote), self.schema):
                self.note("missing-quote", missing_quotes.DETAIL)
            self.emit(escaped(quote))
        elif ends == "join":
            self.mode = self.another
        elif ends:
            self.shut('"')
        else:
            return False
        s.pos += len(quote)
        return True

    def another(self) -> bool:
        """The next of several adjacent strings that are one."""
        opener = self.visible() and self.syntax.opener(self.s.text, self.s.pos, self.s.closed)
        return bool(opener) and self.open(opener, joined=True)

    def escape(self) -> bool:
        """A backslash escape that is not a simple one; in a raw string, one at the end of the text."""
        s = self.s
        found = literals.escape(s.text, s.pos, s.closed)
        if found is None:
            return False
        text, size, lone = found
        if lone:
            self.note("lone-surrogate", "")
        self.emit(escaped(text))
        self.watch.content += "\\"
        s.pos += size
        return True

    def closes(self, i: int) -> bool | str | None:
        """Whether the quote before `i` ends its string. None: not known yet; "join": the next string continues it."""
        return self.brackets.closes(self.s.text, i, self.s.closed, self.in_key, self.odd)
