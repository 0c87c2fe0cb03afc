"""Separates a thought at the very beginning of a reply from the text.

An engine without a parser for thoughts leaves them in the text: `<think>…</think>There are 59 days.` A thought is what
stands between the marks of a thought in some dialect, if the opener is the first word of the reply. It streams as it
comes. Anywhere else such marks are text, so an answer about them never becomes a thought. A closer without an opener, alone
on its line, leaves a note: the prompt opened the thought, and what came before the closer was passed on as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

from ..events import CallStart, Event, Finished, Noted, TextDelta, ThoughtDelta
from ..types import Note
from ..wire.dialect import Dialect
from ..wire.finding.model_names import known
from ..wire.reading.lexicon import MARK

BLANKS = 256
"""The most characters, white space above all, that are held back."""
LINE = 64
"""Characters of the longest line that is a closer."""
STRAY = (
    "{0!r} stands alone on a line, without an opener: the text before it may be a thought that the prompt opened. Start the "
    "server with the parser for its model's thoughts, or give the dialect of the model"
)


class LeadingThought:
    """Turns the events of a reply into events with the thought apart. The thoughts that `reader` knows are left to it.
    What continues a text (`continues`) has no beginning."""

    def __init__(self, reader: Dialect | None, *, continues: bool = False) -> None:
        own = _openers(reader) if reader else ()
        self._closers = {opener: closer for opener, closer in _marks().items() if opener not in own}
        self._read: Callable[[str], list[Event]] = self._after if continues else self._before
        self._held = self._closer = ""
        self._begun = False
        """Whether a part of the thought was passed on."""
        self._tail, self._stray = "\n", ""
        """The end of the text, and the closer that is a line of it."""
        self._open: list[str] = []
        """The text from the opener on, while the thought is open."""

    @property
    def unclosed(self) -> str:
        """The text from the opener on, if the thought is still open."""
        return "".join(self._open)

    def feed(self, event: Event) -> list[Event]:
        """The events that take the place of one."""
        if isinstance(event, TextDelta):
            return self._read(event.text)
        if isinstance(event, Finished) and self._stray:
            return [Noted(Note("stray-closer", STRAY.format(self._stray))), event]
        if not isinstance(event, ThoughtDelta | CallStart | Finished):
            return [event]
        held, self._held = self._held, ""
        within = self._read == self._within
        self._read = self._after
        if within:
            held = held.rstrip()
            return [ThoughtDelta(held), event] if held else [event]
        return [TextDelta(held), event] if held else [event]

    def _before(self, piece: str) -> list[Event]:
        text = self._held + piece
        begun = text.lstrip()
        if len(text) < BLANKS and any(opener[:-1].startswith(begun) for opener in self._closers):
            self._held = text
            return []
        self._held = ""
        opener = next((one for one in self._closers if begun.startswith(one)), None)
        if opener is None:
            self._read = self._after
            return self._after(text)
        self._closer, self._read, self._open = self._closers[opener], self._within, [opener]
        return self._within(begun[len(opener) :])

    def _within(self, piece: str) -> list[Event]:
        self._open.append(piece)
        text = self._held + piece
        thought, closed, rest = text.partition(self._closer)
        length = len(thought) if closed else _without_start_of(self._closer, text)
        thought = text[:length].rstrip()
        if length - len(thought) > BLANKS:
            thought = text[:length]
        self._held = "" if closed else text[len(thought) :]
        shown = thought if self._begun else thought.lstrip()
        self._begun |= bool(shown)
        came: list[Event] = [ThoughtDelta(shown)] if shown else []
        if not closed:
            return came
        self._open, self._read = [], self._blank
        return [*came, *self._blank(rest)]

    def _blank(self, piece: str) -> list[Event]:
        """White space between the thought and the text belongs to neither."""
        text = piece.lstrip()
        if text:
            self._read = self._after
        return [TextDelta(text)] if text else []

    def _after(self, piece: str) -> list[Event]:
        seen = self._tail + piece
        if not (self._stray or self._closer) and (line := _line_of(tuple(self._closers.values())).search(seen)):
            self._stray = line[1]
        self._tail = seen[-LINE:]
        return [TextDelta(piece)]


@cache
def _line_of(closers: tuple[str, ...]) -> re.Pattern[str]:
    """A line that is one of these."""
    return re.compile(rf"\n[ \t]*({'|'.join(map(re.escape, closers))})[ \t]*\n")


def _without_start_of(word: str, text: str) -> int:
    """The length of the text without a beginning of `word` at its end."""
    return next((len(text) - n for n in range(min(len(word), len(text)), 0, -1) if text.endswith(word[:n])), len(text))


def _openers(dialect: Dialect) -> tuple[str, ...]:
    thinking = dialect.thinking
    return tuple(one.strip() for one in (thinking.open, *thinking.also)) if thinking else ()


@cache
def _marks() -> Mapping[str, str]:
    """The openers of thoughts in all dialects with their closers, longest first: those that begin with a control marker."""
    closers = {
        opener: dialect.thinking.close.strip()
        for dialect in known()
        for opener in _openers(dialect)
        if dialect.thinking
        if MARK.match(opener)
        if MARK.match(dialect.thinking.close.strip())
    }
    return dict(sorted(closers.items(), key=lambda one: -len(one[0])))
