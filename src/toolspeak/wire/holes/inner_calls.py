"""Reads over calls that are written out in a value between tags, such as in a file that documents the dialect.

An opener in a value begins a call that belongs to the value, or it is the next call, and the value lost its closers. The
closers decide. If each opener has its own, and those of the outer call follow, the whole inner call belongs to the value:
in no other reading has every closer an opener. Otherwise the outer call is doubtful: it lost its closers, or was cut.

The text is held back until that is known, at most up to `LIMIT` characters. The position of the outer closers is stored,
so a value with many calls is searched once. After an opener without closers nothing is searched any more.
"""

from __future__ import annotations

from ..reading.lookahead import ahead, token_ahead
from ..reading.marks import marks
from ..reading.source import Scan, peek, until_limit
from ..reading.state import FUNCTIONS, NAMED, State

LIMIT = 65_536
"""The most characters that are held back after the opener of a call in a value."""
NAME_ENDS = ("\n", ">", '"', "<", "{")
"""What ends a tool's name in any of the dialects with tags."""
QUOTES = ("'", '"', "`")


class InnerCalls:
    """The calls in the values of one call. `words` are those before the name of a call; `closer`, if there is one, is the
    word that comes first after its arguments."""

    __slots__ = ("balanced_up_to", "closer", "lone", "s", "words")

    def __init__(self, s: State, words: tuple[str, ...], closer: tuple[str, ...]) -> None:
        self.s, self.words, self.closer = s, words, closer
        self.balanced_up_to = -1
        """The position before the closers of the outer call, if it is known."""
        self.lone = ""
        """The name in an opener that may not belong to the value."""

    def rest(self, value_closer: str, tag_end: tuple[str, ...] = ()) -> Scan[str]:
        """The rest of a call in a value whose first word was just read. It is consumed. "" if it is no call, or may not
        belong to the value. `value_closer` closes a value, with a name and the `tag_end` behind it if there is one."""
        s = self.s
        name = yield from self._name()
        if not name:
            return ""
        if all((not self.lone, self.closer, s.recording is None)):
            s.start_recording()
            length = yield from self._length(value_closer, tag_end)
            s.give_back()
            if length:
                s.pos += length
                return s.text[s.pos - length : s.pos]
        self.lone = name
        s.call_inside = s.offset + s.pos
        return ""

    def _name(self) -> Scan[str]:
        """The name in the opener whose first word was just read; "" if it is no opener. One of a tool that is not
        offered is none if it is quoted or self-closing. Consumes nothing."""
        s, place = self.s, 0
        for word in self.words[1:]:
            place = yield from ahead(s, place, (word,))
            if place <= 0:
                return ""
        token = yield from token_ahead(s, place, NAME_ENDS)
        if token is None:
            return ""
        text = token[0].strip()
        after = (yield from peek(s, place + len(token[0]) + 3))[place + len(token[0]) :].removeprefix('"')
        name = text.rpartition("=")[2].rpartition(" ")[2].removeprefix(FUNCTIONS + ".")
        if s.is_tool(name):
            return name
        if any((text[-1:] == "/", after.startswith((" /", "/")), after.removeprefix(">").startswith(QUOTES))):
            return ""
        return text if NAMED(text) else ""

    def _length(self, value_closer: str, tag_end: tuple[str, ...]) -> Scan[int]:
        """The distance to the end of the inner call; 0 if the closers of the outer call do not follow it. Consumes text."""
        s, closer = self.s, self.closer[0]
        start, depth, length = s.offset + s.pos, 1, 0
        wanted = marks((self.words[0], value_closer, closer))
        while hit := (yield from until_limit(s, wanted, max(start + LIMIT, self.balanced_up_to))):
            if hit == self.words[0]:
                depth += bool((yield from self._name()))
            elif not depth:
                if hit == value_closer and (yield from self._ends_call(tag_end)):
                    self.balanced_up_to = s.offset + s.pos - len(hit)
                    return length
            elif hit == closer:
                depth -= 1
                if not any((depth, length)):
                    length = s.offset + s.pos - start
                    if start + length <= self.balanced_up_to:
                        return length
        return 0

    def _ends_call(self, tag_end: tuple[str, ...]) -> Scan[bool]:
        """Whether the closer of a call follows that of a value, which was just read up to its `tag_end`."""
        tag = (yield from token_ahead(self.s, 0, tag_end)) if tag_end else ("", "")
        return (yield from ahead(self.s, sum(map(len, tag)), self.closer)) > 0 if tag else False
