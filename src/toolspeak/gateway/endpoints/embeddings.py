"""Texts as vectors: `POST /v1/embeddings`, where the model's server has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...api import embeddings
from ...api.embeddings import Texts, Vectors
from ...api.field_schemas import cannot
from ...api.json_stream import Payload
from ...errors import Refused
from ...models.embed import embedder
from ...plan.token_estimate import about
from ...types import Usage
from ..context import RequestContext

if TYPE_CHECKING:
    from ..app import Gateway


async def embed(gateway: Gateway, exchange: RequestContext, _: str) -> None:
    """A vector for each text. Raises Refused where the model gives none, or none of the length that is asked for."""
    asked = embeddings.read_request(await gateway.read(exchange, embeddings.BODY))
    await answer_embeddings(gateway, exchange, asked, embeddings.write_reply)


async def answer_embeddings(
    gateway: Gateway, exchange: RequestContext, asked: Texts, write: Callable[[Vectors, Texts], Payload]
) -> None:
    """Answers a question for vectors in the form of the API that `write` writes. Raises Refused, as `embed`."""
    served = gateway.models.find(asked.model, exchange.visible)
    embeds = embedder(served.model)
    if embeds is None:
        raise cannot("model", f"{asked.model!r} gives no embeddings: ask a model behind a server that does")
    exchange.tell_ignored(asked.ignored)
    exchange.record.model = served.settings.name
    async with gateway.admitted(exchange):
        spend = await gateway.spender(exchange, served)
        vectors = await embeds.embed(asked.texts, dimensions=asked.dimensions)
        exchange.record.tokens_in = tokens = vectors.tokens
        if spend:
            spend(lambda: Usage(tokens or sum(map(about, asked.texts))))
        length = len(vectors.rows[0])
        if asked.dimensions not in (None, length):
            said = f"dimensions: {asked.model!r} gives vectors of {length} numbers, and no others"
            raise Refused(said, code="unsupported_parameter", param="dimensions")
        await exchange.reply_json(200, write(vectors, asked))
