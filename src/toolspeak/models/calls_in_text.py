"""Reads the calls that a server left in the text of its model's reply.

An engine reads calls with a parser that is named when it is started. With the wrong parser, or none, a call arrives as
text: `<tool_call>{…}</tool_call>` in the content, and a client takes it for an answer. A model whose tools are in the prompt
may write its calls in the dialect that it was trained on, instead of the one in which it was asked. So the text is read:

- In the model's own dialect, if that was chosen or its name tells it, wherever the calls stand.
- In all other dialects at once, if the reply (or its part before or behind the server's own calls) is calls of offered
  tools with valid arguments, and nothing else. Calls that begin with a fence or a tag may have words before them, on
  lines of their own, or behind them. With words on both sides they are an example.
- Calls that cannot run count too if they begin with a control marker and the server read no call: the model is asked again,
  as after a wrong call that the server read. If they are the whole reply, their tools need not be offered.

Text is held back only while it can still be such a call, which for most replies is their first piece. A call that a
server read and left in the text as well counts once (see `doubled_calls`).

A thought at the beginning of a reply is no text of it (see `leading_thought`).

If the user named the dialect in which a model is asked, its replies are read in that alone.

A reply to a request without tools or with a response schema is not read for calls. With `choice="none"` it is read in the model's
own dialect, and after results of calls in the others too, so that whoever asked can leave the call out of the answer.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from ..dialects import get
from ..events import CallStart, Event, Finished, Noted, TextDelta, ThoughtDelta
from ..plan.attempted_call import notes_markers
from ..plan.doubled_calls import DoubledCalls, ended_with_calls
from ..plan.invented_results import InventedResults, notes_turn
from ..plan.stray_markers import StrayMarkers
from ..types import Note, Request, Tool
from ..wire.decode import Decoder
from ..wire.dialect import Dialect
from ..wire.finding.always_thinking import first_closer
from ..wire.reading.marker_restoring import Restorer
from .drafted_calls import DraftedCalls
from .dropped_tools import dropped_tools
from .half_calls import without_half_call
from .leading_thought import LeadingThought
from .new_ids import new_id
from .offload import LARGE, offloaded, request_size
from .read_all_dialects import BESIDE, DIALECTS, TRIES, Attempts, DialectReading, Passage, ready
from .text_behind_calls import TextBehindCalls
from .unread_calls import LONGEST, like_a_call, may_hold_calls, setting

PASSAGES = 16
"""How many passages of a reply are read in all dialects: an answer may hold hundreds of fences."""
FIRST, LATER = re.compile(r"\S"), re.compile(r"(?<=\n) {0,3}[`<]")
"""Where a passage begins that may be a call: at the first word of a reply; behind words, at a fence or a tag."""
INDENTED = cast("Callable[[str], re.Match[str]]", re.compile(r"\n {0,3}\Z|.?\Z", re.DOTALL).search)
"""Matches the end of a text that such a place may follow."""
SWALLOWED = ". It stands in the thought: the server's parser of thoughts took it for a part of that"
"""What to say of a call that a server sent as a thought."""
DRAFTED = ". It stands in a thought that is not closed, where only a call at the very end counts"
"""What to say of a call in such a thought of the text."""
ENDED = ("stop", "tool_calls")
"""How a reply ends that was not cut."""


class Listener:
    """Turns the events of a server into events with the calls that its text holds. `dialect` None is for a model that
    nobody knows. `prompted_in` is the dialect in which the model was asked, in which its text was read already. `own_server`
    is for a server of the user's own, which may drop the tools."""

    def __init__(
        self, request: Request, dialect: Dialect | None, prompted_in: Dialect | None = None, *, own_server: bool = False
    ) -> None:
        self._request = request if own_server else None
        self._offered = request.tools or ()
        self._tools = (*self._offered, *request.hidden)
        self._dialect = dialect
        self._may_call = any((request.choice != "none", _after_results(request)))
        self._prompted_in = prompted_in
        self._listens = may_hold_calls(request) and (self._may_call or dialect is not None)
        self._leading = LeadingThought(
            dialect if self._listens else None,
            continues=request.prompt is not None,
            begun=first_closer(dialect) if request.schema is None else "",
        )
        self._reader: _TextReader | None = None
        self._thinker = _TextReader(None, self._tools, others=self._may_call, spoken=True) if dialect is None else None
        """Holds back what may be the last calls of a thought in the text. The decoder of a known dialect does so itself."""
        self._calls = 0
        self._alone = True
        """Whether the server read no call itself."""
        self._text = self._thought = ""
        self._how = ""
        self._order = TextBehindCalls()
        self._doubled = DoubledCalls(self._tools)
        self._drafts = DraftedCalls() if own_server else None
        self._stray = StrayMarkers()  # a server may read a call and leave its markers
        self.restorer: Restorer | None = None
        """Restores the markers that were broken in the prompt, after calls were looked for: a copy is no call."""
        self._invented = InventedResults()
        self._own_notes: list[Event] = []  # on a text of no known dialect

    def cost(self, event: Event) -> int:
        """The size of an event as `offloaded` counts it: a text may be read in all dialects, and is once more at its end; the
        arguments of two calls may be compared."""
        due, ended = self._order.due(event), isinstance(event, Finished)
        if not self._listens or not (due or ended):
            return self._doubled.cost
        if not ready():
            return LARGE
        if not ended:
            return DIALECTS * due + self._doubled.cost
        if self._request and request_size(self._request) >= LARGE:
            return LARGE
        return DIALECTS * (len(self._text) + len(self._thought)) + self._doubled.cost_of_doubts

    def hear(self, event: Event) -> list[Event]:
        """The events that take the place of one of the server's."""
        events: list[Event] = []
        for one in self._order.feed(event):
            events += self._drafts.feed(one) if self._drafts else []
            events += self._events(one)
        return self.restorer.feed(events) if self.restorer else events

    def _events(self, event: Event) -> list[Event]:
        if isinstance(event, ThoughtDelta):
            self._thought += event.text if len(self._thought) <= LONGEST else ""
        events = self._leading.feed(event)
        if self._listens and self._thinker and not isinstance(event, ThoughtDelta):
            events = [part for one in events for part in self._thinking(one, self._thinker)]
        if not self._listens:
            return events
        out = self._invented.feed(self._stray.feed([output for one in events for output in self._read(one)]))
        return self._with_notes(event, out)

    def _with_notes(self, event: Event, out: list[Event]) -> list[Event]:
        """At the end of a reply without calls, also the notes on turns of other roles, and on markers around no call."""
        ended = all((not self._calls, isinstance(event, Finished)))
        return [*out[:-1], *self._own_notes, *out[-1:]] if ended else out

    def _thinking(self, event: Event, thinker: _TextReader) -> list[Event]:
        """The event; of a thought in the text what can be no call at its end."""
        if isinstance(event, ThoughtDelta):
            return _as_thought(thinker.feed(TextDelta(event.text)))
        return [event] if isinstance(event, Finished | Noted) else [*_as_thought(thinker.released()), event]

    def _new_reader(self) -> _TextReader:
        return _TextReader(self._dialect, self._tools, others=self._may_call, prompted_in=self._prompted_in)

    def _read(self, event: Event) -> list[Event]:
        if isinstance(event, TextDelta) and self._reader is None:
            self._reader = self._new_reader()
        reader = self._reader
        self._alone &= not isinstance(event, CallStart)
        if reader is None:
            return [*self._in_thought(event), *self._ending(event)]
        # Half a call before one in the same text is the head of that call.
        beside: Attempts = "whole" if isinstance(event, CallStart) else "any"
        reader.attempts = "marked" if self._alone else beside if self._prompted_in else "none"
        if not isinstance(event, CallStart | Finished):
            return self._from_text(reader.feed(event))
        # The text before a call of the server's own is over: what was held back of it comes first.
        self._reader = None
        whole = not isinstance(event, Finished) or event.finish in ENDED
        came = self._from_text(reader.close(whole=whole, cut=not whole))
        self._own_notes = reader.notes
        self._how = reader.how or self._how
        return [*came, *self._in_thought(event), *self._ending(event)]

    def _in_thought(self, event: Event) -> list[Event]:
        """The calls at the end of a thought after which nothing comes: one that is still open when the reply is over, or
        one that the server took for the whole reply, and passed on as a thought."""
        if not isinstance(event, Finished):
            return []
        over = any((self._calls, self._text.strip(), not self._alone))
        if self._thinker and not self._thought:
            whole = all((event.finish in ENDED, self._leading.unclosed, not over))
            came = self._thinker.close(whole=whole)
            calls = self._last_calls(self._thinker, came)
            return [*_as_thought(came[: len(came) - len(calls)]), *self._from_text(calls)]
        text = f"{self._thought}{self._leading.unclosed}"
        long = len(self._thought) > LONGEST  # its end was not kept
        if any((over, long, not text)):
            return []
        reader = self._new_reader()
        came = [*reader.feed(TextDelta(text)), *reader.close(whole=event.finish in ENDED)]
        return self._from_text(self._last_calls(reader, came))

    def _last_calls(self, reader: _TextReader, came: list[Event]) -> list[Event]:
        """The calls at the end of a thought, as it was read."""
        calls = _after_words(came)
        if CallStart not in map(type, calls):
            return []
        self._how = f"{reader.how}{SWALLOWED if self._thought else ''}"
        return calls

    def _from_text(self, events: list[Event]) -> list[Event]:
        for event in events:
            if isinstance(event, CallStart):
                self._calls += 1
            elif isinstance(event, TextDelta) and len(self._text) <= LONGEST:
                self._text += event.text
        return self._doubled.feed(events, in_text=True)

    def _ending(self, event: Event) -> list[Event]:
        if not isinstance(event, Finished):
            return self._doubled.feed([event], in_text=False)
        text, where = self._answer()
        looking = like_a_call(text, self._offered, event.finish)
        looks = [Noted(replace(looking, detail=looking.detail + where))] if looking else []
        if not self._calls:
            return [*looks, *self._dropped(event), event]
        settled = self._doubled.settled()
        left = "a call" if self._calls == 1 else f"{self._calls} calls"
        wrote = (
            f"asked in {self._prompted_in.name}, the model wrote {left} in another dialect" if self._prompted_in else ""
        )
        note = Note("call-in-text", f"{wrote or f'the server left {left} in the text'}{self._doubled.twice}{self._how}")
        return [*settled, *looks, Noted(note), ended_with_calls(event)]

    def _answer(self) -> tuple[str, str]:
        """The text in which a call may have been overlooked, and where it stands: in a thought if nothing else came."""
        if any((self._text.strip(), self._calls, not self._alone)):
            return self._text, ""
        return (self._thought, SWALLOWED) if self._thought else (self._leading.unclosed_thought, DRAFTED)

    def _dropped(self, event: Finished) -> list[Event]:
        """A note where the server's count shows that the model got no tools, and it called none."""
        note = dropped_tools(self._request, event.usage) if self._request and self._alone else None
        return [Noted(note)] if note else []


async def with_calls_in_text(events: AsyncGenerator[Event], listener: Listener) -> AsyncGenerator[Event]:
    """The events with the calls that their text holds."""
    async with aclosing(events) as source:
        async for event in source:
            for one in await offloaded(listener.cost(event), listener.hear, event):
                yield one


def _as_thought(events: Sequence[Event]) -> list[Event]:
    """The events with texts as parts of a thought."""
    return [ThoughtDelta(one.text) if isinstance(one, TextDelta) else one for one in events]


def _after_words(events: list[Event]) -> list[Event]:
    """The events after the last words, without white space."""
    after: list[Event] = []
    for event in events:
        if not isinstance(event, TextDelta | ThoughtDelta):
            after.append(event)
        elif event.text.strip():
            after = []
    return after


def _after_results(request: Request) -> bool:
    """Whether the conversation ends with the results of calls: the model may go on calling, whatever is allowed."""
    return any(message.get("role") == "tool" for message in request.messages[-1:])


class _TextReader:
    """Reads one text: in the dialect `own`, and, if `others`, each passage that may be a call in all other dialects. What
    `own` makes of a passage is held back until that is over."""

    def __init__(
        self,
        own: Dialect | None,
        tools: Sequence[Tool[..., Any]],
        *,
        others: bool,
        spoken: bool = False,
        prompted_in: Dialect | None = None,
    ) -> None:
        self._own = own
        self._prompted_in = prompted_in
        self._tools = tools
        self.attempts: Attempts = "none"
        """Which calls that cannot run count too: none if the server read a call, but any if that is in the same text."""
        self._decoder = Decoder(own, tools, "", ids=new_id) if own else None
        self._any = self._decoder or Decoder(get("hermes"), tools, "")
        """Knows the turns of other roles, and the markers of most families, also in a text of no known dialect."""
        self.notes: list[Event] = []  # of that decoder, unless it is the one of the dialect
        self._fed = 0  # characters so far
        self._buffered: list[Event] = []
        self._kinds: set[type] = set()
        """Of all events so far."""
        self._left = PASSAGES if others else 0
        self._tries = TRIES
        self._passage: Passage | None = None
        self._spoken = spoken
        """Whether there are words before the passage."""
        self._before = "\n" if spoken else ""
        """The last character before the passage, or before the next piece and its indentation."""
        self.how = f"; read as {own.name}" if own else ""

    def feed(self, event: Event) -> list[Event]:
        """What came of one event; [] while it is held back."""
        text = event.text if isinstance(event, TextDelta) else ""
        came = self._decoded(text) if text else [event]
        came = came if self._decoder else [event]
        self._buffered += came
        self._kinds.update(map(type, came))
        if CallStart in self._kinds:
            self._left, self._passage = 0, None
        elif text and self._left and (reading := self._read(text)):
            return self._in_other(reading)
        if self._passage is None:
            return self.released()
        return [] if any(isinstance(one, TextDelta) for one in self._buffered) else self.released()

    def _decoded(self, text: str) -> list[Event]:
        """What the decoder makes of the text."""
        self._fed += len(text)
        read = self._noted(self._any.feed(text))
        return read if self._decoder in (None, self._any) else self._decoder.feed(text)

    def _noted(self, read: list[Event]) -> list[Event]:
        """The events, after what they note of any text."""
        if self._decoder is None:
            self.notes += (one for one in read if any((notes_turn(one), notes_markers(one))))
        return read

    def _read(self, text: str) -> DialectReading | None:
        """Gives the passage a text, and begins others where it turns out to be words. Returns calls with words behind
        them."""
        passage = self._passage
        if passage:
            passage.feed(text)
        while passage is None or not passage.open:
            if passage:
                if not self._spoken and (reading := passage.calls_before_words(self.attempts)):
                    return reading
                self._spoken = True
                self._tries -= passage.tries
                self._before, text = passage.text[0], passage.text[1:]
            lines = self._before + text
            opener = (LATER if self._spoken else FIRST).search(lines)
            begin = opener.end() - 1 if opener else len(lines)
            if any((opener is None, not self._left, self._tries < 0, self._in_other_turn(begin - len(lines)))):
                self._passage, self._before = None, INDENTED(lines)[0]
                return None
            self._left -= 1
            self._before = lines[max(begin - 1, 0) : begin]
            passage = self._passage = Passage(
                self._own, self._tools, lines[begin:], new_id, self._tries, spoken=self._spoken
            )
        return None

    def _in_other_turn(self, place: int) -> bool:
        """Whether a place, counted from the end of the text, is in the turn of another role."""
        turn = self._any.state.other_turn
        return turn is not None and self._fed + place >= turn.at

    def close(self, *, whole: bool, cut: bool = False) -> list[Event]:
        """What was held back; `whole`: the text is over, and was not `cut`."""
        came = self._decoder.close(cut) if self._decoder else []
        ended = [] if self._decoder else self._noted(self._any.close(cut))
        self._buffered += [one for one in came if not isinstance(one, Finished)]
        passage = self._passage if whole or cut else None
        if passage is None or CallStart in map(type, came):
            return self.released()
        reading = passage.calls(self.attempts, cut=cut)
        if all((reading is None, whole, not self._spoken)):
            reading = passage.calls_before_words(self.attempts, over=True)
        return self._in_other(reading) if reading else without_half_call(self.released(), ended, self._fed)

    def _in_other(self, reading: DialectReading) -> list[Event]:
        """The events of the passage as another dialect reads it, and those of the server that are none of its text. What
        follows is read in that dialect too."""
        text = "".join(one.text for one in self._buffered if isinstance(one, TextDelta))
        before = text.removesuffix(reading.passage) if self._spoken else ""
        if before == text:  # the own dialect read a part of the passage as something else
            return self.released()
        self.how = self._reason(reading)
        twice = ThoughtDelta if ThoughtDelta in self._kinds else Finished
        turn = [] if reading.over else list(filter(notes_turn, self._buffered))
        others = [one for one in self._buffered if not isinstance(one, TextDelta | Noted)]
        self._decoder, self._left, self._passage, self._buffered = reading.decoder, 0, None, []
        words = [TextDelta(before)] if before else []
        return [*words, *others, *(one for one in reading.events if not isinstance(one, twice)), *turn]

    def _reason(self, reading: DialectReading) -> str:
        why = f"not in {self._own.name}" if self._own else "and the dialect of the model is unknown"
        where = "the reply ended with it" if self._spoken else "it was the whole reply"
        where = "the reply began with it" if reading.words else where
        where = "it stood beside another call" if self.attempts in BESIDE else where
        if self._prompted_in:
            return f"; read as {reading.dialect.name}, for {where}. Give {setting(reading.dialect)}, to ask it in that"
        return (
            f", {why}; read as {reading.dialect.name}, for {where}. Give {setting(reading.dialect)}, which "
            "puts the tools into the prompt, or start the server with the parser of its model"
        )

    def released(self) -> list[Event]:
        """What was held back, as the server sent it."""
        events, self._buffered = self._buffered, []
        return events
