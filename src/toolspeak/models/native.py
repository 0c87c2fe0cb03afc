"""Native tool calling: sends the tools in the API's own field, and finds calls left in the text (see `calls_in_text`).

Engines lay the texts of a request out by their chat template and read the result as tokens, including the user's text. So
markers in untrusted texts are broken before they are sent, and made whole again in the reply. Hosted APIs keep texts and
markers apart, so their requests are sent unchanged.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from ..events import Event, Noted
from ..plan.attempted_call import BEGUN, LOST, UNREAD
from ..plan.end_marks import EndMarks
from ..types import Request
from ..wire.dialect import Dialect
from ..wire.prompt.control_markers import cleaned_request, was_broken
from ..wire.reading.marker_restoring import Restorer
from .base import Model
from .calls_in_text import Listener
from .http import Http
from .http.providers import hosted
from .offload import offloaded, request_size
from .strategy import by_its_name
from .wrapper import Wrapper


class Native(Wrapper[Model]):
    """A model that is offered tools natively. A reply with calls in its text gets a note.

    `model` takes the place of the server if something is put between, such as a recorder.
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
        """The given dialect, else that of models with this name; None if neither is known."""
        return by_its_name(self.server.model) if self.dialect is None else self.dialect

    def body(self, request: Request) -> bytes:
        """The exact body of a request."""
        return self.server.body(self.cleaned(request))

    def cleaned(self, request: Request) -> Request:
        """The request as it is sent. For a server of your own, the markers in its texts are broken."""
        return request if hosted(self.server.address.public) else cleaned_request(request, self.own)

    def _sent(self, request: Request) -> tuple[Request, bool]:
        """The request as it is sent, and whether any text in it was broken."""
        sent = self.cleaned(request)
        rows = [(tool.name, tool.description, tool.parameters) for tool in sent.tools or ()]
        return sent, was_broken(sent.messages) or was_broken(rows)

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The reply's events: calls in its text are calls, and markers that were broken in the request are whole."""
        sent, broken = await offloaded(request_size(request), self._sent, request)
        # A text that may quote the user's markers, is scored by token, or comes from a hosted API keeps what it ends with.
        scored, continues = request.logprobs is not None, request.prompt is not None
        own_server = not hosted(self.server.address.public)
        exact = any((broken, scored, continues, not own_server))
        end_marks = None if exact else EndMarks()
        listener: Listener | None = None
        async with aclosing(cast("AsyncGenerator[Event]", self.model.stream(sent))) as events:
            async for event in events:
                if listener is None:
                    listener = Listener(request, self.own, own_server=own_server)
                    listener.restorer = Restorer() if broken else None
                came = await offloaded(listener.cost(event), listener.hear, event)
                came = came if own_server else [one for one in came if not _unread(one)]
                for one in end_marks.feed(came) if end_marks else came:
                    yield one


def _unread(event: Event) -> bool:
    """Whether it says that a text was meant as a call, or has one. The text of a hosted API is not judged: its server reads calls."""
    match event:
        case Noted(note):
            return note.rule in (UNREAD, BEGUN, LOST)
        case _:
            return False
