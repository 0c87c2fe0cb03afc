"""Follows a JSON text that arrives in pieces: whether it is complete, and whether an object has a name twice."""

from __future__ import annotations

import json
import re

IN_STRING = re.compile(r'["\\]')
OUTSIDE = re.compile(r'["{}\[\],]')
LONG = 200
"""The most characters of a name that is reported."""


class Balance:
    """Tracks whether the brackets and quotes of a JSON text in pieces are closed. Takes linear time.

    `doubled` is the first name that an object has twice, None without one: parsers would take one of its values and say
    nothing.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.quoted = False
        self.complete = False
        self.doubled: str | None = None
        self._escaped = False
        self._names: list[set[str] | None] = []
        """The names of each open object, None for a list."""
        self._name_next = False
        self._name: list[str] | None = None
        """The pieces of the name that is read."""

    def feed(self, text: str) -> None:
        at, start = min(int(self._escaped), len(text)), 0
        self._escaped &= not text
        while mark := (IN_STRING if self.quoted else OUTSIDE).search(text, at):
            at = mark.end()
            if mark[0] == "\\":
                self._escaped = at == len(text)
                at += 1
            elif mark[0] == '"':
                self._quote(text, start, at - 1)
                start = at
            else:
                self._structure(mark[0])
        if self._name is not None:
            self._name.append(text[start:])

    def _quote(self, text: str, start: int, end: int) -> None:
        """A quote that opens a string, or closes one after this part of its content."""
        self.quoted = not self.quoted
        self.complete |= self.depth == 0 and not self.quoted  # a text that is the whole value
        if self.quoted:
            self._name = [] if self._name_next else None
        elif self._name is not None:
            name = _decoded("".join([*self._name, text[start:end]]))
            self._name, self._name_next = None, False
            if (names := self._names[-1]) is not None:
                if name in names:
                    self.doubled = name[:LONG] if self.doubled is None else self.doubled
                names.add(name)

    def _structure(self, c: str) -> None:
        """A bracket or a comma."""
        if c in "{[":
            self.depth += 1
            self._names.append(set() if c == "{" else None)
        elif c != ",":
            self.depth -= 1
            self.complete |= self.depth == 0
            del self._names[-1:]
        innermost = self._names[-1] if self._names else None
        self._name_next = innermost is not None and c in "{,"

    @property
    def closed(self) -> bool:
        return self.depth == 0 and not self.quoted


def _decoded(name: str) -> str:
    """The name that is written as the content of a JSON string; unchanged if it is no valid one."""
    if "\\" not in name:
        return name
    try:
        return str(json.loads(f'"{name}"', strict=False))
    except ValueError:
        return name
