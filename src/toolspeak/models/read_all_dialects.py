"""Finds calls in a text whose dialect is unknown: the decoder of every dialect reads it, and the best reading counts.

Each decoder reads along until it finds words.

One decoder tries a bounded number of openers, and there are about a hundred dialects. So the tries of all decoders that
read a reply count together: past TRIES, its text is text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import dropwhile
from typing import Any

from ..errors import ToolspeakError
from ..events import CallStart, Event, Finished, TextDelta
from ..plan.calls import checked
from ..plan.invented_results import InventedResults
from ..types import Reply, Tool
from ..wire.decode import Decoder
from ..wire.dialect import Dialect
from ..wire.finding.model_names import known
from ..wire.prompt.calls import write_calls
from ..wire.prompt.template_capabilities import literals
from ..wire.reading.collect import collect
from ..wire.reading.doubtful import DOUBTFUL
from ..wire.reading.lexicon import MARK

LONGEST = 200_000
"""Characters of the longest passage that is read in all dialects."""
DIALECTS = 100
"""About how many there are."""
SLICE = 256
TRIES = 2_000
"""How many openers of calls are tried in a reply, in all dialects together."""


@dataclass(slots=True)
class DialectReading:
    """A text as one dialect reads it; `decoder` reads what follows."""

    dialect: Dialect
    decoder: Decoder
    events: list[Event] = field(default_factory=list[Event])
    length: int = 0
    """Characters that were read."""
    words: bool = False
    """Whether there are words in it."""
    called: bool = False
    """Whether a call came before them."""
    before_words: list[Event] | None = None
    """The events before them: what follows is no part of what decides about the calls."""
    passage: str = ""
    """The whole text, where this reading is the best."""
    closed: bool = False
    """Whether it was read to the end."""
    invented: InventedResults | None = None
    """Knows which texts are results that the model made up, so no words; None where these are words too."""

    @property
    def tries(self) -> int:
        """How many openers of calls were tried."""
        return self.decoder.state.failed_openers + self.decoder.state.call_count

    def read(self, piece: str) -> None:
        """Reads on."""
        self.length += len(piece)
        self._add(self.decoder.feed(piece))

    def read_whole(self, text: str, tries: int) -> bool:
        """Reads a whole text. Returns False if it tries more openers."""
        for at in range(0, len(text), SLICE):
            self.read(text[at : at + SLICE])
            if self.tries > tries:
                return False
        self.close()
        return True

    def close(self) -> None:
        """Reads to the end."""
        self.closed = True
        self._add(self.decoder.close())

    def _add(self, came: list[Event]) -> None:
        self.events += [event for event in came if not isinstance(event, Finished)]
        for event in self.invented.feed(came) if self.invented else came:
            if self.words:
                return
            self.words = _is_words(event)
            self.called = self.called or isinstance(event, CallStart)
            if self.words:
                last = dropwhile(lambda one: not _is_words(one), came)
                behind = sum(not isinstance(one, Finished) for one in last)
                self.before_words = self.events[: len(self.events) - behind]


class Passage:
    """A part of a text, from where a call may begin. All dialects but `own` read along; one that finds words drops out.
    After `tries` openers all do. `spoken`: there are words before it."""

    def __init__(
        self,
        own: Dialect | None,
        tools: Sequence[Tool[..., Any]],
        text: str,
        ids: Callable[[], str],
        tries: int = TRIES,
        *,
        spoken: bool = False,
    ) -> None:
        self.text = ""
        self._limit = tries
        self.tries = 0
        """How many openers of calls were tried."""
        self._tools = tools
        others = (dialect for dialect in _begun_by(text.lstrip()[0]) if dialect is not own)
        self._reading = [
            DialectReading(
                dialect, Decoder(dialect, tools, "", ids=ids), invented=None if spoken else InventedResults()
            )
            for dialect in others
        ]
        self._ended: list[DialectReading] = []
        """Those that found words."""
        self.feed(text)

    @property
    def open(self) -> bool:
        """Whether it may still be calls and nothing else."""
        return bool(self._reading) and len(self.text) <= LONGEST

    def feed(self, piece: str) -> None:
        """Reads on, in slices: most passages are words after a few characters."""
        start = len(self.text)
        self.text += piece
        for at in range(start, len(self.text), SLICE):
            for one in self._reading:
                one.read(self.text[at : at + SLICE])
            self._ended += [one for one in self._reading if one.words]
            self._reading = [one for one in self._reading if not one.words]
            self.tries = sum(one.tries for one in (*self._reading, *self._ended))
            if self.tries > self._limit:
                self._reading = []
            if not self._reading:
                return

    def calls(self, *, alone: bool) -> DialectReading | None:
        """The whole passage as calls, in the dialect that reads it best; None where it is none. `alone`: it is the whole
        reply, so calls between the control markers of a dialect may have wrong arguments."""
        for one in self._reading:
            one.close()
        self._ended += [one for one in self._reading if one.words]
        calls = [one for one in self._reading if not one.words]
        marked = [one for one in calls if _marked(one.dialect, self.text)] if alone else []
        return self._best(calls) or self._best(marked, fit=False)

    def calls_before_words(self, *, over: bool = False) -> DialectReading | None:
        """The same, if it begins with calls in a fence or between tags, and words follow. `over`: the text has ended."""
        marked = self.text.lstrip()[0] in "`<"
        reading = self._best([one for one in self._ended if one.called]) if marked else None
        if reading and not reading.closed:
            reading.read(self.text[reading.length :])
            if over:
                reading.close()
        return reading

    def _best(self, readings: Sequence[DialectReading], *, fit: bool = True) -> DialectReading | None:
        """The one of these that reads whole calls of offered tools best, with arguments that `fit`. None if a better one
        finds a call doubtful: a dialect that does not know its surroundings may find it whole."""
        ranked: list[tuple[tuple[int, ...], DialectReading]] = []
        doubts: list[tuple[int, ...]] = []
        for one in readings:
            reply = collect(one.events if one.before_words is None else one.before_words)
            if _acceptable(reply, self._tools, fit):
                one.passage = self.text
                ranked.append(((len(reply.calls), *rank(one.dialect, reply, self.text)), one))
            elif any(note.rule in DOUBTFUL for call in reply.calls for note in call.notes):
                doubts.append(rank(one.dialect, reply, self.text))
        best = max(ranked, key=lambda one: one[0], default=None)
        return best[1] if best and all(doubt <= best[0][1:] for doubt in doubts) else None


def ready() -> bool:
    """Whether a text was read before: the first makes the readers of all dialects, which takes half a second."""
    return _begun_by.cache_info().currsize > 0


@lru_cache(1024)
def _begun_by(character: str) -> tuple[Dialect, ...]:
    """The dialects in which a call of some tool may begin with this character."""
    return tuple(dialect for dialect in known() if not any(map(_is_words, Decoder(dialect, None, "").feed(character))))


def _is_words(event: Event) -> bool:
    return bool(event.text.strip()) if isinstance(event, TextDelta) else False


def _acceptable(reply: Reply, tools: Sequence[Tool[..., Any]], fit: bool) -> bool:
    """Whether there are calls, all whole and of offered tools, and, with `fit`, none has a problem once its arguments are
    coerced, as those of any call are."""
    if not reply.calls:
        return False
    if fit:
        return not any(checked(call, tools)[1] for call in reply.calls)
    names = {tool.name for tool in tools}
    return all(call.whole and call.name in names for call in reply.calls)


def _marked(dialect: Dialect, text: str) -> bool:
    """Whether the dialect has control markers around a call, and the text has them all."""
    marks = [word for word in literals(dialect) if MARK.fullmatch(word)]
    return all(mark in text for mark in marks) if marks else False


def rank(dialect: Dialect, reply: Reply, text: str) -> tuple[int, ...]:
    """How well a dialect reads a text: the text has the marker that opens its calls; it writes these calls so, blanks aside;
    it needs few repairs, and few of its markers are missing; many models speak it."""
    words = markers(dialect)
    missing = sum(word not in text for word in words)
    try:
        written = "".join(write_calls(reply.calls, dialect).split())
    except ToolspeakError:
        written = ""
    exact = written in "".join(text.split()) if written else False
    opened = any(word in text for word in words[:1])
    return opened, exact, -len(reply.notes), -missing, sum(map(len, words)), len(dialect.models)


@cache
def markers(dialect: Dialect) -> tuple[str, ...]:
    """The words of a call that are no keys of a JSON object."""
    return tuple(word for word in literals(dialect) if not word.startswith('"'))
