"""A server that is asked with tools as its API has them, and whose text is read for calls as well (see `text_calls`).

Engines put the texts of a request into their chat template and read the whole as tokens, those of a user's text as
well. So markers in what others wrote are broken on the way to it, too, and what is broken is made whole again in the
reply. Hosted APIs, which tell texts and markers apart, are asked as it is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from ..events import Event
from ..types import Request
from ..wire.dialect import Dialect
from ..wire.prompt.control_markers import cleaned_request, was_broken
from ..wire.reading.restoring import Restorer
from .base import Model
from .http import Http
from .http.providers import hosted
from .strategy import by_its_name
from .text_calls import Listener
from .wrapper import Wrapper


class Native(Wrapper[Model]):
    """A server's model that is asked natively; each reply with calls in its text has a note.

    `model` stands for the server where something is put between, such as a recorder.
    """

    def __init__(self, server: Http, dialect: Dialect | None = None, *, model: Model | None = None) -> None:
        super().__init__(server if model is None else model)
        self.server = server
        self.dialect = dialect

    @property
    def endpoint(self) -> str:
        """The URL that a request goes to."""
        return self.server.endpoint

    @property
    def own(self) -> Dialect | None:
        """The dialect that was given, else the one of models of this name, as far as it is known: a server without a name
        for its model is asked for one first."""
        return by_its_name(self.server.model) if self.dialect is None else self.dialect

    def body(self, request: Request) -> bytes:
        """The exact body of a request."""
        return self.server.body(self.cleaned(request))

    def cleaned(self, request: Request) -> Request:
        """The request as it is sent: to a server of one's own with the markers in its texts broken."""
        return request if hosted(self.server.address.shown) else cleaned_request(request, self.own)

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The reply's events, with the calls in its text and what was broken in the request whole again."""
        sent = self.cleaned(request)
        rows = [(tool.name, tool.description, tool.parameters) for tool in sent.tools or ()]
        restorer = Restorer() if was_broken(sent.messages) or was_broken(rows) else None
        listener: Listener | None = None
        async with aclosing(cast("AsyncGenerator[Event]", self.model.stream(sent))) as events:
            async for event in events:
                if listener is None:
                    listener = Listener(request, self.own)
                for whole in restorer.feed((event,)) if restorer else (event,):
                    for one in listener.hear(whole):
                        yield one
