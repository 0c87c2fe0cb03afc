"""Search by meaning: a vector for each tool, and its score combined with that of the words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ServerFailed
from .vectors import CachingEmbedder

if TYPE_CHECKING:
    from .embed import Embedder
    from .postings import Bools, Floats

WORDS = 0.4
"""The share of the words' score in both together, tuned on half of the leaderboard's questions."""
FARTHEST = np.float32(1e-6)
"""The nearness of the farthest tool: it comes last, it is not left out."""
QUERY_PREFIX = "tool: "
"""What a question is put behind, so that its vector points more to where descriptions of tools lie. Of the beginnings
tried on the same half three that name a tool or a function brought up to 0.4 points of recall, a bare verb nothing; a
question took up to one.
"""


class Checked:
    """An embedder whose answers are looked at: ServerFailed where they are no vectors of the texts."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    @property
    def name(self) -> str:
        """The embedder's."""
        return self.embedder.name

    def embed(self, texts: Sequence[str]) -> Floats:
        """A row for each text."""
        came = self.embedder.embed(texts)
        try:
            made = np.asarray(came, np.float32)
        except (TypeError, ValueError) as error:
            raise ServerFailed(f"{self.name} gave no vectors: {error}") from error
        if made.ndim != 2 or len(made) != len(texts) or not np.isfinite(made).all():
            raise ServerFailed(
                f"{self.name} gave no vectors: {len(texts)} rows of numbers were expected, {made.shape} came"
            )
        return made


class DenseVectors:
    """A vector for each tool, which is known by its place as in `Postings`. Those of tools are kept, not of questions.

    A tool's vector is the mean of two, of all that is said of it and of its name and description alone: parameters
    tell much of most tools, and drown what those are for that have many. The mean's product with a question's vector
    is the mean of both likenesses.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = Checked(embedder)
        self._kept = CachingEmbedder(self._embedder)
        self._rows: Floats = np.zeros((0, 0), np.float32)
        self._new: list[Floats] = []

    def of_tools(self, whole: Sequence[str], brief: Sequence[str]) -> Floats:
        """The vectors of tools, which `add` takes, by two texts of each. Raises what the embedder raises."""
        made = self._kept.embed([*whole, *brief])
        return (made[: len(whole)] + made[len(whole) :]) * np.float32(0.5)

    def of_question(self, text: str) -> Floats:
        """The vector of a question."""
        return self._embedder.embed([QUERY_PREFIX + text])[0]

    def add(self, made: Floats) -> None:
        """Adds the vectors of tools behind those that are there. Raises ServerFailed where they have another width."""
        if len(made):
            last = self._new[-1] if self._new else self._rows
            if len(last) and last.shape[1] != made.shape[1]:
                raise self._of_another_width()
            self._new.append(made)

    def close_up(self, kept: Sequence[int]) -> None:
        """Keeps the rows of these places alone."""
        self._rows = self.rows[np.asarray(kept, np.int64)]

    @property
    def rows(self) -> Floats:
        """All vectors, by place."""
        if self._new:
            parts = [self._rows, *self._new] if len(self._rows) else self._new
            self._rows = np.concatenate(parts)
            self._new = []
        return self._rows

    def likeness(self, question: Floats) -> Floats:
        """For each place, how like a question the tool is: the mean of its two cosines."""
        rows = self.rows
        if not len(rows):
            return np.zeros(0, np.float32)
        if rows.shape[1] != len(question):
            raise self._of_another_width()
        # row by row: a matrix product adds up some rows in another order, and equal tools would not come out equal
        return np.einsum("ij,j->i", rows, question)

    def _of_another_width(self) -> ServerFailed:
        return ServerFailed(f"{self._embedder.name} gives vectors of different widths: make the index anew")


def together(words: Floats, likeness: Floats, there: Bools) -> Floats:
    """Both scores as one, from 0 to 1: each is put on the scale from 0 to its best, as their ranges differ.

    Scores are put together and not ranks, since ranks hide how sure each side is: where no word is met, likeness
    decides alone. A likeness counts from the least that any tool has.
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
