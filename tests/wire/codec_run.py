"""Drives the reader of one codec as the decoder does: pieces in, events out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from wire_cases import cuts

from toolspeak.events import ArgumentsDelta, Event, Noted
from toolspeak.types import Note
from toolspeak.wire.reading.source import Malformed, Scan
from toolspeak.wire.reading.state import State

Read = Callable[[State, Any, Mapping[str, Any], tuple[str, ...]], Scan[None]]


class Ran(NamedTuple):
    """`rest` is the text behind the arguments, `error` why they are none (rest is then what was not eaten)."""

    events: list[Event]
    notes: list[Note]
    rest: str
    error: str = ""

    @property
    def json(self) -> str:
        """What was passed on of the arguments."""
        return "".join(event.json for event in self.events if isinstance(event, ArgumentsDelta))

    @property
    def rules(self) -> list[str]:
        return [note.rule for note in self.notes]


def run(
    read: Read, hole: Any, chunks: Iterable[str], schema: Mapping[str, Any] | None = None, follow: tuple[str, ...] = ()
) -> Ran:
    """Feed the chunks to `read`, which starts at their first character, and end the text."""
    s = State()
    events = s.events
    scan = read(s, hole, schema or {}, follow)
    rest: list[str] = []
    error, done = "", next(scan, True) is True
    s.flush_arguments()
    for chunk in [*chunks, None]:
        if done:
            rest.append(chunk or "")
        elif chunk and s.fast_search is not None and s.fast_event is not None and s.fast_search(chunk) is None:
            s.passed_pieces.append(chunk)
            events.append(s.fast_event(chunk))
        elif chunk != "":
            if s.passed_pieces:
                s.read_passed()
            if chunk is None:
                s.closed, s.fast_search = True, None
            else:
                s.add(chunk)
            try:
                done = next(scan, True) is True
            except Malformed as e:
                error, done = str(e), True
            s.flush_arguments()
    assert done
    notes = [event.note for event in events if isinstance(event, Noted)]
    return Ran(events, notes, s.text[s.pos :] + "".join(rest), error)


def same_at_every_cut(
    read: Read, hole: Any, text: str, schema: Mapping[str, Any] | None = None, follow: tuple[str, ...] = ()
) -> Ran:
    """What a whole text gives, once it was seen that every cut of it gives the same."""
    whole = run(read, hole, [text], schema, follow)
    for chunks in cuts(text, random.Random(0)):
        other = run(read, hole, chunks, schema, follow)
        assert (other.json, other.notes, other.rest, other.error) == (whole.json, whole.notes, whole.rest, whole.error)
    return whole
