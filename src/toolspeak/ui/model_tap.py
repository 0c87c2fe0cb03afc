"""Reports the requests and output of the text model below a tool-calling model, as they happen.

A model that writes calls in a dialect, or decides by likelihood, uses a text model. The tap sits between the two, like
the recorder of an evaluation, and reports to the listener of the current context, if there is one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from typing import Protocol, cast

from ..events import Event
from ..models.base import Model
from ..models.pool import Pool
from ..models.recording import Recorder
from ..models.tool_calling import around_innermost
from ..models.wrapper import Wrapper
from ..types import Request


class TapListener(Protocol):
    """Gets a model's requests and output."""

    def request(self, model: Model, request: Request) -> None:
        """A request is sent to the model."""
        ...

    def event(self, event: Event) -> None:
        """An event of the model's reply."""
        ...

    def scored(self, prompt: str, continuations: Sequence[str], scores: Sequence[float]) -> None:
        """The model returned log-likelihoods of texts."""
        ...


_listener: ContextVar[TapListener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: TapListener) -> Generator[None]:
    """Report requests of tapped models in this context to the listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def listener() -> TapListener | None:
    """Return the listener of this context."""
    return _listener.get()


def tap(model: Model) -> Model:
    """Return the model with a tap in front of its innermost model; a pool gets one per upstream."""
    if isinstance(model, Pool):
        for upstream in model.upstreams:
            upstream.model = tap(upstream.model)
        return model
    if isinstance(model, Recorder):
        return Recorder(tap(model.model), model.tape)
    return around_innermost(model, Tap)


class Tap(Wrapper[Model]):
    """A model whose requests and replies are reported to the listener."""

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        listener = _listener.get()
        if listener:
            listener.request(self.model, request)
        async with aclosing(cast("AsyncGenerator[Event]", self.model.stream(request))) as events:
            async for event in events:
                if listener:
                    listener.event(event)
                yield event

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        scores = await super().score(prompt, continuations)
        if listener := _listener.get():
            listener.scored(prompt, continuations, scores)
        return scores
