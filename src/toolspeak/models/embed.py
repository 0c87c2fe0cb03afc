"""Models that embed texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from ..api.embeddings import Vectors
from .wrapper import within


@runtime_checkable
class Embedder(Protocol):
    """A model that embeds texts."""

    async def embed(self, texts: Sequence[str], *, dimensions: int | None = None) -> Vectors:
        """Return a vector for each text, of `dimensions` numbers if the model supports that.

        Raises a ModelError if it cannot be reached, BadRequest if its server has no embeddings.
        """
        ...


def embedder(model: Any) -> Embedder | None:
    """Return the model, or the one inside its wrappers, that can embed; None if there is none."""
    return within(model, Embedder)
