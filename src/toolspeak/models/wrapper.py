"""The base of models that wrap another model: it passes on everything that the wrapper does not do itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Generic, TypeVar

from ..errors import ModelError
from ..events import Event
from ..types import Request
from .base import Capability, Counter, Model, Scorer

T = TypeVar("T")
Inner = TypeVar("Inner", bound=Model)


class Wrapper(Generic[Inner]):
    """A model around another, `model`, which does all that the wrapper does not do itself."""

    def __init__(self, model: Inner) -> None:
        self.model: Inner = model

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self.model.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do; see `base.Capability`."""
        return self.model.capabilities

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The reply's events; see the protocol."""
        return self.model.stream(request)

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """log P(continuation | prompt) of each. Raises ModelError where the model inside gives none."""
        return await score(self.model, prompt, continuations)

    async def count(self, request: Request) -> int | None:
        """The tokens of what would be sent first, None where they cannot be told."""
        return await count(self.model, request)

    async def aclose(self) -> None:
        """Closes the connections of the model inside, if it has any."""
        await close(self.model)


async def score(model: Model, prompt: str, continuations: Sequence[str]) -> list[float]:
    """log P(continuation | prompt) of each. Raises ModelError for a model that gives none."""
    if not isinstance(model, Scorer):
        raise ModelError(f"{model.name} gives no likelihoods")
    return await model.score(prompt, continuations)


async def count(model: Model, request: Request) -> int | None:
    """The tokens of a request, None for a model that cannot tell them."""
    return await model.count(request) if isinstance(model, Counter) else None


async def load(model: Any) -> None:
    """Does what the first request to a model would have to wait for: of the first that has such, from outside in."""
    while model is not None and not hasattr(model, "load"):
        model = getattr(model, "model", None)
    if model is not None:
        await model.load()


async def close(model: Any) -> None:
    """Closes the connections of a model, if it has any."""
    if hasattr(model, "aclose"):
        await model.aclose()


def within(model: Any, kind: type[T]) -> T | None:
    """The model, or the first of those inside it, that is of a kind; None where none is."""
    while model is not None and not isinstance(model, kind):
        model = getattr(model, "model", None)
    return model
