"""Drops markers of calls that stand in the text around a call that was read.

A model that was asked in one dialect may write the markers of another around its calls: asked for a JSON object, it writes
`<tool_call>{…}</tool_call>`. The object is read, and its markers would stay in the text. So what may be such a marker is
held back: it is dropped where a call follows it or came before it, with nothing but blanks between, and is text elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from ..dialects import get, names
from ..events import CallEnd, CallStart, Event, Finished, TextDelta
from ..wire.drafts.margins import MARK
from ..wire.templates.abilities import literals

LONGEST = 256
"""Characters of markers and blanks that are held back at most: a run of thousands is a text, and costs what a text costs."""


class StrayMarkers:
    """Text without the stray markers around its calls; `feed` takes events as a decoder tells them."""

    def __init__(self) -> None:
        self._held: str = ""
        self._after = False

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
        if not self._held and not self._after and "<" not in piece and "[" not in piece:
            return [TextDelta(piece)]
        text: str = self._held + piece
        self._held = ""
        run, tail = _patterns()
        if self._after:
            waits = bool(tail.fullmatch(text)) if text.strip() else True
            if len(text) <= LONGEST and waits:
                self._held = text  # blanks and markers alone so far
                return []
            self._after = False
            text = text[found.end() :] if (found := run.match(text)) else text
        start = tail.search(text, max(0, len(text) - LONGEST))
        cut = start.start() if start else len(text)
        self._held = text[cut:]
        return [TextDelta(text[:cut])] if cut else []

    def _released(self, *, before_call: bool) -> list[Event]:
        held, self._held = self._held, ""
        found = _patterns()[0].match(held)
        if found and not held[found.end() :].strip() and (before_call or self._after):
            held = "" if self._after else held[: len(held) - len(held.lstrip())]
        return [TextDelta(held)] if held else []


@cache
def markers() -> tuple[str, ...]:
    """The markers of calls of all dialects, longest first."""
    words = {word for name in names() for word in literals(get(name)) if MARK.fullmatch(word)}
    return tuple(sorted(words, key=lambda word: (-len(word), word)))


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A run of markers with the blanks before each, and what may be the beginning of one at the end of a text."""
    whole = "|".join(map(re.escape, markers()))
    starts = {word[:i] for word in markers() for i in range(1, len(word))}
    part = "|".join(map(re.escape, sorted(starts, key=len, reverse=True)))
    run = rf"(?:\s*(?:{whole}))+"
    return re.compile(run), re.compile(rf"{run}\s*(?:{part})?\Z|\s*(?:{part})\Z")
