"""Embedders by name: `minilm` in this process, or the embeddings endpoint of a server."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..api.embeddings import Vectors
from ..drive import run_sync
from ..errors import BadRequest, ServerFailed, UnknownModel, UsageError
from ..models.http import Http
from ..models.resolve import bare, over_http

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

log = logging.getLogger(__name__)

TEXTS = 96
"""Texts per request: every provider accepts this many."""
ABREAST = 4
"""Concurrent requests."""
LENGTHS = (6_000, 1_500, 375)
"""Characters of a text that are sent. If the server rejects a text, the next shorter length is tried: context sizes
differ."""


@runtime_checkable
class Embedder(Protocol):
    """Computes vectors of texts. `name` identifies the model and its version: vectors are cached under it."""

    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> Floats:
        """One float32 row per text, all of the same width and of length 1. May be called from any thread."""
        ...


def embedder(spec: str | Embedder) -> Embedder:
    """The embedder that `spec` names; an embedder is returned as it is.

    - `minilm`: all-MiniLM-L6-v2 in this process, downloaded once (84 MB); needs the extra `dense`
    - `http://host/v1#model`, `openai:MODEL`, `ollama:MODEL` and the other servers that `ts.model` knows: their
      embeddings endpoint, with the key from the environment

    Raises UnknownModel for an unknown name, UsageError for a server without embeddings, and MissingExtra.
    """
    if not isinstance(spec, str):
        if isinstance(spec, Embedder):  # pyright: ignore[reportUnnecessaryIsInstance]
            return spec
        raise UsageError(f"expected the name of an embedder, or an object with name and embed(texts), got {spec!r}")
    name = spec.strip()
    if name.lower() == "minilm":
        from .minilm import MiniLm

        return MiniLm()
    if not over_http(name):
        raise UnknownModel(
            f"there is no embedder named {name[:200]!r}; "
            "known are minilm, http://host/v1#MODEL, openai:MODEL, ollama:MODEL and other servers by their names"
        )
    model = bare(name)
    if not isinstance(model, Http) or model.api == "anthropic":
        raise UsageError(f"{model.name} has no embeddings: name minilm, or an endpoint that has them")
    return RemoteEmbedder(model)


class RemoteEmbedder:
    """The embeddings endpoint of a server with the API of OpenAI or Ollama.

    A text that is too long for the server's model is truncated. A row of zeros, which has no direction, stays zeros.
    """

    def __init__(self, model: Http) -> None:
        _numpy()
        self.model = model
        self._reported_model = model.name
        self._length = LENGTHS[0]
        self._width: int = 0
        self._asking = threading.Lock()

    def __repr__(self) -> str:
        return f"Remote({self.model!r})"

    @property
    def name(self) -> str:
        """Server and model. A server that was named without a model is asked once for the one that it has."""
        with self._asking:
            if not self.model.model:
                self.model.model = run_sync(self.model.only_model())
                self._reported_model = f"{self._reported_model}#{self.model.model}"
            return self._reported_model

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row per text. Raises ModelError if the server cannot be reached or sends something else."""
        import numpy as np

        if not texts:
            return np.empty((0, self._width), np.float32)
        # Most servers reject an empty text, and lone surrogates cannot be encoded.
        clean = [text.encode("utf-8", "replace").decode() or " " for text in texts]
        rows = run_sync(self._all([clean[at : at + TEXTS] for at in range(0, len(clean), TEXTS)]))
        widths: set[int] = {len(row) for row in rows} | ({self._width} if self._width else set())
        if len(widths) > 1:
            raise ServerFailed(
                f"{self.name}: expected vectors of one width, got {' and '.join(map(str, sorted(widths)))} numbers"
            )
        self._width = widths.pop()
        vectors = np.asarray(rows, np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        vectors /= np.where(lengths > 0, lengths, 1)[:, None]
        return vectors.astype(np.float32)

    async def _all(self, batches: Sequence[Sequence[str]]) -> list[Sequence[float]]:
        """The rows of all batches, in order. The first one that fails cancels the others."""
        turn = asyncio.Semaphore(ABREAST)

        async def one(texts: Sequence[str]) -> Vectors:
            async with turn:
                return await self._some(texts)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(texts)) for texts in batches]
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        return [row for task in tasks for row in task.result().rows]

    async def _some(self, texts: Sequence[str]) -> Vectors:
        """The vectors of one batch. While the server rejects it, its texts are cut shorter, if that changes them."""
        longest = max(map(len, texts))
        first: BadRequest | None = None
        for length in LENGTHS:
            if length > self._length or (first and length >= longest):
                continue
            try:
                vectors = await self.model.embed([text[:length] for text in texts])
            except BadRequest as error:
                first = first or error
                longest = min(longest, length)
                continue
            if length < self._length and first:
                log.info("%s takes no longer texts than %d characters; they are cut", self._reported_model, length)
                self._length = length
            return vectors
        raise first or AssertionError("the shortest length is always tried")


def _numpy() -> None:
    try:
        import numpy as np
    except ImportError as error:
        from ..errors import MissingExtra

        raise MissingExtra("embeddings need numpy: pip install 'toolspeak[dense]'") from error
    del np
