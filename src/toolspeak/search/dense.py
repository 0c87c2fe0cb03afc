"""Search by meaning: a vector for each tool, and a score that combines it with the score of the words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ServerFailed
from .vector_cache import CachingEmbedder

if TYPE_CHECKING:
    from .embedders import Embedder
    from .postings import Bools, Floats

WORDS = 0.4
"""The weight of the word score in the combined score, tuned on half of the leaderboard's questions."""
FARTHEST = np.float32(1e-6)
"""The similarity of the farthest tool: not 0, so that it comes last and is not left out."""
QUERY_PREFIX = "tool: "
"""Text before a question, which moves its vector toward the descriptions of tools. Of the prefixes tried on the same
half, three that name a tool or a function gained up to 0.4 points of recall, a bare verb nothing; one in the form of a
question cost up to one point."""


class CheckedEmbedder:
    """An embedder whose results are checked. Raises ServerFailed if they are not one vector for each text."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    @property
    def name(self) -> str:
        """The embedder's name."""
        return self.embedder.name

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row per text."""
        came = self.embedder.embed(texts)
        try:
            vectors = np.asarray(came, np.float32)
        except (TypeError, ValueError) as error:
            raise ServerFailed(f"{self.name} gave no vectors: {error}") from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise ServerFailed(
                f"{self.name} gave no vectors: {len(texts)} rows of numbers were expected, {vectors.shape} came"
            )
        return vectors


class DenseVectors:
    """A vector for each tool, by its place as in `Postings`. Only the tools' vectors are stored, not those of
    questions.

    A tool's vector is the mean of two: one of its full text, one of its name and description alone. Parameters
    describe most tools well, but drown the purpose of tools with many. The product of the mean with a question's
    vector is the mean of both similarities.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = CheckedEmbedder(embedder)
        self._cache = CachingEmbedder(self._embedder)
        self._rows: Floats = np.zeros((0, 0), np.float32)
        self._new: list[Floats] = []

    def of_tools(self, whole: Sequence[str], brief: Sequence[str]) -> Floats:
        """The vectors of tools, for `add`, from the full and the brief text of each. Raises the embedder's errors."""
        vectors = self._cache.embed([*whole, *brief])
        return (vectors[: len(whole)] + vectors[len(whole) :]) * np.float32(0.5)

    def of_question(self, text: str) -> Floats:
        """The vector of a question."""
        return self._embedder.embed([QUERY_PREFIX + text])[0]

    def add(self, vectors: Floats) -> None:
        """Appends the vectors of tools. Raises ServerFailed if they have another width."""
        if len(vectors):
            last = self._new[-1] if self._new else self._rows
            if len(last) and last.shape[1] != vectors.shape[1]:
                raise self._of_another_width()
            self._new.append(vectors)

    def close_up(self, rows: Sequence[int]) -> None:
        """Keeps only the rows of these places."""
        self._rows = self.rows[np.asarray(rows, np.int64)]

    @property
    def rows(self) -> Floats:
        """All vectors, by place."""
        if self._new:
            parts = [self._rows, *self._new] if len(self._rows) else self._new
            self._rows = np.concatenate(parts)
            self._new = []
        return self._rows

    def likeness(self, question: Floats) -> Floats:
        """For each place, the similarity of question and tool: the mean of the two cosines."""
        rows = self.rows
        if not len(rows):
            return np.zeros(0, np.float32)
        if rows.shape[1] != len(question):
            raise self._of_another_width()
        # einsum sums every row in the same order. A matrix product does not, so that equal tools would differ.
        return np.einsum("ij,j->i", rows, question)

    def _of_another_width(self) -> ServerFailed:
        return ServerFailed(f"{self._embedder.name} gives vectors of different widths: build the index again")


def together(words: Floats, likeness: Floats, there: Bools) -> Floats:
    """Both scores combined, from 0 to 1. Each is scaled to the range from 0 to its maximum, since their ranges differ.

    Scores are combined and not ranks, because ranks hide how certain each side is: if no word matches, similarity
    alone decides. A similarity counts from the lowest one of any tool.
    """
    if not there.any():
        return words
    least, most = likeness[there].min(), likeness[there].max()
    near: Floats = np.maximum((likeness - least) / max(most - least, np.float32(1e-6)), FARTHEST)
    best = words.max()
    fused: Floats = WORDS * words / best + (1 - WORDS) * near if best > 0 else near
    fused = fused.astype(np.float32)
    fused[~there] = 0
    return fused
