"""`GET /v1/models` and `GET /v1/models/{model}`: the models that a client may use.

A client that sends the version of Anthropic's API gets Anthropic's format, any other one OpenAI's. A coding agent that
sends its own version (`?client_version=`) also reads a catalog in the field `models`. An entry there replaces the
agent's own instructions for that model, so the catalog is empty and the agent uses its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...api import anthropic, openai_chat
from ...api.json_stream import Payload
from ..http_exchange import HttpExchange

if TYPE_CHECKING:
    from ..app import Gateway


async def list_models(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answer with all visible models."""
    codec = anthropic if exchange.header(b"anthropic-version") else openai_chat
    catalog: Payload = {"models": []} if b"client_version=" in exchange.scope.get("query_string", b"") else {}
    await exchange.reply_json(200, codec.write_models(gateway.models.names(exchange.visible)) | catalog)


async def show_model(gateway: Gateway, exchange: HttpExchange, name: str) -> None:
    """Answer with one model: the default model stands for any name, as in requests, and the headers say so. Raises Refused
    (404), which suggests similar names."""
    served = gateway.models.find(name, exchange.visible)
    exchange.tell_model(served.settings.name, gateway.models.by_default(name, exchange.visible))
    codec = anthropic if exchange.header(b"anthropic-version") else openai_chat
    await exchange.reply_json(200, codec.write_model(name))
