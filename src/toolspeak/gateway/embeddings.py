"""Texts as vectors: `POST /v1/embeddings`, where the model's server has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..api import embeddings
from ..api.body import cannot
from ..errors import Refused
from ..models.embed import embedder
from .exchange import Exchange

if TYPE_CHECKING:
    from .app import Gateway


async def embed(gateway: Gateway, exchange: Exchange, _: str) -> None:
    """A vector for each text. Raises Refused where the model gives none, or none of the length that is asked for."""
    asked = embeddings.read_request(await gateway.read(exchange, embeddings.BODY))
    served = gateway.models.find(asked.model, exchange.visible)
    embeds = embedder(served.model)
    if embeds is None:
        raise cannot("model", f"{asked.model!r} gives no embeddings: ask a model behind a server that does")
    exchange.tell_ignored(asked.ignored)
    exchange.record.model = served.settings.name
    async with gateway.admitted(exchange):
        vectors = await embeds.embed(asked.texts, dimensions=asked.dimensions)
        exchange.record.tokens_in = vectors.tokens
        length = len(vectors.rows[0])
        if asked.dimensions not in (None, length):
            said = f"dimensions: {asked.model!r} gives vectors of {length} numbers, and no others"
            raise Refused(said, code="unsupported_parameter", param="dimensions")
        await exchange.reply_json(200, embeddings.write_reply(vectors, asked))
