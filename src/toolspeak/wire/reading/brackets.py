"""Tracks the open brackets while literals are read, and what may follow in them. This decides where a string ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..dialect import Keywords
from .literals import begins_key, begins_name, begins_value, comes, joins, next_visible
from .missing_quotes import Watch, visible
from .source import GAP

NAMED, ITEMS, KEYED, SPREAD = "named", "items", "keyed", "spread"
"""The content of a bracket: name=value, values, key: value; or key: value that belongs to the enclosing bracket."""

ITEM_FOLLOWS = re.compile(rf"""\s{{0,{GAP}}}+,\s{{0,{GAP}}}+["'\[({{]""").match
"""Matches a comma and the most common beginnings of a value, whatever comes later."""


class Frame:
    """An open bracket: its closer here and in JSON, whether it has content, and the names of its object."""

    __slots__ = ("close", "filled", "json", "kind", "names", "positional")

    def __init__(self, kind: str, close: str, json: str, filled: bool = False) -> None:
        self.kind, self.close, self.json, self.filled = kind, close, json, filled
        self.positional = 0
        self.names: set[str] = set()


class Brackets:
    """The open brackets, the innermost last; `follow` is what may come after the outermost, and `beyond` those words of
    it that end the call wherever they come."""

    __slots__ = ("beyond", "follow", "hole", "nested", "odd", "stack")

    def __init__(self, hole: Keywords, follow: tuple[str, ...], beyond: tuple[str, ...]) -> None:
        self.hole, self.follow, self.beyond = hole, follow, beyond
        self.stack: list[Frame] = []
        self.nested = False
        """Whether a bracket was directly in one of its kind."""
        self.odd = False
        """Whether the string that may end has a quote inside."""

    def push(self, frame: Frame) -> None:
        self.nested |= bool(self.stack) and self.stack[-1].close == frame.close
        self.stack.append(frame)

    def closes(self, text: str, i: int, closed: bool, in_key: bool, odd: bool) -> bool | str | None:
        """Whether the quote before `i` ends its string, which requires that something legal follows. None if it is not
        known yet."""
        if not in_key and self.stack and self.stack[-1].kind == ITEMS and ITEM_FOLLOWS(text, i):
            return True
        j = next_visible(text, i, closed)
        if j is None or j < 0:
            return None if j is None else True
        c = text[j]
        if in_key:
            return c in ":="
        self.odd = odd
        legal = self.legal(text, j, closed) if self.stack else False
        if legal is False and j > i and self.hole.escapes and not odd:
            return joins(text, j, closed)
        return legal

    def legal(self, text: str, i: int, closed: bool) -> bool | None:
        """Whether the visible text at `i` may follow a value in the innermost bracket."""
        frame = self.stack[-1]
        here = comes(text, i, (frame.close,), closed)
        if here:
            return self.leaves(text, i + len(frame.close), closed)
        if here is False:
            return self.goes_on(frame, text, i + 1, closed) if text[i] == "," else self.over(text, i, closed)
        return None

    def over(self, text: str, i: int, closed: bool) -> bool | None:
        """Whether the call ends at the visible character at `i`, whatever is open: one of the words `beyond` comes, or
        the closer of a list of calls before one or before the end."""
        here = comes(text, i, self.beyond, closed)
        if here is not False or text[i] != "]" or "]" not in self.follow:
            return here
        j = next_visible(text, i + 1, closed)
        return None if j is None else j < 0 or comes(text, j, self.beyond, closed)

    def leaves(self, text: str, i: int, closed: bool) -> bool | None:
        """Whether the text at `i` may follow the innermost bracket."""
        j = next_visible(text, i, closed)
        if j is None or j < 0:
            return None if j is None else True
        if len(self.stack) > 1:
            here = comes(text, j, (",", self.stack[-2].close), closed)
            return self.over(text, j, closed) if here is False else here
        return self.call_ends(text, i, j, closed)

    def call_ends(self, text: str, i: int, j: int, closed: bool) -> bool | None:
        """Whether the visible text at `j` may follow the outermost bracket, which closes before `i`. It may be one such
        bracket too many."""
        here = self._follows_call(text, i, j, closed)
        if any((here is not False, text[j] != self.stack[0].close, self.odd)):
            return here
        later = next_visible(text, j + 1, closed)
        if later is None:
            return None
        return True if later < 0 else self._follows_call(text, j + 1, later, closed)

    def _follows_call(self, text: str, i: int, j: int, closed: bool) -> bool | None:
        here = not self.follow or comes(text, j, self.follow, closed)
        if all((here is False, text[j] in "#;", self.hole.escapes)):  # a comment, or another call
            return not self.odd
        if here is False and not self.hole.escapes:
            return True
        return begins_key(text, j, self.hole.open, closed) if here is False and "\n" in text[i:j] else here

    def goes_on(self, frame: Frame, text: str, i: int, closed: bool) -> bool | None:
        """Whether the text at `i` may follow a comma in this bracket."""
        j = next_visible(text, i, closed)
        if j is None or j < 0:
            return None if j is None else True
        here = comes(text, j, (frame.close, *self.hole.quotes), closed)
        if here is None or text.startswith(frame.close, j):
            return here
        if frame.kind == ITEMS:
            return here or begins_value(text, j, closed)
        if frame.kind != NAMED:
            return here or text[j] in "\"'" or begins_key(text, j, ":", closed)
        name = begins_name(text, j, closed)
        return here or begins_value(text, j, closed) if name is False and frame.positional else name

    def may_continue(self, watch: Watch, text: str, i: int, schema: Mapping[str, Any]) -> bool:
        """Whether the quote before `i`, which does not end its string, may belong to the next member of this bracket.
        `schema` is that of all the arguments, and says which names are meant."""
        begins, key_ends, name = watch.quote(text, i)
        frame = self.stack[-1] if self.stack else None
        if frame is None:
            return False
        if frame.kind == (KEYED if self.hole.assign == ":" else NAMED) and self._assigns(name, schema):
            return True
        return begins if frame.kind == ITEMS or frame.positional else key_ends

    def ends_member(self, text: str, i: int) -> bool:
        """Whether a comma or a closer of an open bracket is the next visible character. A mark of several characters before
        one is hardly content: the next member has lost its own opening mark."""
        after = visible(text, i)
        return bool(after) and (after == "," or any(frame.close.startswith(after) for frame in self.stack))

    def _assigns(self, name: str | None, schema: Mapping[str, Any]) -> bool:
        """Whether the text is the name of a member, with what assigns its value."""
        if not name or name[-1] != self.hole.assign:
            return False
        properties = schema.get("properties")
        return name[:-1].strip() in properties if properties and len(self.stack) == 1 else True
