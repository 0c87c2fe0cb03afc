"""Calls that a server left in the text of its model's reply.

Engines read calls with a parser that has to be named when they are started. With the wrong one, or none, a call comes
as text: `<tool_call>{…}</tool_call>` in the content, and a client takes it for an answer. So the text is read:

- In the model's own dialect, where that is known by choice or by its name, wherever its calls stand.
- In all other dialects at once, where only a whole reply counts, or all of its text before or behind the server's own calls:
  nothing but calls to offered tools, with arguments that fit. All decoders read along; one that finds text drops out. So
  text is held back only while the text so far can still be such a call, which for most replies is their first piece.

A call that a server read and left in the text as well counts once (see `doubled_calls`).

A reply that was asked for without tools or with a response schema is not read. With `choice="none"` it is read in the
model's own dialect alone: what comes is no answer, and whoever asked leaves it out of the text.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any

from ..errors import ToolspeakError
from ..events import CallStart, Event, Finished, Noted, TextDelta, ThoughtDelta
from ..plan.effects import Ask
from ..plan.stray_markers import StrayMarkers
from ..schema.check import check
from ..schema.suggestions import did_you_mean, near
from ..types import Note, Reply, Request, Tool, copy_with
from ..wire.decode import Decoder, parse
from ..wire.dialect import Dialect
from ..wire.finding.model_names import known
from ..wire.prompt.calls import write_calls
from ..wire.prompt.template_capabilities import literals
from ..wire.reading.collect import collect
from .doubled_calls import DoubledCalls
from .unread_calls import unread_call

LONGEST = 200_000
"""Characters of the longest reply that is read in all dialects."""
ENDED = ("stop", "tool_calls")
"""How a reply ends that was not cut."""
HINTED = 20_000
"""Characters of the longest answer that is looked through for what only looks like a call."""


class Listener:
    """Turns the events of a server into events with the calls that its text holds. `dialect` None is for a model that
    nobody knows."""

    def __init__(self, request: Request, dialect: Dialect | None) -> None:
        self._offered = request.tools or ()
        self._tools = (*self._offered, *request.hidden)
        self._dialect = dialect
        self._may_call = request.choice != "none"
        self._listens = _may_hold_calls(request) and (self._may_call or dialect is not None)
        self._reader: _Reader | None = None
        self._calls = 0
        self._text = ""
        self._how = ""
        self._doubled = DoubledCalls()
        self._stray = StrayMarkers()  # a server may read a call and leave its markers

    def hear(self, event: Event) -> list[Event]:
        """The events that take the place of one of the server's."""
        return self._stray.feed(self._read(event)) if self._listens else [event]

    def _read(self, event: Event) -> list[Event]:
        if isinstance(event, TextDelta) and self._reader is None:
            self._reader = _Reader(self._dialect, self._tools, whole=self._may_call)
        reader = self._reader
        if reader is None:
            return self._ending(event)
        if not isinstance(event, CallStart | Finished):
            return self._from_text(reader.feed(event))
        # The text before a call of the server's own is over: what was held back of it comes first.
        self._reader = None
        came = self._from_text(reader.close(whole=not isinstance(event, Finished) or event.finish in ENDED))
        self._how = reader.how or self._how
        return [*came, *self._ending(event)]

    def _from_text(self, events: list[Event]) -> list[Event]:
        for event in events:
            if isinstance(event, CallStart):
                self._calls += 1
            elif isinstance(event, TextDelta) and len(self._text) <= HINTED:
                self._text += event.text
        return self._doubled.feed(events, in_text=True)

    def _ending(self, event: Event) -> list[Event]:
        if not isinstance(event, Finished):
            return self._doubled.feed([event], in_text=False)
        if not self._calls:
            note = like_a_call(self._text, self._offered)
            return [Noted(note), event] if note else [event]
        left = "a call" if self._calls == 1 else f"{self._calls} calls"
        twice = f" ({self._doubled.count} sent as a call as well, counted once)" if self._doubled.count else ""
        note = Note("call-in-text", f"the server left {left} in the text{twice}{self._how}")
        return [Noted(note), Finished("tool_calls" if event.finish == "stop" else event.finish, event.usage)]


def with_hint(asked: Ask, request: Request) -> Ask:
    """The question with a reading that leaves a note where the text looks like a call in another dialect."""
    read, text, tools = asked.read, "", request.tools or ()
    if read is None or not _may_hold_calls(request):
        return asked
    if request.choice == "none":
        return asked

    def hinting(event: Event | None) -> Iterator[Event]:
        nonlocal text, tools
        for made in read(event):
            if isinstance(made, TextDelta):
                text += made.text if len(text) <= HINTED else ""
            elif isinstance(made, CallStart):
                tools = ()
            elif isinstance(made, Finished):
                note = like_a_call(text, tools) if tools else None
                yield from [Noted(note)] if note else []
            yield made

    return copy_with(asked, read=hinting)


def _may_hold_calls(request: Request) -> bool:
    return bool(request.tools) and request.schema is None


class _Reader:
    """Reads one text: in the dialect `own`, and if it may be a call as a `whole`, in all others, as long as each of
    them finds nothing but calls in it. What `own` makes of it is held back meanwhile."""

    def __init__(self, own: Dialect | None, tools: Sequence[Tool[..., Any]], *, whole: bool) -> None:
        self._own = own
        self._tools = tools
        self._decoder = Decoder(own, tools, "", ids=new_id) if own else None
        self._whole = whole
        self._others: list[tuple[Dialect, Decoder, list[Event]]] | None = None
        self._held: list[Event] = []
        self._text = ""
        self.how = f"; read as {own.name}" if own else ""

    def feed(self, event: Event) -> list[Event]:
        """What came of one event; [] while it is held back."""
        came = [event]
        if isinstance(event, TextDelta):
            came = self._decoder.feed(event.text) if self._decoder else came
            self._read(event.text)
        if not self._whole:
            return came
        self._held += came
        called = any(isinstance(one, CallStart) for one in came)
        self._whole = not called and self._others != [] and len(self._text) <= LONGEST
        waits = self._whole and any(isinstance(one, TextDelta) for one in self._held)
        return [] if waits else self._released()

    def _read(self, piece: str) -> None:
        """Gives the other dialects a piece; those that find text in it drop out."""
        if not self._whole:
            return
        self._text += piece
        if self._others is None:
            if not (begun := self._text.lstrip()):
                return
            others = (dialect for dialect in _begun_by(begun[0]) if dialect is not self._own)
            self._others = [(dialect, Decoder(dialect, self._tools, "", ids=new_id), []) for dialect in others]
            piece = self._text
        for _, decoder, events in self._others:
            events += decoder.feed(piece)
        self._others = [one for one in self._others if not _said(one[2])]

    def close(self, *, whole: bool) -> list[Event]:
        """What was held back; `whole`: the reply is over, and was not cut."""
        self._held += [one for one in (self._decoder.close() if self._decoder else []) if not isinstance(one, Finished)]
        called = any(isinstance(one, CallStart) for one in self._held)
        found = self._best() if whole and self._whole and not called else None
        return self._in_other(*found) if found else self._released()

    def _in_other(self, dialect: Dialect, events: Sequence[Event]) -> list[Event]:
        """The events of the reply as another dialect reads it, with those of the server that are no text."""
        why = f"not in {self._own.name}" if self._own else "and nothing tells which dialect the model speaks"
        self.how = (
            f", {why}; read as {dialect.name}, for it was the whole reply. Give dialect={dialect.name!r}, or start the "
            "server with the parser of its model"
        )
        thought = any(isinstance(one, ThoughtDelta) for one in self._held)
        unread = (TextDelta, Finished, ThoughtDelta) if thought else (TextDelta, Finished)
        kept = [one for one in self._held if not isinstance(one, TextDelta | Noted)]
        return [*kept, *(one for one in events if not isinstance(one, unread))]

    def _best(self) -> tuple[Dialect, list[Event]] | None:
        """The dialect in which the whole text is calls to tools that are there, with arguments that fit."""
        found: list[tuple[tuple[int, ...], Dialect, list[Event]]] = []
        for dialect, decoder, events in self._others or ():
            reply = collect([*events, *(ended := decoder.close())])
            if reply.calls and not reply.text.strip() and _fit(reply, self._tools):
                found.append((_rank(dialect, reply, self._text), dialect, [*events, *ended]))
        return max(found, key=lambda one: one[0])[1:] if found else None

    def _released(self) -> list[Event]:
        held, self._held = self._held, []
        return held


# ------------------------------------------------------------------ a text in all dialects


@lru_cache(1024)
def _begun_by(character: str) -> tuple[Dialect, ...]:
    """The dialects in which a call of some tool may begin with this character."""
    return tuple(dialect for dialect in known() if not _said(Decoder(dialect, None, "").feed(character)))


def _said(events: Sequence[Event]) -> bool:
    return any(isinstance(event, TextDelta) and event.text.strip() for event in events)


def _fit(reply: Reply, tools: Sequence[Tool[..., Any]]) -> bool:
    by_name = {tool.name: tool for tool in tools}
    return all(
        call.whole and call.name in by_name and not check(by_name[call.name], call.arguments) for call in reply.calls
    )


def _rank(dialect: Dialect, reply: Reply, text: str) -> tuple[int, ...]:
    """How well a dialect reads a text: it leaves little over; it writes these calls so, blanks aside; it needs few
    repairs; the text has many of its markers; many models speak it."""
    words = markers(dialect)
    missing = sum(word not in text for word in words)
    try:
        written = "".join(write_calls(reply.calls, dialect).split())
    except ToolspeakError:
        written = ""
    exact = written in "".join(text.split()) if written else False
    left = len(reply.text.strip())
    return -left, exact, -len(reply.notes), -missing, sum(map(len, words)), len(dialect.models)


def like_a_call(text: str, tools: Sequence[Tool[..., Any]]) -> Note | None:
    """What to say of a text in which something looks like a call, of a tool or of one that is nearly named so, and was
    not taken for one; None where nothing does."""
    if not 0 < len(text) <= HINTED:
        return None
    offered = [tool.name for tool in tools]
    words = markers if any(name in text for name in offered) else literals
    found: list[tuple[tuple[int, ...], Dialect, str]] = []
    for dialect in known():
        if all(word in text for word in words(dialect)):
            reply = parse(text, dialect, None, "")
            if name := _nearly(reply, offered):
                found.append(((name in offered, *_rank(dialect, reply, text)), dialect, name))
    if not found:
        return unread_call(text, tools)
    _, dialect, name = max(found, key=lambda one: one[0])
    looks = f"a part of the text looks like a call of {name} in the dialect {dialect.name}, and stays text."
    if name in offered:
        return Note("like-a-call", f"{looks} Where it is one, give dialect={dialect.name!r}")
    return Note("like-a-call", f"{looks} No tool has that name.{did_you_mean(near(name, offered))}")


def _nearly(reply: Reply, offered: Sequence[str]) -> str:
    """The name of the first call of a tool that is offered, else of one that is nearly named so, else ""."""
    names = [call.name for call in reply.calls]
    exact, close = (n for n in names if n in offered), (n for n in names if near(n, offered))
    return next(chain(exact, close), "")


@cache
def markers(dialect: Dialect) -> tuple[str, ...]:
    """The words of a call that are no keys of a JSON object."""
    return tuple(word for word in literals(dialect) if not word.startswith('"'))


def new_id() -> str:
    """An id for a call, unique beyond any conversation."""
    return f"call_{secrets.token_hex(12)}"
