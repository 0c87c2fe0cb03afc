"""Lets somebody hear what the model below a tool-calling model is asked and what it writes, as it happens.

A model that writes calls in a dialect, or decides by likelihoods, asks a text model under it. The tap stands between the
two, as the recorder of an evaluation does; it passes on what it hears to the listener of its context, if there is one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from typing import Protocol, cast

from ..events import Event
from ..models.base import Model
from ..models.fallback import around_innermost
from ..models.pool import Pool
from ..models.recording import Recorder
from ..models.wrapper import Wrapper
from ..types import Request


class Listener(Protocol):
    """Who hears what a model is asked and what it writes."""

    def request(self, model: Model, request: Request) -> None:
        """A request goes to the model."""
        ...

    def event(self, event: Event) -> None:
        """More of its reply."""
        ...

    def scored(self, prompt: str, continuations: Sequence[str], scores: Sequence[float]) -> None:
        """It told how likely texts are."""
        ...


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Generator[None]:
    """What tapped models are asked in this context goes to the listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def listener() -> Listener | None:
    """Who listens in this context."""
    return _listener.get()


def tap(model: Model) -> Model:
    """The model with a tap before whatever is asked in the end; a pool gets one for each of its upstreams."""
    if isinstance(model, Pool):
        for upstream in model.upstreams:
            upstream.model = tap(upstream.model)
        return model
    if isinstance(model, Recorder):
        return Recorder(tap(model.model), model.tape)
    return around_innermost(model, Tap)


class Tap(Wrapper[Model]):
    """A model whose requests and replies can be heard."""

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
