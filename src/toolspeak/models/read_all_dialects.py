"""Finds calls in a text whose dialect is unknown: the decoder of every dialect reads it, and the best reading counts.

Each decoder reads along until it finds words.

One decoder tries a bounded number of openers, and there are about a hundred dialects. So the tries of all decoders that
read a reply count together: past TRIES, its text is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import dropwhile
from typing import Any, Literal, cast

from ..errors import ToolspeakError
from ..events import CallStart, Event, Finished, Noted, TextDelta
from ..plan.calls import checked
from ..plan.invented_results import InventedResults, notes_turn
from ..types import Reply, Tool
from ..wire.decode import Decoder
from ..wire.dialect import Dialect
from ..wire.finding.model_names import known
from ..wire.prompt.calls import write_calls
from ..wire.prompt.template_capabilities import literals
from ..wire.reading.collect import collect
from ..wire.reading.doubtful import DOUBTFUL, TRAILING
from ..wire.reading.lexicon import TAG, program
from ..wire.turn_heads import INVENTED_TURN

LONGEST = 200_000
"""Characters of the longest passage that is read in all dialects."""
DIALECTS = 100
"""About how many there are."""
SLICE = 256
TRIES = 2_000
"""How many openers of calls are tried in a reply, in all dialects together."""
_OPENER = re.compile(r"\s*[<\[\]][^\s{\[]{2}")
"""Matches an opener in brackets, and none that JSON or Python may begin with."""
_FENCE = cast("Callable[[str], re.Match[str]]", re.compile(r"\s*(?:```[\w+-]*\s*)?").match)
"""Matches the fence of a code block at the beginning of a text, if there is one, and white space."""


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
    over: bool = False
    """Whether the turn of a person came: nothing behind that is a part of the reply."""
    before_words: list[Event] | None = None
    """The events before them: what follows is no part of what decides about the calls."""
    passage: str = ""
    """The whole text, where this reading is the best."""
    closed: bool = False
    """Whether it was read to the end."""
    invented: InventedResults | None = None
    """Knows which texts are results that the model made up, so no words; None where these are words too."""

    @property
    def reply(self) -> Reply:
        """What it has up to the words."""
        return collect(self.events if self.before_words is None else self.before_words)

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

    def close(self, cut: bool = False) -> None:
        """Reads to the end, at which the reply may have been `cut`."""
        self.closed = True
        self._add(self.decoder.close(cut))

    def _add(self, came: list[Event]) -> None:
        self.events += [event for event in came if not isinstance(event, Finished)]
        for event in self.invented.feed(came) if self.invented else came:
            if any((self.words, self.over)):
                return
            self.over = notes_turn(event, INVENTED_TURN) if isinstance(event, Noted) else False
            self.words = _is_words(event)
            self.called = self.called or isinstance(event, CallStart)
            if self.words:
                last = dropwhile(lambda one: not _is_words(one), came)
                behind = sum(not isinstance(one, Finished) for one in last)
                self.before_words = self.events[: len(self.events) - behind]


_Ranked = tuple[tuple[int, ...], DialectReading]
Attempts = Literal["none", "marked", "whole", "any"]
"""Which calls that cannot run count: those that begin with a control marker; beside a call in the same text, whole ones or any."""
BESIDE = ("whole", "any")


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
        self._spoken = spoken
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
        self._tries_of_ended = 0
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
            if ended := [one for one in self._reading if one.words]:
                self._ended += ended
                self._reading = [one for one in self._reading if not one.words]
                self._tries_of_ended += sum(one.tries for one in ended)
            self.tries = self._tries_of_ended + sum(one.tries for one in self._reading)
            if self.tries > self._limit:
                self._reading = []
            if not self._reading:
                return

    def calls(self, attempts: Attempts, *, cut: bool = False) -> DialectReading | None:
        """The whole passage as calls, in the dialect that reads it best; None where it is none. `attempts` are the calls that
        cannot run and count too. `cut`: the reply was not over, so only they count."""
        for one in self._reading:
            one.close(cut)
        self._ended += [one for one in self._reading if one.words]
        # With words before it, a fence is an example, whatever follows.
        fenced = self._spoken and self.text.lstrip()[0] == "`"
        calls = [one for one in self._reading if not any((one.words, one.over and fenced))]
        best = None if cut else self._best(calls)
        return _fuller(best, self._attempt(calls, attempts, alone=not self._spoken))

    def calls_before_words(self, attempts: Attempts, *, over: bool = False) -> DialectReading | None:
        """The same, if it begins with calls in a fence or between tags, and words follow. `over`: the text has ended."""
        marked = self.text.lstrip()[0] in "`<"
        called = [one for one in self._ended if one.called] if marked else []
        reading = _fuller(self._best(called), self._attempt(called, attempts, alone=False))
        if reading and not reading.closed:
            reading.read(self.text[reading.length :])
            if over:
                reading.close()
        return reading

    def _best(self, readings: Sequence[DialectReading]) -> DialectReading | None:
        """The one of these that reads whole calls of offered tools best, with arguments that fit. None if a better one
        finds a call doubtful: a dialect that does not know its surroundings may find it whole."""
        ranked: list[_Ranked] = []
        doubts: list[tuple[int, ...]] = []
        for one in readings:
            reply = one.reply
            if reply.calls and not any(checked(call, self._tools)[1] for call in reply.calls):
                ranked.append(((len(reply.calls), *rank(one.dialect, reply, self.text)), one))
            elif _doubtful(reply):
                doubts.append(rank(one.dialect, reply, self.text))
        return self._first(ranked, doubts)

    def _attempt(self, readings: Sequence[DialectReading], attempts: Attempts, *, alone: bool) -> DialectReading | None:
        """The best reading of calls that cannot run: their arguments are wrong, or they are not whole. Whoever wrote them
        behind the control marker that opens calls, or beside a right call, meant them, and has to know what is wrong. Unless
        they are the whole reply (`alone`), their tools are offered ones, or one call is right, and no sentence goes on behind
        them: else they may be an example. So may markers with words between them, and a fence beside a call."""
        beside = all((attempts in BESIDE, self.text.lstrip()[0] != "`"))
        names = {tool.name for tool in self._tools}
        mixed: list[_Ranked] = []
        wrong: list[_Ranked] = []
        doubts: list[tuple[int, ...]] = []
        for one in readings if attempts != "none" else ():
            reply = one.reply
            right = sum(not checked(call, self._tools)[1] for call in reply.calls)
            offered = any((right, beside, all(call.name in names for call in reply.calls)))
            meant = _meant(one, reply, whole=attempts == "whole")
            counts = all((reply.calls, meant, any((alone, offered > _goes_on(reply)))))
            if not counts:
                continue
            order = rank(one.dialect, reply, self.text)
            if any((right, beside)) and right < len(reply.calls):
                mixed.append(((right, len(reply.calls), *order), one))
            elif _opened(one.dialect, self.text):
                wrong.append(((offered, len(reply.calls), *order), one))
                doubts += [order] if _doubtful(reply) else []
        return self._first(mixed, doubts) or self._first(wrong, ())

    def _first(self, ranked: Sequence[_Ranked], doubts: Sequence[tuple[int, ...]]) -> DialectReading | None:
        """The reading with the highest rank, if no doubt has a higher one."""
        best = max(ranked, key=lambda one: one[0], default=None)
        if best is None or any(doubt > best[0][-len(doubt) :] for doubt in doubts):
            return None
        best[1].passage = self.text
        return best[1]


def ready() -> bool:
    """Whether a text was read before: the first makes the readers of all dialects, which takes half a second."""
    return _begun_by.cache_info().currsize > 0


@lru_cache(1024)
def _begun_by(character: str) -> tuple[Dialect, ...]:
    """The dialects in which a call of some tool may begin with this character."""
    return tuple(dialect for dialect in known() if _may_begin(dialect, character))


def _may_begin(dialect: Dialect, character: str) -> bool:
    """Whether a call may begin with this character. The mark of an emphasized tag alone begins none."""
    kinds = {kind for word, kind in program(dialect, True).fresh.items() if word.startswith(character)}
    return kinds != {TAG} and not any(map(_is_words, Decoder(dialect, None, "").feed(character)))


def _is_words(event: Event) -> bool:
    return bool(event.text.strip()) if isinstance(event, TextDelta) else False


def _meant(reading: DialectReading, reply: Reply, *, whole: bool) -> bool:
    """Whether calls with words behind them are whole, or have the beginning of an argument's value: else words, or a
    placeholder (`<function=f>{name}`), are between markers. `whole`: all calls must be whole."""
    if whole:
        return all(call.whole for call in reply.calls)
    return True if reading.before_words is None else all(any((c.whole, ":" in c.json)) for c in reply.calls)


def _fuller(best: DialectReading | None, attempt: DialectReading | None) -> DialectReading | None:
    """The reading of right calls, unless that of calls of which some are wrong has all of them and more: else the wrong ones
    would be words behind the others."""
    if attempt is None:
        return best
    right = [(call.name, call.arguments) for call in best.reply.calls] if best else []
    calls = [(call.name, call.arguments) for call in attempt.reply.calls]
    return attempt if all((len(calls) > len(right), *(call in calls for call in right))) else best


def _doubtful(reply: Reply) -> bool:
    """Whether a call can be read in two ways, or a part of it would be left out."""
    return any(note.rule in DOUBTFUL for call in reply.calls for note in call.notes)


def _goes_on(reply: Reply) -> bool:
    """Whether a sentence goes on behind a call."""
    return any(note.rule == TRAILING for call in reply.calls for note in call.notes)


def _opened(dialect: Dialect, text: str) -> bool:
    """Whether the text begins with what opens calls of the dialect, or a message with one, and that is in brackets, as control
    markers are. The fence of a code block may come before it."""
    words = (dialect.header.start if dialect.header else "", *markers(dialect)[:1])
    openers = tuple(word.strip() for word in words if _OPENER.match(word))
    return text[_FENCE(text).end() :].startswith(openers) if openers else False


def rank(dialect: Dialect, reply: Reply, text: str) -> tuple[int, ...]:
    """How well a dialect reads a text: the text has the marker that opens its calls, and the tags are its own; it writes these
    calls so, blanks aside; it needs few repairs, and few of its markers are missing; many models speak it."""
    words = markers(dialect)
    present = [word for word in words if word in text]
    try:
        written = "".join(write_calls(reply.calls, dialect).split())
    except ToolspeakError:
        written = ""
    exact = written in "".join(text.split()) if written else False
    foreign = any(note.rule == "other-tags" for note in reply.notes)
    opened = any(word in text for word in words[:1]) > foreign
    missing = len(words) - len(present)
    return opened, exact, -len(reply.notes), -missing, sum(map(len, present)), len(dialect.models)


@cache
def markers(dialect: Dialect) -> tuple[str, ...]:
    """The words of a call that are no keys of a JSON object."""
    return tuple(word for word in literals(dialect) if not word.startswith('"'))
