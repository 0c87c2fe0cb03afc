"""Labels each character of a reply by what it was read as: text, thought, name, id, arguments, or a literal of the
dialect.

The reply is fed one character at a time, so that each event comes as early as possible. Its content is at the end of
the text fed so far or, if it was held back, at the first place after the previous content. Characters that no event
covers are literals of the dialect, whitespace, or syntax such as the keys of an object. The decoder is used unchanged,
so the labels cannot disagree with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, Literal, cast

from ..events import ArgumentsDelta, CallStart, Event, TextDelta, ThoughtDelta
from ..types import Reply, Tool
from .decode import Decoder
from .dialect import Dialect, JsonCall
from .reading.collect import collect
from .reading.source import literal_words

SpanKind = Literal["text", "thought", "name", "id", "arguments", "literal", "syntax", "space"]
"""The holes of a dialect, its literals, and the rest: whitespace, and syntax that is no literal."""
UNWRITTEN = re.compile(r'^[\s{}\[\]",:]+|[\s{}\[\]",:]+$')
"""JSON syntax around a value that the reply may not contain."""


RUNS = re.compile(r"\s+|\S+(?:[ \t]+\S+)*")
"""Runs of whitespace, and runs of other characters with single spaces."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a reply, from `start` to before `end` in characters, and what it was read as. `call` is the number of
    its call, from 1; 0 for none."""

    start: int
    end: int
    kind: SpanKind
    call: int = 0


def spans(text: str, d: Dialect, tools: Sequence[Tool[..., Any]] | None = None) -> tuple[list[Span], Reply]:
    """The label of each character of a reply as ordered spans, and the decoded reply."""
    decoder = Decoder(d, tools)
    tracer = _Tracer(text)
    events: list[Event] = []
    for place in range(len(text)):
        fed = decoder.feed(text[place])
        tracer.take(fed, place + 1)
        events += fed
    ended = decoder.close()
    tracer.take(ended, len(text))
    holes = sorted(tracer.holes, key=lambda span: span.start)
    return list(_filled(text, holes, _literal_words(d))), collect([*events, *ended])


class _Tracer:
    """Finds the place in the text for the content of each event."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.holes: list[Span] = []
        self._cursor = 0
        self._early = 0
        """The end of the arguments that were found before the name of their call."""
        self._call = 0

    def take(self, events: Iterable[Event], fed: int) -> None:
        """Takes the events that came after so many characters were fed."""
        for event in events:
            match event:
                case TextDelta(piece):
                    self._put(piece, fed, "text", 0)
                case ThoughtDelta(piece):
                    self._put(piece, fed, "thought", 0)
                case CallStart(name, id_):
                    self._call += 1
                    self._named(name, id_, fed)
                case ArgumentsDelta(piece):
                    if not self._put(piece, fed, "arguments", self._call):
                        self._put(UNWRITTEN.sub("", piece), fed, "arguments", self._call)
                case _:
                    pass

    def _named(self, name: str, id_: str, fed: int) -> None:
        """Places a call's name and id. An id may precede the name, and contains it in some dialects."""
        begin = self._early = self._cursor
        at = self._put(id_, fed, "id", self._call)
        end, self._cursor = self._cursor, begin
        if not at or end <= self.text.find(name, begin, fed):
            self._put(name, fed, "name", self._call)
        self._cursor = max(end, self._cursor)

    def _put(self, piece: str, fed: int, kind: SpanKind, call: int) -> bool:
        """Whether a piece occurs in the text fed so far, after the previous content."""
        if not piece:
            return True
        start = fed - len(piece)
        if start < self._cursor or not self.text.startswith(piece, start):
            start = self.text.find(piece, self._cursor, fed)
        end = start + len(piece)
        if start >= 0:
            self._cursor = end
        elif kind == "arguments" and (start := self.text.find(piece, self._early, self._cursor)) >= 0:
            self._early = end = start + len(piece)
        else:
            return False
        self._add(start, end, kind, call)
        return True

    def _add(self, start: int, end: int, kind: SpanKind, call: int) -> None:
        """Adds a span, merged with the last one if it continues that."""
        last = self.holes[-1] if self.holes else None
        if last and (last.end, last.kind, last.call) == (start, kind, call):
            self.holes[-1] = Span(last.start, end, kind, call)
        else:
            self.holes.append(Span(start, end, kind, call))


def _filled(text: str, holes: Iterable[Span], words: re.Pattern[str]) -> Iterator[Span]:
    """The holes, and what is between them."""
    end = 0
    for hole in holes:
        yield from _between(text, end, hole.start, words)
        yield hole
        end = hole.end
    yield from _between(text, end, len(text), words)


def _between(text: str, start: int, end: int, words: re.Pattern[str]) -> Iterator[Span]:
    """The labels of a range that no event covers."""
    for match in words.finditer(text, start, end):
        yield from _syntax(text, start, match.start())
        yield Span(match.start(), match.end(), "literal")
        start = match.end()
    yield from _syntax(text, start, end)


def _syntax(text: str, start: int, end: int) -> Iterator[Span]:
    for match in RUNS.finditer(text, start, end):
        kind: SpanKind = "space" if match[0].isspace() else "syntax"
        yield Span(match.start(), match.end(), kind)


@lru_cache(256)
def _literal_words(d: Dialect) -> re.Pattern[str]:
    """A pattern for the literals of a dialect, the longest first."""
    named = (
        d.open,
        d.close,
        d.between,
        d.items,
        d.also,
        d.fences,
        d.frame,
        d.stop,
        d.thinking,
        d.header,
        d.call,
        d.forms,
    )
    words = {word for text in _texts(named) for word in literal_words(text)}
    ordered = sorted(words, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered)) or r"(?!)")


def _texts(value: object) -> Iterator[str]:
    """All texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for one in cast("tuple[object, ...]", value):
            yield from _texts(one)
    elif is_dataclass(value) and not isinstance(value, JsonCall):  # its keys are syntax, not literals
        for each in fields(value):
            yield from _texts(getattr(value, each.name))
