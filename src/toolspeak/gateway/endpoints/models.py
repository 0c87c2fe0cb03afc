"""The models that clients may ask for: `GET /v1/models` and `GET /v1/models/{model}`.

They are told in Anthropic's form to a client that names the version of Anthropic's API, else in OpenAI's. A coding
agent that names its own version (`?client_version=`) reads a catalog in the field `models` besides: what it holds of a
model replaces the agent's own instructions, so that it is empty here, and the agent goes by its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...api import anthropic, openai_chat
from ...api.json_stream import Payload
from ..context import RequestContext

if TYPE_CHECKING:
    from ..app import Gateway


async def list_models(gateway: Gateway, exchange: RequestContext, _: str) -> None:
    """All models that may be seen."""
    codec = anthropic if exchange.header(b"anthropic-version") else openai_chat
    catalog: Payload = {"models": []} if b"client_version=" in exchange.scope.get("query_string", b"") else {}
    await exchange.reply_json(200, codec.write_models(gateway.models.names(exchange.visible)) | catalog)


async def show_model(gateway: Gateway, exchange: RequestContext, name: str) -> None:
    """One model. Raises Refused (404), which names the near ones."""
    gateway.models.find(name, exchange.visible)
    codec = anthropic if exchange.header(b"anthropic-version") else openai_chat
    await exchange.reply_json(200, codec.write_model(name))
