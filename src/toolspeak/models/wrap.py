"""Models around models: what is added to a model without its knowing."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from ..errors import BadRequest
from ..events import Event
from ..types import Request
from .base import Capability, Model
from .http import Http
from .likelihood import instead_of_tools
from .speaker import DEFAULT, Speaker

log = logging.getLogger(__name__)


class NativeOrSpoken:
    """Tools natively where the server takes them, otherwise written into the prompt, from the first refusal on.

    Whether a server takes tools depends on the model, the template and how it was started; only asking
    tells. `model` is the native one, `spoken` the one that `dialect` makes of it. A server that says before the first
    tool is offered that it would drop it, and tells likelihoods, decides by them (see `instead_of_tools`).
    """

    def __init__(self, model: Http, dialect: str = DEFAULT) -> None:
        self.model = model
        self.spoken = Speaker(model.without_tools(), dialect)
        self.refused = False
        self._looked = False
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
        """The body of the first request, which offers the tools natively."""
        return self.model.body(request)

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        begun = False
        if request.tools and not self._looked:
            await self._look()
        if not self.refused:
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
        return self.model.stream(request)

    def speaks(self, model: Model) -> Speaker:
        """What asks in place of the server's own tools, by likelihood."""
        return Speaker(model)

    async def _look(self) -> None:
        weighing = await instead_of_tools(self.model)
        self._looked = True
        if weighing:
            self.spoken, self.refused = self.speaks(weighing), True

    async def count(self, request: Request) -> int | None:
        """The tokens of the request as it would be sent now."""
        return await self._now.count(request)

    async def aclose(self) -> None:
        """Closes the connections of the running event loop; see Http."""
        await self.model.aclose()
