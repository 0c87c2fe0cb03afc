"""Reads the strings of a JSON text as they arrive: their content, and where they end. Notes a key that comes twice.

A quote that is not escaped ends its string only if something legal follows it. A string that begins with three quotes is
Python's, and ends with three.
"""

from __future__ import annotations

from . import literals, missing_quotes
from .doubtful import UNBALANCED
from .json_states import AFTER, COLON, VALUE
from .json_string import repaired_escape
from .json_tokens import CLEAN, ENDS, IN_QUOTED, AddNote, Emit, escaped
from .literals import begins_key, begins_value, comes, next_visible
from .object_names import KeyEmitter
from .source import Delta, Machine, Malformed, Source, Words

SIMPLE = frozenset("\\" + c for c in '"\\/bfnrt')
"""Escapes that are complete and legal."""


class JsonStringReader(Machine):
    """The modes inside a string. `want` is what may come after it, `quote` opened it, `comma` is held back, `names` are
    those of each bracket in `stack`, and `unsure` says why closers may not be added here. `tripled`: three quotes opened
    it."""

    __slots__ = (
        "beyond",
        "comma",
        "comma_at",
        "delta",
        "emit",
        "names",
        "note",
        "quote",
        "stack",
        "tripled",
        "unsure",
        "want",
        "watch",
    )

    def __init__(self, s: Source, emit: Emit, note: AddNote | None, delta: Delta | None, beyond: Words = ()) -> None:
        super().__init__(s, self.begin)
        self.emit, self.note, self.delta, self.beyond = emit, note, delta, beyond
        self.stack: list[str] = []
        self.names: list[set[str]] = []
        self.want = VALUE
        self.comma = self.quote = ""
        self.comma_at = 0
        self.unsure: int = 0
        self.tripled = False
        self.watch = missing_quotes.Watch(named=False)

    def begin(self) -> bool:
        """At the beginning of the value."""
        raise NotImplementedError

    def tokens(self) -> bool:
        """Outside of strings."""
        raise NotImplementedError

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
                if self.want != COLON:
                    self.watch.let_pass(s, IN_QUOTED[quote], self.delta)
                return False
            c = text[i]
            if c in ENDS[quote] and (closes := self.closes_at(i)) is not False:
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
        if note := self.note:
            if self.watch.open:
                note("missing-quote", missing_quotes.DETAIL)
            if self.watch.half_escaped():
                note("half-escaped", "")
            if self.s.ran_on & self.watch.quoted:
                note(UNBALANCED, self.quote)
        self.s.pos += 3 if self.tripled else 1
        self.tripled = False
        self.emit('"')
        if isinstance(self.emit, KeyEmitter):
            self.emit = self.emit.end(self.names[-1])
        self.mode = self.tokens if self.stack else None

    def odd(self, c: str) -> None:
        """A quote that ends nothing, or a raw control character."""
        note = self.note
        if note and c in ENDS[self.quote] and not self.tripled:
            if self.opens_triple(self.s.pos):
                return self.triple(note)
            self.quote_inside(note)
        else:
            self.s.pos += 1
            self.watch.content += c
        if note is None:
            return self.emit(c)
        if c < " ":
            note("raw-control", "")
        return self.emit(escaped(c))

    def triple(self, note: AddNote) -> None:
        """The second and third of the quotes that begin a string."""
        self.tripled = True
        self.s.pos += 2
        note("quotes", self.quote * 3)

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
        if note is None or pair in SIMPLE:
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

    def closes_at(self, i: int) -> bool | None:
        """Whether the quote at `i` ends the string, or begins the three that do."""
        s = self.s
        if self.tripled:
            here = comes(s.text, i, (self.quote * 3,), s.closed)
            ends = self.closes(self.quote, i + 3) if here else here
            if (note := self.note) and all((here, ends is False, literals.SUM(s.text, i + 3))):
                note("expression", "")
            return ends
        ends = None if self.opens_triple(i) is None else self.closes(self.quote, i + 1)
        next_call = self.s.next_call
        if next_call is None or any((ends is not False, not self.stack, self.want != AFTER)):
            return ends
        return None if next_call.look(self.s, self.watch, 1, "".join(reversed(self.stack))) else False

    def opens_triple(self, i: int) -> bool | None:
        """Whether the quote at `i` is the second of three that begin the string, or of six, around nothing. More are those
        of a text that is not escaped, such as a docstring. None: not known yet."""
        if any((self.watch.content, self.note is None)):
            return False
        text = self.s.text
        more = len(text[i : i + 6]) - len(text[i : i + 6].lstrip(self.quote))
        return None if all((i + more == len(text), more < 6, not self.s.closed)) else more in (2, 5)

    def closes(self, quote: str, i: int) -> bool | None:
        """Whether the quote before `i` ends its string: in a value only if something legal follows. None: not known
        yet."""
        sure = self.want == COLON if self.stack else True
        if any((self.note is None, sure & (quote == '"'))):
            return True
        s = self.s
        if s.text[i : i + 1] in ("}", "]"):
            return True
        j = next_visible(s.text, i, s.closed)
        if j is None:
            return None
        if j < 0:
            return True
        if s.text[j] in ENDS:
            return j > i  # two strings in sequence are an error, not one string
        return self.may_follow(j)

    def may_follow(self, i: int) -> bool | None:
        """Whether what is at `i`, which is no quote, may follow a string."""
        c = self.s.text[i]
        if all((c == ",", self.want == AFTER, self.stack)):
            return self.goes_on(i + 1)
        if c in (",}]:" if self.want == COLON else ",}]"):
            return True
        return comes(self.s.text, i, self.beyond, self.s.closed)

    def goes_on(self, i: int) -> bool | None:
        """Whether the text at `i` may follow a comma here."""
        s = self.s
        j = next_visible(s.text, i, s.closed)
        if j is None:
            return None
        if j < 0:
            return True
        if s.text[j] in ENDS or s.text[j] == self.stack[-1]:
            return True
        if self.stack[-1] == "}":
            return begins_key(s.text, j, ":", s.closed)
        return begins_value(s.text, j, s.closed)
