"""A server that takes tools, and may have failed to read a call that its model wrote: it is read here."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import lru_cache

from ..dialects import get
from ..events import CallStart, Event, Finished, Noted, TextDelta
from ..types import Note, Request
from ..wire.decode import Decoder
from ..wire.detect import detect
from ..wire.syntax import Dialect
from .base import Capability
from .http import Http
from .speaker import new_id


class Heard:
    """A native model whose text is read for calls as well, in the model's own dialect; each such call leaves a note.

    Engines read calls with a parser that has to be named when they are started. With the wrong one, or none, a
    call comes as text: `<tool_call>{…}</tool_call>` in the content, and a client takes it for an answer.
    """

    def __init__(self, model: Http, dialect: str | None = None) -> None:
        self.model = model
        self.dialect = dialect
        self.name = model.name
        own_dialect(dialect, model.model)  # a name that is none is told now

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The model's own."""
        return self.model.capabilities

    @property
    def endpoint(self) -> str:
        """The URL that a request goes to."""
        return self.model.endpoint

    def body(self, request: Request) -> bytes:
        """The exact body of a request."""
        return self.model.body(request)

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        async with aclosing(self.model.stream(request)) as events:
            listener: Listener | None = None
            deaf = not request.tools or request.choice == "none"
            async for event in events:
                if deaf:
                    yield event
                    continue
                if listener is None:  # a server without a name for its model was asked for one by now
                    dialect = own_dialect(self.dialect, self.model.model)
                    deaf = dialect is None
                    listener = Listener(request, dialect) if dialect else None
                for heard in listener.hear(event) if listener else (event,):
                    yield heard

    async def count(self, request: Request) -> int | None:
        """The tokens of the request."""
        return await self.model.count(request)

    async def aclose(self) -> None:
        """Closes the connections of the running event loop; see Http."""
        await self.model.aclose()


class Listener:
    """Events of a server in, the same out, with the calls that its text holds."""

    def __init__(self, request: Request, dialect: Dialect) -> None:
        self._request = request
        self._dialect = dialect
        self._decoder: Decoder | None = None
        self._calls = 0

    def hear(self, event: Event) -> list[Event]:
        """What an event of the server's comes to."""
        if isinstance(event, TextDelta):
            if self._decoder is None:
                self._decoder = Decoder(self._dialect, self._request.tools, "", ids=new_id)
            return self._counted(self._decoder.feed(event.text))
        if self._decoder is not None and isinstance(event, CallStart | Finished):
            # The text before a call of the server's own is over: what was held back of it comes first.
            heard: list[Event] = [one for one in self._decoder.close() if not isinstance(one, Finished)]
            self._decoder = None
            return [*self._counted(heard), *self._told(event)]
        return self._told(event)

    def _counted(self, heard: list[Event]) -> list[Event]:
        self._calls += sum(isinstance(one, CallStart) for one in heard)
        return heard

    def _told(self, event: Event) -> list[Event]:
        if not isinstance(event, Finished) or not self._calls:
            return [event]
        calls = "a call" if self._calls == 1 else f"{self._calls} calls"
        note = Note("call-in-text", f"the server left {calls} in the text; read as {self._dialect.name}")
        finish = "tool_calls" if event.finish == "stop" else event.finish
        return [Noted(note), Finished(finish, event.usage)]


@lru_cache(256)
def own_dialect(name: str | None, model: str | None) -> Dialect | None:
    """The dialect to read a native model's text in: the one `name`d, else that of models called like this `model`;
    None where neither tells one, for the generic one would read calls into any JSON."""
    if name is not None:
        return get(name)
    found = detect(model=model) if model else None
    return found if found and found.models else None
