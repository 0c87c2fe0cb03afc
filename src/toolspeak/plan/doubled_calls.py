"""Drops the second of two equal calls: a server may read a call and leave it in the text as well.

A call in the text and one of the server's own are the same if their names and arguments are equal, also if a value is a
text in one of them, or null in one and absent from the other; each is the same as at most one other. So nothing runs twice, and
a call that arrives in only one way stays. The second call is held back until its arguments are complete. Other events pass as
they come.

If the arguments of such two calls differ, they may be two readings of one call, or two calls of which the server read one. One
call was read twice if white space alone differs, if one reading has all arguments of the other and more, or if one of them is
cut. It is not known which reading is right, so neither is whole, with the note `two-readings`, and the model is asked again.
Otherwise they are two calls, and both count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any, cast

from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Noted, TextDelta, ThoughtDelta
from ..schema import nonblocking_json
from ..types import Note
from ..wire.reading.doubtful import TWO_READINGS
from ..wire.reading.reply_size_limits import CHARACTERS

MOST = 32
"""The most calls of each kind that are compared at the end of a reply."""


class DoubledCalls:
    """The events of a reply without the second of two equal calls; `count` is the number of dropped calls."""

    def __init__(self) -> None:
        self.count = 0
        self._unpaired: list[_Call] = []
        """The calls that are the same as no other."""
        self._open: _Call | None = None

    @property
    def cost(self) -> int:
        """The characters that the end of the open call parses: only arguments that may be equal are compared."""
        call = self._open
        if call is None or not call.waits:
            return 0
        return call.size + sum(other.size for other in self._unpaired if call.may_equal(other))

    @property
    def cost_of_doubts(self) -> int:
        """The characters that `doubts` parses."""
        pairs = [call for pair in self._pairs() for call in pair]
        return sum(call.size for call in dict.fromkeys(pairs))

    @property
    def twice(self) -> str:
        """How many calls were dropped, as a part of a sentence; "" for none."""
        return f" ({self.count} sent as a call as well, counted once)" if self.count else ""

    def feed(self, events: Iterable[Event], *, in_text: bool) -> list[Event]:
        """The events that are passed on; `in_text`: the calls among them were read in the text."""
        return [passed for event in events for passed in self._passed(event, in_text)]

    def doubts(self) -> list[Event]:
        """At the end of the reply: the note that calls in it are two readings of one, if some are."""
        for text, own in self._pairs():
            if text.is_reading_of(own):
                return [Noted(Note(TWO_READINGS, f"the text has another {text.name!r} than the server sent"))]
        return []

    def _pairs(self) -> list[tuple[_Call, _Call]]:
        """The calls in the text, each with those of the server's own that have its name."""
        text = [call for call in self._unpaired if call.in_text][:MOST]
        own = [call for call in self._unpaired if not call.in_text][:MOST]
        return [pair for pair in product(text, own) if pair[0].may_equal(pair[1])]

    def _passed(self, event: Event, in_text: bool) -> list[Event]:
        if isinstance(event, CallStart):
            self._open = _Call(event.name, in_text)
            self._open.waits = any(map(self._open.may_equal, self._unpaired))
        call = self._open
        if call is None:
            return [event]
        if isinstance(event, CallEnd):
            self._open = None
            return self._ended(call, event)
        if isinstance(event, ArgumentsDelta):
            call.size += len(event.json)
        call.length += _length(event)
        if call.waits or isinstance(event, ArgumentsDelta):
            call.events.append(event)
        if call.waits and call.length > CHARACTERS:  # the reply is too large, and ends with what is passed on
            call.waits = False
            return list(call.events)
        return [] if call.waits else [event]

    def _ended(self, call: _Call, end: CallEnd) -> list[Event]:
        call.whole = end.whole
        twin = next(filter(call.equals, self._unpaired), None) if call.waits and end.whole else None
        if twin is None:
            self._unpaired.append(call)
            return [*call.events, end] if call.waits else [end]
        self._unpaired.remove(twin)
        self.count += 1
        return [event for event in call.events if not isinstance(event, CallStart | ArgumentsDelta)]


@dataclass(slots=True, eq=False)
class _Call:
    """A call, with the characters of its arguments so far (`size`), and of everything that came since its beginning
    (`length`). It `waits` for its end if it may be the second of two equal ones."""

    name: str
    in_text: bool
    waits: bool = False
    whole: bool = False
    size: int = 0
    length: int = 0
    events: list[Event] = field(default_factory=list[Event])
    _parsed: list[object] = field(default_factory=list[object])

    def may_equal(self, other: _Call) -> bool:
        return all((self.in_text != other.in_text, self.name == other.name))

    def equals(self, other: _Call) -> bool:
        """Whether it is the same call, in the other way."""
        if not all((self.may_equal(other), other.whole)):
            return False
        return self.arguments == other.arguments

    def is_reading_of(self, other: _Call) -> bool:
        """Whether both may be readings of one call of the model."""
        one, two = _trimmed(self.arguments), _trimmed(other.arguments)
        if None in (one, two):
            return not all((self.whole, other.whole))
        return any((one <= two, two <= one))

    @property
    def arguments(self) -> object:
        """Its arguments in one spelling, parsed when they are first compared; their text if that is not JSON."""
        if not self._parsed:
            text = "".join(event.json for event in self.events if isinstance(event, ArgumentsDelta))
            self._parsed.append(_in_one_spelling(nonblocking_json.loads_or(text, text)) if text else {})
        return self._parsed[0]


def _length(event: Event) -> int:
    """The characters of an event; 1 for one that has none."""
    match event:
        case TextDelta(text) | ThoughtDelta(text) | ArgumentsDelta(text):
            return len(text)
        case Noted(note):
            return len(note.detail) + 1
        case _:
            return 1


def _in_one_spelling(value: Any) -> Any:
    """The value with its numbers and truth values as texts, its lists and objects as such, and without what is null: dialects
    write values without their type, and servers add nulls and fractions."""
    if isinstance(value, str) and value.startswith(("[", "{")):
        value = nonblocking_json.loads_or(value, value)
    if isinstance(value, dict):
        values = {name: _in_one_spelling(one) for name, one in cast("dict[str, Any]", value).items()}
        return {name: one for name, one in values.items() if one != "null"}
    if isinstance(value, list):
        return [_in_one_spelling(one) for one in cast("list[Any]", value)]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value)


def _trimmed(arguments: object) -> Any:
    """The names of the arguments, each with its value as a text without white space; None if they are no object."""
    if not isinstance(arguments, dict):
        return None
    values = cast("dict[str, Any]", arguments).items()
    return {(name, "".join((one if isinstance(one, str) else json.dumps(one)).split())) for name, one in values}
