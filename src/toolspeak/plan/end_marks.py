"""Drops a mark of the end of a turn (`wire.turn_ends`) at the very end of a reply.

Anywhere else such a mark is text, also after a blank on its line: "a turn ends with <|im_end|>".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..events import Event, Finished, Noted, TextDelta
from ..wire.turn_ends import TURN_ENDS

LONGEST = 256
"""The most characters of marks and whitespace that are held back. A longer run is text."""

_MARK = "|".join(map(re.escape, TURN_ENDS))
_STARTS = {mark[:length] for mark in TURN_ENDS for length in range(1, len(mark))}
_PART = "|".join(map(re.escape, sorted(_STARTS, key=len, reverse=True)))
_RUN = rf"(?:(?:{_MARK})\s*)+"
_AT_END = re.compile(rf"{_RUN}\Z")
_MAY_END = re.compile(rf"{_RUN}(?:{_PART})?\Z|(?:{_PART})\Z")


class EndMarks:
    """The events of a reply without the marks at its end; `feed` takes them in order."""

    def __init__(self) -> None:
        self._buffer = ""
        self._before = ""
        """The last character of the text before the buffer."""

    def feed(self, events: Iterable[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if isinstance(event, TextDelta):
                out += self._text(event)
            elif isinstance(event, Noted):
                out.append(event)
            else:
                out += self._released(over=isinstance(event, Finished))
                out.append(event)
        return out

    def _text(self, event: TextDelta) -> list[Event]:
        text = self._buffer + event.text
        begin = _MAY_END.search(text, max(0, len(text) - LONGEST)) if "<" in text else None
        cut = begin.start() if begin else len(text)
        self._buffer, passed = text[cut:], text[:cut]
        if not passed:
            return []
        self._before = passed[-1]
        return [TextDelta(passed)]

    def _released(self, *, over: bool) -> list[Event]:
        text, self._buffer = self._buffer, ""
        if over and self._before not in (" ", "\t") and _AT_END.match(text):
            return []
        return [TextDelta(text)] if text else []
