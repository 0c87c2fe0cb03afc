"""Reads a passage of a text in all dialects at once. Each decoder reads along until it finds words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from ..errors import ToolspeakError
from ..events import CallStart, Event, Finished, TextDelta
from ..schema.check import check
from ..types import Reply, Tool
from ..wire.decode import Decoder
from ..wire.dialect import Dialect
from ..wire.finding.model_names import known
from ..wire.prompt.calls import write_calls
from ..wire.prompt.template_capabilities import literals
from ..wire.reading.collect import collect

LONGEST = 200_000
"""Characters of the longest passage that is read in all dialects."""
SLICE = 256


@dataclass(slots=True)
class Reading:
    """A passage as one dialect reads it; `decoder` reads what follows."""

    dialect: Dialect
    decoder: Decoder
    events: list[Event] = field(default_factory=list[Event])
    length: int = 0
    """Characters that were read."""

    def read(self, piece: str) -> list[Event]:
        """What comes of the next characters."""
        came = self.decoder.feed(piece)
        self.events += came
        self.length += len(piece)
        return came


class Passage:
    """A part of a text, from where a call may begin. All dialects but `own` read along; one that finds words drops out."""

    def __init__(self, own: Dialect | None, tools: Sequence[Tool[..., Any]], text: str, ids: Callable[[], str]) -> None:
        self.text = ""
        self._tools = tools
        others = (dialect for dialect in _begun_by(text.lstrip()[0]) if dialect is not own)
        self._reading = [Reading(dialect, Decoder(dialect, tools, "", ids=ids)) for dialect in others]
        self._ended: list[Reading] = []
        """Those that found words behind calls."""
        self.feed(text)

    @property
    def open(self) -> bool:
        """Whether it may still be calls and nothing else."""
        return bool(self._reading) and len(self.text) <= LONGEST

    def feed(self, piece: str) -> None:
        """Reads on, in slices: most passages are words after a few characters."""
        at = len(self.text)
        self.text += piece
        while self._reading and at < len(self.text):
            part, at = self.text[at : at + SLICE], at + SLICE
            reading, self._reading = self._reading, []
            for one in reading:
                came = one.read(part)
                if not any(map(_is_words, came)):
                    self._reading.append(one)
                elif isinstance(next(filter(_is_words_or_call, one.events)), CallStart):
                    self._ended.append(one)

    def calls(self) -> Reading | None:
        """The whole passage as calls, in the dialect that reads it best; None where it is none."""
        for one in self._reading:
            one.events = [event for event in (*one.events, *one.decoder.close()) if not isinstance(event, Finished)]
        return self._best([one for one in self._reading if not any(map(_is_words, one.events))])

    def calls_before_words(self) -> Reading | None:
        """The same, if it begins with calls in a fence or between tags, and words follow."""
        found = self._best(self._ended) if self.text.lstrip()[0] in "`<" else None
        if found:
            found.read(self.text[found.length :])
        return found

    def _best(self, readings: Sequence[Reading]) -> Reading | None:
        """The one of these that reads calls to offered tools best, with arguments that fit."""
        found: list[tuple[tuple[int, ...], Reading]] = []
        for one in readings:
            reply = collect(one.events)
            if reply.calls and _fit(reply, self._tools):
                found.append(((len(reply.calls), *rank(one.dialect, reply, self.text)), one))
        return max(found, key=lambda one: one[0])[1] if found else None


@lru_cache(1024)
def _begun_by(character: str) -> tuple[Dialect, ...]:
    """The dialects in which a call of some tool may begin with this character."""
    return tuple(dialect for dialect in known() if not any(map(_is_words, Decoder(dialect, None, "").feed(character))))


def _is_words(event: Event) -> bool:
    return isinstance(event, TextDelta) and bool(event.text.strip())


def _is_words_or_call(event: Event) -> bool:
    return isinstance(event, CallStart) or _is_words(event)


def _fit(reply: Reply, tools: Sequence[Tool[..., Any]]) -> bool:
    by_name = {tool.name: tool for tool in tools}
    return all(
        call.whole and call.name in by_name and not check(by_name[call.name], call.arguments) for call in reply.calls
    )


def rank(dialect: Dialect, reply: Reply, text: str) -> tuple[int, ...]:
    """How well a dialect reads a text: it writes these calls so, blanks aside; it needs few repairs; the text has many
    of its markers; many models speak it."""
    words = markers(dialect)
    missing = sum(word not in text for word in words)
    try:
        written = "".join(write_calls(reply.calls, dialect).split())
    except ToolspeakError:
        written = ""
    exact = written in "".join(text.split()) if written else False
    return exact, -len(reply.notes), -missing, sum(map(len, words)), len(dialect.models)


@cache
def markers(dialect: Dialect) -> tuple[str, ...]:
    """The words of a call that are no keys of a JSON object."""
    return tuple(word for word in literals(dialect) if not word.startswith('"'))
