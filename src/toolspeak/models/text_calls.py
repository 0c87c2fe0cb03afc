"""Calls that a server left in the text of its model's reply.

Engines read calls with a parser that has to be named when they are started. With the wrong one, or none, a call comes
as text: `<tool_call>{…}</tool_call>` in the content, and a client takes it for an answer. Two readers mend that:

- A model whose dialect is known, by choice or by its name, is read in that dialect, wherever its calls stand.
- A model that nobody knows is read in all dialects at once, and only a whole reply counts: nothing but calls to
  offered tools, with arguments that fit. All decoders read along; one that finds text drops out. So text is held back
  only while the reply so far can still be such a call, which for most replies is their first piece.

Neither reads a reply that was asked for without tools or with a response schema. With `choice="none"` only the first
reads: what comes is no answer, and whoever asked leaves it out of the text.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import cache, lru_cache
from typing import Any

from ..dialects import get, names
from ..events import CallStart, Event, Finished, Noted, TextDelta
from ..plan.stray_markers import StrayMarkers
from ..schema.check import check
from ..types import Note, Reply, Request, Tool
from ..wire.decode import Decoder, parse
from ..wire.detect import detect
from ..wire.syntax import Dialect
from ..wire.templates.abilities import literals
from .base import Capability, Model
from .http import Http
from .natively import guarded, natively
from .speaker import new_id

LONGEST = 200_000
"""Characters of the longest reply that is read in all dialects."""


class TextCalls:
    """A native model whose text is read for calls as well; each reply with such calls has a note.

    `server` is the one that is asked. `model` stands for it where something is put between, such as a recorder.
    """

    def __init__(self, server: Http, dialect: str | Dialect | None = None, *, model: Model | None = None) -> None:
        self.server = server
        self.model: Model = model or server
        self.dialect = dialect
        self.name = server.name
        own_dialect(dialect, server.model)  # raises for a name that means no dialect

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The server's own."""
        return self.server.capabilities

    @property
    def endpoint(self) -> str:
        """The URL that a request goes to."""
        return self.server.endpoint

    def body(self, request: Request) -> bytes:
        """The exact body of a request."""
        return self.server.body(guarded(self.server, request, own_dialect(self.dialect, self.server.model)))

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        own = own_dialect(self.dialect, self.server.model)
        async with aclosing(natively(self.server, request, own, by=self.model)) as events:
            listener: Listener | None = None
            async for event in events:
                # A server without a name for its model was asked for one by now.
                dialect = own_dialect(self.dialect, self.server.model)
                if not listens(request, dialect):
                    yield event
                    continue
                listener = listener or Listener(request, dialect)
                for one in listener.hear(event):
                    yield one

    async def count(self, request: Request) -> int | None:
        """The tokens of the request."""
        return await self.server.count(request)

    async def aclose(self) -> None:
        """Closes the connections of the running event loop; see Http."""
        await self.server.aclose()


def listens(request: Request, dialect: Dialect | None) -> bool:
    """Whether the text of the reply to a request is read for calls."""
    return bool(request.tools) and request.schema is None and (dialect is not None or request.choice != "none")


class Listener:
    """Turns the events of a server into events with the calls that its text holds. `dialect` None is for a model that
    nobody knows."""

    def __init__(self, request: Request, dialect: Dialect | None) -> None:
        self._request = request
        self._dialect = dialect
        self._reader: _Known | _Unknown | None = None
        self._calls = 0
        self._text = ""
        self._stray = StrayMarkers()  # a server may read a call and leave its markers

    def hear(self, event: Event) -> list[Event]:
        """The events that take the place of one of the server's."""
        return self._stray.feed(self._read(event))

    def _read(self, event: Event) -> list[Event]:
        if self._reader is None and isinstance(event, TextDelta):
            tools = (*(self._request.tools or ()), *self._request.hidden)
            self._reader = _Known(self._dialect, tools) if self._dialect else _Unknown(tools)
        if self._reader is not None and isinstance(event, CallStart | Finished):
            # The text before a call of the server's own is over: what was held back of it comes first.
            came = self._reader.close(whole=isinstance(event, Finished) and event.finish == "stop")
            self._reader = None
            return [*self._counted(came), *self._ending(event)]
        if self._reader is not None:
            return self._counted(self._reader.feed(event))
        return self._ending(event)

    def _counted(self, events: list[Event]) -> list[Event]:
        for event in events:
            if isinstance(event, CallStart):
                self._calls += 1
            elif isinstance(event, TextDelta) and len(self._text) < LONGEST:
                self._text += event.text
        return events

    def _ending(self, event: Event) -> list[Event]:
        if not isinstance(event, Finished):
            return [event]
        if not self._calls:
            note = like_a_call(self._text, self._request.tools or ())
            return [Noted(note), event] if note else [event]
        finish = "tool_calls" if event.finish == "stop" else event.finish
        if self._dialect is None:
            return [Finished(finish, event.usage)]
        calls = "a call" if self._calls == 1 else f"{self._calls} calls"
        return [
            Noted(Note("call-in-text", f"the server left {calls} in the text; read as {self._dialect.name}")),
            Finished(finish, event.usage),
        ]


class _Known:
    """Reads text in one dialect."""

    def __init__(self, dialect: Dialect, tools: Sequence[Tool[..., Any]]) -> None:
        self._decoder = Decoder(dialect, tools, "", ids=new_id)

    def feed(self, event: Event) -> list[Event]:
        return self._decoder.feed(event.text) if isinstance(event, TextDelta) else [event]

    def close(self, *, whole: bool) -> list[Event]:
        del whole  # a call that is cut is told as one
        return [one for one in self._decoder.close() if not isinstance(one, Finished)]


class _Unknown:
    """Reads text in all dialects, and takes a whole reply alone for calls."""

    def __init__(self, tools: Sequence[Tool[..., Any]]) -> None:
        self._tools = tools
        self._decoders = [(d, Decoder(d, tools, "")) for d in every()]
        self._held: list[Event] = []
        self._length = 0

    def feed(self, event: Event) -> list[Event]:
        if not self._decoders:
            return [event]
        self._held.append(event)
        if not isinstance(event, TextDelta):
            return []
        self._length += len(event.text)
        self._decoders = [] if self._length > LONGEST else [
            (d, decoder)
            for d, decoder in self._decoders
            if not any(isinstance(one, TextDelta) and one.text.strip() for one in decoder.feed(event.text))
        ]  # fmt: skip
        return [] if self._decoders else self._released()

    def close(self, *, whole: bool) -> list[Event]:
        text = "".join(event.text for event in self._held if isinstance(event, TextDelta))
        found = best_reading(text, self._tools, [d for d, _ in self._decoders]) if whole else None
        self._decoders = []
        if found is None:
            return self._released()
        dialect, reply = found
        others = [event for event in self._held if not isinstance(event, TextDelta)]
        decoder = Decoder(dialect, self._tools, "", ids=new_id)
        read = [*decoder.feed(text), *decoder.close()]
        return [*others, *(one for one in read if not isinstance(one, Finished | TextDelta)), _left(dialect, reply)]

    def _released(self) -> list[Event]:
        held, self._held = self._held, []
        return held


def _left(dialect: Dialect, reply: Reply) -> Noted:
    calls = "a call" if len(reply.calls) == 1 else f"{len(reply.calls)} calls"
    return Noted(
        Note(
            "call-in-text",
            f"the server left {calls} in the text, and nothing tells which dialect the model speaks; read as "
            f"{dialect.name}, for it was the whole reply. Give dialect={dialect.name!r}, or start the server with the "
            f"parser of its model",
        )
    )


# ------------------------------------------------------------------ a text in all dialects


def best_reading(
    text: str, tools: Sequence[Tool[..., Any]], dialects: Sequence[Dialect] | None = None
) -> tuple[Dialect, Reply] | None:
    """The dialect in which the whole text is calls to offered tools with arguments that fit, and that reply; None where
    there is none. Of several the one that needs the fewest repairs and whose markers the text has."""
    best: tuple[tuple[int, ...], Dialect, Reply] | None = None
    for i, dialect in enumerate(every() if dialects is None else dialects):
        reply = parse(text, dialect, tools, "")
        if not reply.calls or reply.text.strip() or not _fit(reply, tools):
            continue
        words = markers(dialect)
        missing = sum(word not in text for word in words)
        rank = (-len(reply.notes), -missing, sum(map(len, words)), len(dialect.models), -i)
        if best is None or rank > best[0]:
            best = rank, dialect, reply
    return best and best[1:]


def _fit(reply: Reply, tools: Sequence[Tool[..., Any]]) -> bool:
    by_name = {tool.name: tool for tool in tools}
    return all(
        call.whole and call.name in by_name and not check(by_name[call.name], call.arguments) for call in reply.calls
    )


def like_a_call(text: str, tools: Sequence[Tool[..., Any]]) -> Note | None:
    """What to say of a text in which something looks like a call and was not taken for one; None where nothing does."""
    if not any(tool.name in text for tool in tools):
        return None
    for dialect in every():
        words = markers(dialect)
        if all(word in text for word in words) and (calls := parse(text, dialect, tools, "").calls):
            return Note(
                "like-a-call",
                f"a part of the text looks like a call of {calls[0].name} in the dialect {dialect.name}, and stays text. "
                f"Where it is one, give dialect={dialect.name!r}",
            )
    return None


@cache
def every() -> tuple[Dialect, ...]:
    """All dialects, in the order of their names."""
    return tuple(get(name) for name in names())


@cache
def markers(dialect: Dialect) -> tuple[str, ...]:
    """The words of a call that are no keys of a JSON object."""
    return tuple(word for word in literals(dialect) if not word.startswith('"'))


@lru_cache(256)
def own_dialect(dialect: str | Dialect | None, model: str | None) -> Dialect | None:
    """The dialect to read a native model's text in: the one that is given, else that of models called like this `model`;
    None where neither tells one."""
    if dialect is not None:
        return dialect if isinstance(dialect, Dialect) else get(dialect)
    found = detect(model=model) if model else None
    return found if found and found.models else None
