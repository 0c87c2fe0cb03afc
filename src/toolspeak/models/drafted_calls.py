"""Notes the calls that a server read in a thought which it left in the text: drafts.

An engine with a parser for calls and none for thoughts reads the calls of a thought too. The text behind them closes the
thought, and nothing in it opened one. So the calls are not whole, as where a decoder reads them
(`wire.reading.lone_closers`): only calls at the very end of a reply that ends with the thought count.

Only the first closer counts. If it comes before all calls, or the server separates thoughts, no call is a draft.
"""

from __future__ import annotations

import re

from ..events import CallStart, Event, Finished, Noted, TextDelta, ThoughtDelta
from ..types import Note
from ..wire.thought_tags import THOUGHT_TAGS

TAIL = 256
"""The last characters of a text that are kept: more than a closer has, with the blanks around it."""
_BEGINNINGS = tuple({close[:2] for close in THOUGHT_TAGS.values()})
_OPENERS = {close: opener for opener, close in THOUGHT_TAGS.items()}
_WORD = f"(?:{'|'.join(map(re.escape, _OPENERS))})"
_CLOSER = re.compile(rf"(?:\n[ \t]{{0,40}}|(?<=[^\s\"'`(\[{{])){_WORD}|{_WORD}[ \t]{{0,40}}\n")
"""Matches a closer that begins or ends a line, or directly follows a text."""


class DraftedCalls:
    """Takes the events of a server's reply in order."""

    def __init__(self) -> None:
        self._over = self._called = self._visible = False
        self._text, self._closer = "\n", ""
        """The end of the text behind the last call, and the closer behind which nothing came so far."""

    def feed(self, event: Event) -> list[Event]:
        """What comes before the event: the note that the calls so far are drafts, if it shows that."""
        if self._over:
            return []
        if isinstance(event, CallStart):
            self._called, self._visible, self._text = True, False, "\n"
            return self._note() if self._closer else []
        if isinstance(event, TextDelta):
            self._text += event.text
        elif isinstance(event, Finished):
            self._text += "\n"
        else:
            self._over = isinstance(event, ThoughtDelta)
            return []
        return self._read()

    def _read(self) -> list[Event]:
        """Looks for a closer in the text, and for what follows it."""
        hit = None if self._closer else self._search()
        if hit:
            self._closer = hit[0].strip()
            self._visible = any((self._visible, self._text[: hit.start()].strip()))
            self._text = self._text[hit.end() :]
            self._over = not self._called
        if self._closer:
            return self._note() if all((self._called, self._visible or self._text.strip())) else []
        self._visible = any((self._visible, self._text[:-TAIL].strip()))
        self._text = self._text[-TAIL:]
        return []

    def _search(self) -> re.Match[str] | None:
        """The first closer without its opener before it on its line."""
        begun = any(beginning in self._text for beginning in _BEGINNINGS)
        for hit in _CLOSER.finditer(self._text) if begun else ():
            line = self._text[: hit.start()].rpartition("\n")[2]
            if _OPENERS[hit[0].strip()] not in line:
                return hit
        return None

    def _note(self) -> list[Event]:
        self._over = True
        return [Noted(Note("drafted-call", self._closer))]
