"""Reads Python and JSON literals as they arrive, and converts them to JSON text. Repairs only what is unambiguous.

Nothing is ever evaluated. Like `json_reader` this is a state machine; its modes inside a string are in
`literal_strings`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from ...schema.kinds import ANY, STRING, Shapes
from ...schema.walk import branches
from ..dialect import Keywords
from . import literals
from .brackets import ITEMS, KEYED, NAMED, SPREAD, Frame
from .json_tokens import SCALAR, AddNote, Emit, quoted
from .literal_strings import StringReader
from .object_names import KeyEmitter, add_name
from .source import SPACE, Malformed, Scan, Source, following

CLOSERS = {"[": "]", "(": ")", "{": "}"}


class LiteralReader(StringReader):
    """Reads a literal, mode by mode.

    `text_only`: a string is wanted here, as a value of `parameter`. `unended`: the last value is an unquoted word,
    or nothing but the next mark shows that it is complete ("number").
    """

    def __init__(
        self,
        s: Source,
        emit: Emit,
        note: AddNote,
        hole: Keywords,
        schema: Mapping[str, Any],
        follow: tuple[str, ...] = (),
        beyond: tuple[str, ...] = (),
        streams: bool = False,
    ) -> None:
        super().__init__(s, self.value, emit, note, hole, schema, follow, beyond, streams)
        self.shapes = Shapes(schema)
        self.text_only, self.unended = False, ""
        self.parameter = ""

    def push(self, frame: Frame, opener: str) -> None:
        self.emit(opener)
        if frame.kind == SPREAD:
            frame.names = self.stack[-1].names
        self.brackets.push(frame)
        self.go_on(frame)

    def wants_text(self, key: str) -> bool:
        """Whether the schema wants a string here, and nothing else."""
        self.parameter = key
        return self.shapes.kinds(self.shapes.member(self.schema, key)) == STRING

    def go_on(self, frame: Frame) -> None:
        """An element of this bracket comes next, or its end."""
        self.text_only, self.unended = False, ""
        if frame.kind == ITEMS:
            frame.positional += 1
        self.mode = self.value if frame.kind == ITEMS else self.name if frame.kind == NAMED else self.key

    def pop(self, frame: Frame) -> bool:
        self.s.pos += len(frame.close)
        self.emit(frame.json)
        self.unended = ""
        self.stack.pop()
        if (frame.kind, frame.close, frame.filled, frame.positional) == (ITEMS, ")", True, 1):
            self.note("expression", "(…)")  # no tuple but the value itself, in parentheses
        if frame.kind == SPREAD:
            self.stack[-1].filled |= frame.filled
        self.mode = self.after if self.stack else None
        return True

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
        self.check_key(key)
        self.emit_key(frame, key)
        self.emit(": ")
        self.text_only = self.wants_text(key)
        s.pos = m.end()
        self.mode = self.value
        return True

    def emit_key(self, frame: Frame, key: str) -> None:
        """Emits a key that is here, in quotes."""
        self.emit(quoted(key))
        add_name(frame.names, key, self.note, self.s.offset + self.s.pos)

    def check_key(self, word: str) -> None:
        """Notes a key that has a mark in it, such as that of an end."""
        if "<" in word:
            self.note("unknown-key", word)

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
        self.parameter = key
        self.note("positional", key)
        if s.text[s.pos] == "{" and not i and (kinds == ANY or "object" not in kinds):
            s.pos += 1
            self.push(Frame(SPREAD, "}", "", frame.filled), "")
            return True
        frame.positional += 1
        self.begin(frame)
        self.emit_key(frame, key)
        self.emit(": ")
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
            self.emit = KeyEmitter(self.emit, self.note, s.offset + s.pos)
            return self.open(opener)
        m = literals.KEY(s.text, s.pos)
        if m is None:
            if not s.closed and literals.HALF_KEY(s.text, s.pos):
                return False
            raise Malformed(f"expected a key, found {s.text[s.pos]!r}")
        self.begin(frame)
        word = m[1]
        self.check_key(word)
        self.emit_key(frame, word if self.hole.bare else self.syntax.constants.get(word, word))
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
        if not self.text_only and (m := literals.SURE(s.text, s.pos)):
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
        return self.bare(frame)

    def bare(self, frame: Frame | None) -> bool:
        """A number or a word, up to what may follow it."""
        s = self.s
        if not s.closed and literals.HALF_EXPRESSION(s.text, s.pos):
            return False
        m = literals.EXPRESSION(s.text, s.pos) or literals.BARE(s.text, s.pos, s.pos + SCALAR + 1)
        if m is None or m.end() - s.pos > SCALAR:
            raise Malformed("a long word")
        if m.end() == len(s.text) and not s.closed:
            return False
        if frame:
            self.begin(frame)
        word = literals.before_word(m[0], self.brackets.beyond) or m[0]
        self.emit(self.plain(word.strip()))
        s.pos += len(word)
        self.mode = self.after if self.stack else None
        return True

    def plain(self, word: str) -> str:
        """An unquoted word as JSON."""
        if word in self.syntax.constants:
            return self.syntax.constants[word]
        number = None if self.text_only else literals.number(word)
        if number is None:
            self.note("bare-word", word[:40])
            self.unended = "word"
            looked_up = all((self.hole.escapes, literals.is_variable(word), not self.is_choice(word)))
            if any((looked_up, literals.WORKED_OUT(word), *(quote in word for quote in self.hole.quotes))):
                self.note("expression", word[:40])
            return quoted(word)
        self.unended = "number"
        return number

    def is_choice(self, word: str) -> bool:
        """Whether the schema of the parameter, or of its items, lists this word."""
        part = self.shapes.member(self.schema, self.parameter)
        nodes = (node for one in (part, self.shapes.items(part)) for node in branches(self.shapes.root, one))
        return any(word in node["enum"] for node in nodes if isinstance(node.get("enum"), list))

    def shut(self, text: str) -> bool:
        """A string has ended."""
        self.emit(text)
        if isinstance(self.emit, KeyEmitter):
            self.emit = self.emit.end(self.stack[-1].names)
        self.mode = self.assign if self.in_key else self.after if self.stack else None
        return True

    def missing(self) -> Scan[list[Frame]]:
        """The brackets to close, the innermost first, where the call ends before their closers. None if another place
        fits them too: after a comma, or if one is in another of its kind. A number or an unquoted word before it may be
        incomplete."""
        s, frames = self.s, self.stack[::-1]
        if any((self.mode != self.after, self.brackets.nested, self.unended == "word")):
            return []
        if not (yield from following(s)):
            return []
        while (over := self.brackets.over(s.text, SPACE(s.text, s.pos).end(), s.closed)) is None:
            yield
        cut = bool(self.unended) & s.text.startswith(s.ends, SPACE(s.text, s.pos).end())
        return frames if over and not cut else []
