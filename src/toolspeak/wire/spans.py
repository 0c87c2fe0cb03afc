"""Tells what each character of a reply was read as: text, thought, name, id, arguments, or a literal of the dialect.

The reply is fed a character at a time, so that an event leaves as soon as it can: what it tells stands at the end of what
was fed, or, where it was held back, at the first place behind what was told before. What no event tells is a literal of the
dialect, white space, or syntax, such as the keys of an object. Nothing here touches the decoder, which is the one that
parses: the spans cannot disagree with it.
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
"""The holes of a dialect, a literal of it, and what stands between them: white space, and syntax that is no literal."""
UNWRITTEN = re.compile(r'^[\s{}\[\]",:]+|[\s{}\[\]",:]+$')
"""What stands around a value in JSON, and may not in the reply."""


RUNS = re.compile(r"\s+|\S+(?:[ \t]+\S+)*")
"""Runs of white space, and of what is none but for blanks in it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a reply, from `start` to before `end`, in characters, and what it was read as. `call` is the number of
    the call that it belongs to, from 1, 0 for none."""

    start: int
    end: int
    kind: SpanKind
    call: int = 0


def spans(text: str, d: Dialect, tools: Sequence[Tool[..., Any]] | None = None) -> tuple[list[Span], Reply]:
    """What each character of a reply was read as, all of them in their order, and the reply that it is."""
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
    """Finds the places in a text of which events tell."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.holes: list[Span] = []
        self._cursor = 0
        self._early = 0
        """Up to where arguments were found that stand before the name of their call, which begins with it."""
        self._call = 0

    def take(self, events: Iterable[Event], fed: int) -> None:
        """Takes the events that came when so many characters were fed."""
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
        """The places of a call's name and id: an id may stand before the name, and holds it in some dialects."""
        begin = self._early = self._cursor
        at = self._put(id_, fed, "id", self._call)
        end, self._cursor = self._cursor, begin
        if not at or end <= self.text.find(name, begin, fed):
            self._put(name, fed, "name", self._call)
        self._cursor = max(end, self._cursor)

    def _put(self, piece: str, fed: int, kind: SpanKind, call: int) -> bool:
        """Whether a piece stands in what was fed, and is behind what was told before."""
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
        """Adds a span, to the last one where it goes on from that."""
        last = self.holes[-1] if self.holes else None
        if last and (last.end, last.kind, last.call) == (start, kind, call):
            self.holes[-1] = Span(last.start, end, kind, call)
        else:
            self.holes.append(Span(start, end, kind, call))


def _filled(text: str, holes: Iterable[Span], words: re.Pattern[str]) -> Iterator[Span]:
    """The holes, and what stands between them."""
    end = 0
    for hole in holes:
        yield from _between(text, end, hole.start, words)
        yield hole
        end = hole.end
    yield from _between(text, end, len(text), words)


def _between(text: str, start: int, end: int, words: re.Pattern[str]) -> Iterator[Span]:
    """What a stretch is that no event told of."""
    for found in words.finditer(text, start, end):
        yield from _syntax(text, start, found.start())
        yield Span(found.start(), found.end(), "literal")
        start = found.end()
    yield from _syntax(text, start, end)


def _syntax(text: str, start: int, end: int) -> Iterator[Span]:
    for found in RUNS.finditer(text, start, end):
        kind: SpanKind = "space" if found[0].isspace() else "syntax"
        yield Span(found.start(), found.end(), kind)


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
    elif is_dataclass(value) and not isinstance(value, JsonCall):  # whose keys are syntax
        for each in fields(value):
            yield from _texts(getattr(value, each.name))
