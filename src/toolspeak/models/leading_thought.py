"""Separates a thought at the very beginning of a reply from the text.

An engine without a parser for thoughts leaves them in the text: `<think>…</think>There are 59 days.` A thought is what
stands between the marks of a thought in some dialect, if the opener is the first word of the reply. It streams as it
comes. Anywhere else such marks are text, so an answer about them never becomes a thought.

The prompt of a model that always thinks opens the thought, so the reply has a closer alone: `…</think>There are 59 days.`
If the model's name tells that it is one, its text is a thought up to the closer. Without a closer in a reply that was not
cut, the server had removed the thought: then the text is the answer, and is passed on once more as text. For other models,
a closer alone on its line leaves a note.
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
from ..wire.thought_tags import thought_tags

BLANKS = 256
"""The most characters, white space above all, that are held back."""
LINE = 64
"""Characters of the longest line that is a closer."""
STRAY = (
    "{0!r} stands alone on a line, without an opener: the text before it may be a thought that the prompt opened. Start the "
    "server with the parser for its model's thoughts"
)
REMOVED = (
    "the model always thinks, but no {0!r} came: the server removes thoughts, so what streamed as one is the answer"
)


class LeadingThought:
    """Turns the events of a reply into events with the thought apart. The thoughts that `reader` knows are left to it.
    What continues a text (`continues`) has no beginning. `begun` is the closer of a thought that the prompt opened."""

    def __init__(self, reader: Dialect | None, *, continues: bool = False, begun: str = "") -> None:
        own = _openers(reader) if reader else ()
        self._closers = {opener: closer for opener, closer in _marks().items() if opener not in own}
        self._first_closer = begun
        self._own = own if begun else ()
        self._assumed = False
        """Whether the thought began with the reply, without an opener."""
        # Not bound to the reader, which would hold itself, and the thought, until a garbage collection.
        self._read: Callable[[LeadingThought, str], list[Event]]
        self._read = LeadingThought._after if continues else LeadingThought._before
        self._pending = self._closer = ""
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

    @property
    def unclosed_thought(self) -> str:
        """The same without the opener."""
        return "".join(self._open if self._assumed else self._open[1:])

    def feed(self, event: Event) -> list[Event]:
        """The events that take the place of one."""
        if isinstance(event, TextDelta):
            return self._read(self, event.text)
        if isinstance(event, Finished) and self._stray:
            return [Noted(Note("stray-closer", STRAY.format(self._stray))), event]
        if not isinstance(event, ThoughtDelta | CallStart | Finished):
            return [event]
        pending, self._pending = self._pending, ""
        within = self._read is LeadingThought._within
        self._read = LeadingThought._after
        if not within:
            return [TextDelta(pending), event] if pending else [event]
        pending = pending.rstrip()
        rest: list[Event] = [ThoughtDelta(pending)] if pending else []
        finish = event.finish if isinstance(event, Finished) else ""
        if self._assumed and finish != "length":
            text, self._open = self.unclosed, []
            rest += [TextDelta(text), Noted(Note("thought-removed", REMOVED.format(self._closer)))]
        elif finish:
            rest.append(Noted(Note("unclosed-thought")))
        return [*rest, event]

    def _before(self, piece: str) -> list[Event]:
        text = self._pending + piece
        begun = text.lstrip()
        if len(text) < BLANKS and any(opener[:-1].startswith(begun) for opener in (*self._closers, *self._own)):
            self._pending = text
            return []
        self._pending = ""
        opener = next((one for one in (*self._closers, *self._own) if begun.startswith(one)), "")
        self._assumed = not opener
        self._closer = self._closers.get(opener, "") if opener else self._first_closer
        if not self._closer:
            self._read = LeadingThought._after
            return self._after(text)
        self._read, self._open = LeadingThought._within, [opener] if opener else []
        return self._within(begun[len(opener) :])

    def _within(self, piece: str) -> list[Event]:
        self._open.append(piece)
        text = self._pending + piece
        thought, closed, rest = text.partition(self._closer)
        length = len(thought) if closed else _without_start_of(self._closer, text)
        thought = text[:length].rstrip()
        if length - len(thought) > BLANKS:
            thought = text[:length]
        self._pending = "" if closed else text[len(thought) :]
        visible = thought if self._begun else thought.lstrip()
        self._begun |= bool(visible)
        came: list[Event] = [ThoughtDelta(visible)] if visible else []
        if not closed:
            return came
        self._open, self._read = [], LeadingThought._blank
        return [*came, *self._blank(rest)]

    def _blank(self, piece: str) -> list[Event]:
        """White space between the thought and the text belongs to neither."""
        text = piece.lstrip()
        if text:
            self._read = LeadingThought._after
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
        opener: thought_tags(dialect.thinking).get(opener, dialect.thinking.close.strip())
        for dialect in known()
        for opener in _openers(dialect)
        if dialect.thinking
        if MARK.match(opener)
        if MARK.match(dialect.thinking.close.strip())
    }
    return dict(sorted(closers.items(), key=lambda one: -len(one[0])))
