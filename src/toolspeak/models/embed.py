"""Models that give vectors of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from ..api.embeddings import Vectors
from .wrapper import within


@runtime_checkable
class Embedder(Protocol):
    """A model that gives vectors of texts."""

    async def embed(self, texts: Sequence[str], *, dimensions: int | None = None) -> Vectors:
        """A vector for each text, of `dimensions` numbers where the model can be asked for that.

        Raises a ModelError where it cannot be asked, BadRequest where its server has no embeddings.
        """
        ...


def embedder(model: Any) -> Embedder | None:
    """What gives vectors: the model, or the one inside what was put around it; None where there is none."""
    return within(model, Embedder)
