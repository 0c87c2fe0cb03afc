"""The base of models that wrap another model: it delegates everything that the wrapper does not do itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Generic, TypeVar

from ..errors import ModelError
from ..events import Event
from ..types import Request
from .base import Capability, Model, Scorer, TokenCounter

T = TypeVar("T")
Inner = TypeVar("Inner", bound=Model)


class Wrapper(Generic[Inner]):
    """A model around another one, `model`, to which it delegates what it does not do itself."""

    def __init__(self, model: Inner) -> None:
        self.model: Inner = model

    @property
    def name(self) -> str:
        """The name of the wrapped model."""
        return self.model.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do; see `base.Capability`."""
        return self.model.capabilities

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """Yield the reply's events; see the protocol."""
        return self.model.stream(request)

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """Return log P(continuation | prompt) for each. Raises ModelError if the wrapped model cannot score."""
        return await score(self.model, prompt, continuations)

    async def count(self, request: Request) -> int | None:
        """Return the tokens of the first request that would be sent, None if unknown."""
        return await count(self.model, request)

    async def aclose(self) -> None:
        """Close the connections of the wrapped model, if it has any."""
        await close(self.model)


async def score(model: Model, prompt: str, continuations: Sequence[str]) -> list[float]:
    """Return log P(continuation | prompt) for each. Raises ModelError for a model that cannot score."""
    if not isinstance(model, Scorer):
        raise ModelError(f"{model.name} does not report likelihoods")
    return await model.score(prompt, continuations)


async def count(model: Model, request: Request) -> int | None:
    """Return the tokens of a request, None for a model that cannot count them."""
    return await model.count(request) if isinstance(model, TokenCounter) else None


async def load(model: Any) -> None:
    """Does what the first request to a model would have to wait for: of the first that has such, from outside in."""
    while model is not None and not hasattr(model, "load"):
        model = getattr(model, "model", None)
    if model is not None:
        await model.load()


async def close(model: Any) -> None:
    """Close the connections of a model, if it has any."""
    if hasattr(model, "aclose"):
        await model.aclose()


def within(model: Any, kind: type[T]) -> T | None:
    """Return the model, or the first one inside it, of a type; None if there is none."""
    while model is not None and not isinstance(model, kind):
        model = getattr(model, "model", None)
    return model
