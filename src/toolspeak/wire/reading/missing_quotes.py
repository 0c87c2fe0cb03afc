"""Finds strings whose closing quote may be missing.

A quote inside a string usually was not escaped. But if the string's own closing quote is missing, the string swallows
the next member of its bracket: `{"title": "Lunch, "body": "pizza"}`. The second reading is recognized by structure:
after a comma or a quote comes what begins a member. A string that swallowed the next call ends inside a quotation:
`f(a='x)` and `g(b='y')` on the next line. Such quotes are rare, so the content before one is only collected,
also what the decoder passes on without the readers. Of many pieces the part is kept that may begin a member, so that the
result does not depend on how the text is cut.

A string with a backslash before a letter that it does not escape (`C:\\new\\data`, written with single backslashes) was
probably not escaped at all: its other escapes have two readings then, and nobody knows which of both is meant, unless it
is `EscapedCode`.
"""

from __future__ import annotations

import re

from .escaped_code import EscapedCode, stand_in
from .marks import Search
from .source import CAP, GAP, SPACE, Delta, Source

DETAIL = "a quote inside a string is not escaped, or the quote that ends the string is missing"
LONG = 512
"""Of longer content the part is kept that may begin a member."""
TAIL = 1024
"""The most characters of a string that are looked at for the end of its call and the beginning of the next one."""
BRACKETS = " \t\r\n[{("
"""What may stand between a comma and the next member."""
_OPENING = rf"[\s\[{{(]{{0,{GAP}}}"
QUOTED = re.compile(_OPENING).fullmatch
"""Matches what may stand before a quoted member."""
NAMED = re.compile(rf"{_OPENING}(?:[^\W\d]\w{{0,{CAP}}}\s{{0,{GAP}}}(?:[=:]\s{{0,{GAP}}})?)?").fullmatch
"""Matches what may stand before a quoted value, with its unquoted name; or the beginning of that."""

QUOTATION = re.compile(r"""[\s(\[{=<,:]?"[^\s"'()\[\]{},.;:!?]""").fullmatch
"""Matches a quote that begins a quotation, with the characters around it."""

ESCAPE = re.compile(r"\\[\\bfnrtu]").search
PYTHON_ESCAPE = re.compile(r"\\[\\abfnrtvxuU0-7\n]").search
"""Match an escape that an unescaped text may contain by chance, in JSON and in Python."""
NO_CODE = EscapedCode("")


class Watch:
    """Collects the content of one string after another, and looks at it when a quote comes that does not end the string.

    `content` is that since the last such quote, which counts as a comma; or its end, if it is long. `key`: the last
    quote may have begun the key of a member. `open`: the quotations inside the string that are not closed. `unknown`: it has
    an escape that is none; `escaped`: earlier content has one. So many characters of the content are `retained` earlier
    ones, which `code` has read.

    `tail` has the last characters of the string, at most TAIL, and `closed` says how many more brackets the text before them
    closes than it opens. `quoted`: it has a quote; `opened`: one that begins an object, or a value with a name.
    """

    __slots__ = (
        "_begins",
        "_escape",
        "closed",
        "code",
        "content",
        "escaped",
        "key",
        "open",
        "opened",
        "quoted",
        "retained",
        "tail",
        "unknown",
    )

    def __init__(self, named: bool) -> None:
        self._begins, self._escape = (NAMED, PYTHON_ESCAPE) if named else (QUOTED, ESCAPE)
        self.content = ""
        self.key = self.escaped = self.unknown = False
        self.open = self.retained = 0
        self.code = NO_CODE
        self.tail, self.closed = "", 0
        self.opened = self.quoted = False

    def begin(self, piece: str = "", quote: str = '"') -> None:
        """A string between these quotes begins, with this piece of its content."""
        self.content, self.key, self.open = piece, False, 0
        self.escaped = self.unknown = False
        self.code, self.retained = EscapedCode(quote), 0
        self.tail, self.closed = "", 0
        self.opened = self.quoted = False

    def escape(self, pair: str, unknown: bool, size: int) -> None:
        """An escape of this size, which is read by itself, begins with this pair."""
        self.content += stand_in(pair, unknown, size)
        self.unknown |= unknown and pair[1:].isalnum()  # `\$` and `\.` beside `\n` are common in code
        self.escaped |= bool(self._escape(pair)) > unknown

    def half_escaped(self) -> bool:
        """Whether the string has escapes, and one that is none, and is not certainly code."""
        if not self.unknown or not self.escaped | (self._escape(self.content) is not None):
            return False
        return not self.code.certain(self.content[self.retained :])

    def let_pass(self, s: Source, search: Search, delta: Delta | None) -> None:
        """Lets further content pass at once, up to what `search` finds."""
        if len(self.content) > LONG:
            self.shorten()
        if delta:
            s.fast_search, s.fast_event, s.watch = search, delta, self

    def shorten(self) -> None:
        """Keeps of the content what may begin a member."""
        self.escaped |= self._escape(self.content) is not None
        self.code.read(self.content[self.retained :])
        self.remember()
        member = self._member()
        self.content = self.content[-1:] if member is None else "," + member
        self.retained = len(self.content)

    def remember(self) -> None:
        """Adds the content so far to the tail."""
        text = self.tail + self.content[self.retained :]
        before, self.tail = text[:-TAIL], text[-TAIL:]
        self.closed += brackets_closed(before)
        self.retained = len(self.content)

    def _member(self) -> str | None:
        """The content since the last comma or quote; None if no member begins like this."""
        _, comma, member = self.content.rpartition(",")
        return member if comma and self._begins(member) else None

    def quote(self, text: str, i: int) -> tuple[bool, bool, str | None]:
        """A quote before `i` that does not end the string: whether it may begin a member, whether it may end the key of
        one, and the unquoted name before it with its `=` or `:` (None if there is none)."""
        after, member = visible(text, i), self._member()
        opens = QUOTATION(self.content[-1:] + '"' + text[i : i + 1])
        self.open = self.open + 1 if opens else max(self.open - 1, 0)
        self.escaped |= self._escape(self.content) is not None
        name = None if member is None else member.strip(BRACKETS)
        begins, ends = name == "", self.key & (after == ":")
        self.remember()
        self.tail += '"'
        self.retained, self.quoted = 1, True
        self.content, self.key, self.code.match = ",", begins | (after == ","), None
        return begins, ends, name


def brackets_closed(text: str) -> int:
    """How many more brackets a text closes than it opens."""
    return sum(map(text.count, ")]}")) - sum(map(text.count, "([{"))


def visible(text: str, i: int) -> str:
    """The first visible character from `i` on."""
    end = SPACE(text, i).end()
    return text[end : end + 1]
