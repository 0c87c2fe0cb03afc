"""`POST /v1/embeddings`: embeds texts, if the model's server supports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...api import embeddings
from ...api.embeddings import Texts, Vectors
from ...api.field_schemas import cannot
from ...api.json_stream import Payload
from ...errors import BadRequest, PromptTooLong, Refused, ServerFailed
from ...models.embed import NONE_THERE, embedder
from ...models.offload import offloaded
from ...plan.token_estimate import about
from ...types import Usage
from ..errors import refused
from ..http_exchange import HttpExchange

if TYPE_CHECKING:
    from ..app import Gateway


async def embed(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answer with a vector for each text. Raises Refused if the model has none, or none of the requested length."""
    incoming = embeddings.read_request(await gateway.read(exchange, embeddings.BODY))
    await answer_embeddings(gateway, exchange, incoming, embeddings.write_reply)


async def answer_embeddings(
    gateway: Gateway, exchange: HttpExchange, texts: Texts, write: Callable[[Vectors, Texts], Payload]
) -> None:
    """Answer a request for vectors in the API that `write` writes. Raises Refused as `embed` does."""
    served = gateway.find(texts.model, exchange)
    embeds = embedder(served.model)
    if embeds is None:
        raise _none(texts.model)
    exchange.tell_ignored(texts.ignored)
    async with gateway.admitted(exchange):
        spend = await gateway.spender(exchange, served)
        try:
            vectors = await embeds.embed(texts.texts, dimensions=texts.dimensions)
        except (BadRequest, ServerFailed) as error:
            raise _refused(error, texts.model) from None
        exchange.record.tokens_in = tokens = vectors.tokens
        if spend:
            spend(lambda: Usage(tokens or sum(map(about, texts.texts))))
        length = len(vectors.rows[0])
        if texts.dimensions not in (None, length):
            message = f"dimensions: {texts.model!r} has only vectors of {length} numbers"
            raise Refused(message, code="unsupported_parameter", param="dimensions")
        size = embeddings.reply_size(vectors)
        await exchange.reply_json(200, await offloaded(size, write, vectors, texts), size)


def _refused(error: BadRequest | ServerFailed, model: str) -> Refused:
    """Return the error for the client when the model's server gives no vectors."""
    if error.code in NONE_THERE:
        return _none(model, f" ({error.reason})" if error.reason else "")
    refusal = refused(error)
    if isinstance(error, PromptTooLong):
        refusal.param = "input"
    return refusal


def _none(model: str, why: str = "") -> Refused:
    return cannot("model", f"{model!r} has no embeddings: use a model whose server has them{why}")
