"""Ollama's API: `/api/chat`, `/api/generate`, `/api/embed`, and the lists of models."""

from __future__ import annotations

import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...api import ollama
from ...api.incoming import Stamp
from ...api.ollama import generate as generate_codec
from ...errors import Refused
from ..http_exchange import HttpExchange
from .embeddings import answer_embeddings

if TYPE_CHECKING:
    from ..app import Gateway


async def chat(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answer a conversation. A request without messages asks to load the model."""
    body = await gateway.read(exchange, ollama.BODY, any_type=True)
    if body.get("messages"):
        await gateway.answer(exchange, ollama, body)
    else:
        await _loaded(gateway, exchange, body["model"], chats=True)


async def generate(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answer a prompt. A request without a prompt asks to load the model."""
    body = await gateway.read(exchange, generate_codec.BODY, any_type=True)
    if body.get("prompt") or body.get("images"):
        await gateway.answer(exchange, generate_codec, body)
    else:
        await _loaded(gateway, exchange, body["model"], chats=False)


async def _loaded(gateway: Gateway, exchange: HttpExchange, name: str, *, chats: bool) -> None:
    """Answer that the model is loaded, which happened when the gateway started."""
    gateway.find(name, exchange)
    await exchange.reply_json(200, ollama.write_loaded(chats, _stamp(exchange, name)))


async def embed(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answer with a vector for each text. Raises Refused if the model has none."""
    incoming = ollama.read_texts(await gateway.read(exchange, ollama.EMBED_BODY, any_type=True))
    await answer_embeddings(
        gateway, exchange, incoming, partial(ollama.write_vectors, stamp=_stamp(exchange, incoming.model))
    )


async def list_models(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answer with all visible models."""
    await exchange.reply_json(200, ollama.write_models(gateway.models.names(exchange.visible)))


async def list_running(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answer with all visible models: they are loaded at the start and stay loaded."""
    names = gateway.models.names(exchange.visible)
    contexts = {name: gateway.models.find(name, exchange.visible).settings.context for name in names}
    await exchange.reply_json(200, ollama.write_running(contexts))


async def show_model(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answer with one model. Raises Refused: 400 without a name, 404 with similar names."""
    body: dict[str, Any] = await gateway.read(exchange, ollama.SHOW_BODY, any_type=True, alias="name")
    if body.get("model") is None:
        raise Refused("model: expected string, got nothing", code="invalid_value", param="model")
    served = gateway.find(body["model"], exchange)
    await exchange.reply_json(200, ollama.write_model(served.settings.context))


async def show_root(_: Gateway, exchange: HttpExchange, __: str) -> None:
    """Answer with the line by which Ollama's client recognizes a server."""
    await exchange.reply(200, ollama.RUNNING, b"text/plain; charset=utf-8")


async def show_version(_: Gateway, exchange: HttpExchange, __: str) -> None:
    """Answer with the version of the API."""
    await exchange.reply_json(200, ollama.write_version(__version__))


def _stamp(exchange: HttpExchange, name: str) -> Stamp:
    return Stamp(secrets.token_hex(12), int(time.time()), name, exchange.record.times)
