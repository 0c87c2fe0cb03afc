"""The models that clients may ask for: `GET /v1/models` and `GET /v1/models/{model}`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..api import openai_chat
from .exchange import Exchange

if TYPE_CHECKING:
    from .app import Gateway


async def list_models(gateway: Gateway, exchange: Exchange, _: str) -> None:
    """All models that may be seen."""
    await exchange.reply_json(200, openai_chat.write_models(gateway.models.names(exchange.visible)))


async def show_model(gateway: Gateway, exchange: Exchange, name: str) -> None:
    """One model. Raises Refused (404), which names the near ones."""
    gateway.models.find(name, exchange.visible)
    await exchange.reply_json(200, openai_chat.write_model(name))
