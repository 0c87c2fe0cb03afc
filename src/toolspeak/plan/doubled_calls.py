"""Counts a call once that a server read and left in the text of its model as well.

A call in the text and one of the server's own are the same if their names and arguments are equal, also if a value is a
text in one of them, or null or the default of the tool's schema in one and absent from the other; each is the same as at most
one other. So nothing runs twice, and a call that arrives in only one way stays. The second call is held back until its arguments
are complete. Other events pass as they come.

If the arguments of such two calls differ, they may be two readings of one call, or two calls of which the server read one.
At the end of the reply, when it is known that each of them is a reading of no other call:

- The one that has all arguments of the other and more counts: it is right in both cases. The model wrote what one of the readings
  has more, for a reader loses arguments and adds none but defaults. The other one may be a part of it, so it does not run.
- If the white space around values alone differs, the call in the text counts: a reader removes white space from what the model
  wrote, which the text is.
- Of one that was cut and a whole one that begins with the same, the whole one counts: a server leaves the beginning of a call in
  the text, or loses the end of one. But a server's own call that has nothing more than the beginning in the text may be a repair of
  a call that the model did not finish.

The other call was passed on already, so the note `superseded-call` takes it back by its id. In any other case it is not known which
reading is right: no call is whole, with the note `two-readings`, and the model is asked again. If a value differs otherwise, they are
two calls of the model, and both count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Any

from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted, TextDelta, ThoughtDelta
from ..types import Note, Tool
from ..wire.reading.doubtful import DOUBTFUL, SUPERSEDED, TWO_READINGS
from ..wire.reading.reply_size_limits import CHARACTERS
from .call_readings import Reading, of_one_call, worse

MOST = 32
"""The most calls of each kind that are compared at the end of a reply."""


class DoubledCalls:
    """Passes on the events of a reply without the second of two equal calls; `count` is the number of dropped calls.

    `tools` are those that the model may call."""

    def __init__(self, tools: Sequence[Tool[..., Any]] = ()) -> None:
        self.count = 0
        self._parameters = {tool.name: tool.parameters for tool in tools}
        self._ids: Counter[str] = Counter()
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

    def settled(self) -> list[Event]:
        """At the end of the reply: the notes on calls that are readings of one, if there are any."""
        pairs = [pair for pair in self._pairs() if of_one_call(pair[0].reading, pair[1].reading)]
        times = Counter(chain.from_iterable(pairs))
        notes: list[Event] = []
        for text, own in pairs:
            lesser = worse(text.reading, own.reading)
            dropped = next((call for call in (text, own) if call.reading is lesser), None)
            if dropped is None or max(times[text], times[own], self._ids[dropped.id]) > 1:
                return [Noted(Note(TWO_READINGS, f"the text has another {text.name!r} than the server sent"))]
            notes.append(Noted(Note(SUPERSEDED, dropped.id)))
        self.count += len(notes)
        return notes

    def _pairs(self) -> list[tuple[_Call, _Call]]:
        """The calls in the text, each with those of the server's own that have its name."""
        text = [call for call in self._unpaired if call.in_text][:MOST]
        own = [call for call in self._unpaired if not call.in_text][:MOST]
        return [pair for pair in product(text, own) if pair[0].may_equal(pair[1])]

    def _passed(self, event: Event, in_text: bool) -> list[Event]:
        if isinstance(event, CallStart):
            self._open = _Call(event.name, in_text, event.id, self._parameters.get(event.name, {}))
            self._open.waits = any(map(self._open.may_equal, self._unpaired))
        call = self._open
        if call is None:
            return [event]
        if isinstance(event, CallEnd):
            self._open = None
            return self._ended(call, event)
        if isinstance(event, Noted):
            call.doubtful |= event.note.rule in {*DOUBTFUL, "malformed"}
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
        call.whole, call.id = end.whole, end.id or call.id
        self._ids[call.id] += 1
        twin = next(filter(call.equals, self._unpaired), None) if call.waits and end.whole else None
        if twin is None:
            self._unpaired.append(call)
            return [*call.events, end] if call.waits else [end]
        self._unpaired.remove(twin)
        self.count += 1
        return [event for event in call.events if not isinstance(event, CallStart | ArgumentsDelta)]


def ended_with_calls(end: Finished) -> Finished:
    """The end of a reply with calls that its server did not read: for the server, it stopped."""
    return Finished("tool_calls" if end.finish == "stop" else end.finish, end.usage)


@dataclass(slots=True, eq=False)
class _Call:
    """A call of a tool with these `parameters`, with the characters of its arguments so far (`size`), and of everything that
    came since its beginning (`length`). It `waits` for its end if it may be the second of two equal ones."""

    name: str
    in_text: bool
    id: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    waits: bool = False
    whole: bool = False
    doubtful: bool = False
    size: int = 0
    length: int = 0
    events: list[Event] = field(default_factory=list[Event])
    _readings: list[Reading] = field(default_factory=list[Reading])

    def may_equal(self, other: _Call) -> bool:
        return all((self.in_text != other.in_text, self.name == other.name))

    def equals(self, other: _Call) -> bool:
        """Whether it is the same call, in the other way."""
        if not all((self.may_equal(other), other.whole)):
            return False
        return self.reading.arguments == other.reading.arguments

    @property
    def reading(self) -> Reading:
        """Its arguments, parsed when they are first compared."""
        if not self._readings:
            text = "".join(event.json for event in self.events if isinstance(event, ArgumentsDelta))
            self._readings.append(Reading(text, self.parameters, whole=self.whole, doubtful=self.doubtful))
        return self._readings[0]


def _length(event: Event) -> int:
    """The characters of an event; 1 for one that has none."""
    match event:
        case TextDelta(text) | ThoughtDelta(text) | ArgumentsDelta(text):
            return len(text)
        case Noted(note):
            return len(note.detail) + 1
        case _:
            return 1
