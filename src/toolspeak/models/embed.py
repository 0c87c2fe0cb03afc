"""Models that embed texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from ..api.embeddings import Vectors
from .wrapper import within

NONE_THERE = (404, 405, 501)
"""The HTTP statuses by which servers without embeddings refuse."""


@runtime_checkable
class EmbeddingModel(Protocol):
    """A model that embeds texts."""

    async def embed(self, texts: Sequence[str], *, dimensions: int | None = None) -> Vectors:
        """Return a vector for each text, of `dimensions` numbers if the model supports that.

        Raises a ModelError if it cannot be reached, BadRequest or ServerFailed if its server has no embeddings (see NONE_THERE).
        """
        ...


def embedder(model: Any) -> EmbeddingModel | None:
    """Return the model, or the one inside its wrappers, that can embed; None if there is none."""
    return within(model, EmbeddingModel)
