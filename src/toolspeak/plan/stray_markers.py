"""Removes stray call markers from the text around a decoded call.

A model that is prompted in one dialect may write the markers of another around its calls: asked for a JSON object, it
writes `<tool_call>{…}</tool_call>`. The object is decoded, and its markers would stay in the text. So text that may be
such a marker is held back, and removed if only whitespace separates it from a call:

- before a call, if calls can begin with this marker: in "it ends with </tool_call>" it is text;
- after a call, if the rest of its line is empty or a marker was removed before the call: in "</tool_call> ends a call"
  it is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import takewhile
from typing import NamedTuple

from ..dialects import get, names
from ..events import CallEnd, CallStart, Event, Finished, TextDelta
from ..wire.dialect import Dialect
from ..wire.prompt.template_capabilities import literals
from ..wire.reading.lexicon import MARK

LONGEST = 256
"""The most characters of markers and whitespace that are held back. A longer run is text, so that its cost stays
bounded."""


class StrayMarkers:
    """Removes stray markers around calls; `feed` takes the events of a decoder."""

    def __init__(self) -> None:
        self._buffer: str = ""
        self._after = False
        self._opened = False
        """Whether a marker was removed before the last call."""

    def feed(self, events: Iterable[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if isinstance(event, TextDelta):
                out += self._text(event.text)
                continue
            if isinstance(event, CallStart | Finished):
                out += self._released(before_call=isinstance(event, CallStart))
            self._after = isinstance(event, CallEnd) or (self._after and not isinstance(event, CallStart))
            out.append(event)
        return out

    def _text(self, piece: str) -> list[Event]:
        if not self._buffer and not self._after and "<" not in piece and "[" not in piece:
            return [TextDelta(piece)]
        text: str = self._buffer + piece
        self._buffer = ""
        run, lines, _, tail = _patterns()
        if self._after:
            if len(text) <= LONGEST and (tail.fullmatch(text) or not text.strip()):
                self._buffer = text  # only whitespace and markers so far
                return []
            self._after = False
            text = (run if self._opened else lines).sub(self._next_opener, text)
        start = tail.search(text, max(0, len(text) - LONGEST))
        cut = start.start() if start else len(text)
        self._buffer = text[cut:]
        return [TextDelta(text[:cut])] if cut else []

    def _next_opener(self, markers: re.Match[str]) -> str:
        """The opener at the end of the markers behind a call: that of another call, which is in the text. Behind a call that
        has its opener, one alone stands for the closer."""
        opener = _patterns().opening.search(markers[0])
        if opener is None:
            return ""
        return "" if self._opened > bool(markers[0][: opener.start()].strip()) else opener[0]

    def _released(self, *, before_call: bool) -> list[Event]:
        text, self._buffer = self._buffer, ""
        opening = _patterns().opening.search(text) if before_call else None
        if self._after and _patterns().run.fullmatch(text.rstrip()):
            text = ""
        elif opening and not self._after:
            text = text[: opening.start()]
        self._opened = opening is not None
        return [TextDelta(text)] if text else []


class _Patterns(NamedTuple):
    """Patterns for a text. At its beginning: a `run` of markers, each after whitespace, and a run that ends with its
    line (`lines`). At its end: markers that open a call (`opening`), and a possible start of a run (`tail`)."""

    run: re.Pattern[str]
    lines: re.Pattern[str]
    opening: re.Pattern[str]
    tail: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    dialects = [get(name) for name in names()]
    words = _longest_first(word for one in dialects for word in literals(one))
    whole = "|".join(map(re.escape, words))
    begin = "|".join(map(re.escape, _longest_first(word for one in dialects for word in _opening(one))))
    starts = {word[:i] for word in words for i in range(1, len(word))}
    part = "|".join(map(re.escape, sorted(starts, key=len, reverse=True)))
    run = rf"(?:\s*(?:{whole}))+"
    return _Patterns(
        re.compile(rf"\A{run}"),
        re.compile(rf"\A{run}(?=[^\S\n]*(?:\n|\Z))"),
        re.compile(rf"(?:(?:{begin})\s*)+\Z"),
        re.compile(rf"{run}\s*(?:{part})?\Z|\s*(?:{part})\Z"),
    )


def _longest_first(words: Iterable[str]) -> list[str]:
    """The control markers among the literals, without duplicates, the longest first."""
    return sorted({word for word in words if MARK.fullmatch(word)}, key=lambda word: (-len(word), word))


def _opening(dialect: Dialect) -> list[str]:
    """The literals before the name and the arguments of a call."""
    before = takewhile(lambda part: isinstance(part, str), dialect.call)
    return [word for text in (dialect.open, *before) for word in str(text).split()]
