"""Models around models: what is added to a model without its knowing."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from ..errors import BadRequest, ModelUnreachable
from ..events import Event
from ..plan.effects import Ask
from ..types import Request
from ..wire.syntax import Dialect
from .base import Capability, Model
from .http import Http
from .likelihood import instead_of_tools
from .natively import guarded
from .speaker import DEFAULT, Speaker
from .text_calls import TextCalls, own_dialect

log = logging.getLogger(__name__)


def demanded(request: Request) -> bool:
    """Whether a call must come."""
    return bool(request.tools) and request.choice not in ("auto", "none")


def _first_body(spoken: Speaker, request: Request) -> bytes:
    """The body of the first question that a spoken model is asked; none where it is asked for likelihoods."""
    effect = spoken.plan(request).send(None)
    return spoken.model.body(effect.request) if isinstance(effect, Ask) and isinstance(spoken.model, Http) else b""


class Demanding:
    """Tools natively, but where a call must come: then in a dialect, to which the server holds its model.

    For a server that takes `tool_choice` and does not hold to it, but does to a grammar or a schema.
    """

    def __init__(self, model: TextCalls, spoken: Speaker) -> None:
        self.model = model
        self.spoken = spoken
        self.name = model.name
        self.capabilities: frozenset[Capability] = frozenset({"required", *model.capabilities})

    @property
    def endpoint(self) -> str:
        """The URL that a request goes to."""
        return self.model.endpoint

    def body(self, request: Request) -> bytes:
        """The exact body of a request."""
        return _first_body(self.spoken, request) if demanded(request) else self.model.body(request)

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The reply's events; see the protocol."""
        return self.spoken.stream(request) if demanded(request) else self.model.stream(request)

    async def count(self, request: Request) -> int | None:
        """The tokens of the request as it would be sent."""
        return await (self.spoken if demanded(request) else self.model).count(request)

    async def aclose(self) -> None:
        """Closes the connections of the running event loop; see Http."""
        await self.model.aclose()


class NativeOrSpoken:
    """Tools natively where the server takes them, otherwise written into the prompt, from the first refusal on.

    Whether a server takes tools depends on the model, the template and how it was started; only asking
    tells. `model` is the native one, `spoken` the one that `dialect` makes of it. A server that says before the first
    tool is offered that it would drop it, and tells likelihoods, decides by them (see `instead_of_tools`), unless nobody
    shall `look`.
    """

    def __init__(self, model: Http, dialect: str | Dialect = DEFAULT, *, look: bool = True) -> None:
        self.model = model
        self.spoken = Speaker(model.without_tools(), dialect)
        self.refused = False
        self._looked = not look
        self.name = model.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._now.capabilities

    @property
    def _now(self) -> Http | Speaker:
        return self.spoken if self.refused else self.model

    @property
    def endpoint(self) -> str:
        """The URL that a request goes to."""
        return self.model.endpoint

    def body(self, request: Request) -> bytes:
        """The body of the first request; empty where that asks for likelihoods."""
        if self._speaks(request):
            return _first_body(self.spoken, request)
        return self.model.body(guarded(self.model, request, own_dialect(None, self.model.model)))

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        begun = False
        if request.tools and not self._looked:
            await self._look()
        if not self._speaks(request):
            try:
                async with aclosing(self.natively(request)) as events:
                    async for event in events:
                        begun = True
                        yield event
                return
            except BadRequest as error:
                if begun or not (error.tools_refused and request.tools):
                    raise
                self.refused = True
                log.info("%s; the tools go into the prompt from now on", error)
        async with aclosing(self.spoken.stream(request)) as events:
            async for event in events:
                yield event

    def natively(self, request: Request) -> AsyncGenerator[Event]:
        """The reply's events, the tools being offered to the server."""
        return TextCalls(self.model).stream(request)

    def speaks(self, model: Model) -> Speaker:
        """What asks in place of the server's own tools, by likelihood."""
        return Speaker(model)

    def _speaks(self, request: Request) -> bool:
        """Whether the tools go into the prompt. Ollama has no word for a choice, but its `format` holds to a call."""
        return self.refused or (self.model.api == "ollama" and demanded(request))

    async def _look(self) -> None:
        try:
            weighing = await instead_of_tools(self.model)
        except ModelUnreachable as error:
            self._looked = error.timed_out  # one that is down is looked at again
            return
        self._looked = True
        if weighing:
            self.spoken, self.refused = self.speaks(weighing), True

    async def count(self, request: Request) -> int | None:
        """The tokens of the request as it would be sent now."""
        return await self._now.count(request)

    async def aclose(self) -> None:
        """Closes the connections of the running event loop; see Http."""
        await self.model.aclose()
