"""The gateway as an ASGI application: the way of a request from its body to its answer."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

from ..api.asked import Asked, Stamp
from ..api.payloads import Payload
from ..drive import Done
from ..events import Event
from ..schema.infer import as_tools
from ..types import Reply, Schema
from .answer import answer
from .body import Gone, check_body, parse_body, read_body
from .exchange import Exchange, Receive, Scope, Send
from .models import Models, Served
from .refusals import refused
from .routes import Codec, Writer, answer_route, codec_for
from .settings import Settings

log = logging.getLogger(__name__)


class Stream:
    """An answer told in events, its opening first, whatever comes first: an event or a sign of life."""

    def __init__(self, exchange: Exchange, writer: Writer) -> None:
        self.exchange = exchange
        self.writer = writer
        self._begun = False

    async def write(self, data: bytes) -> None:
        await self.exchange.write(self._opened(data))

    def alive(self) -> bytes:
        """What tells that the gateway is still at work."""
        return self._opened(self.writer.keep_alive)

    def _opened(self, data: bytes) -> bytes:
        if self._begun:
            return data
        self._begun = True
        return self.writer.begin() + data


class Gateway:
    """An ASGI application. `settings` say what it serves."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.models = Models(settings.models)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, receive, send)
        try:
            await answer_route(self, exchange)
        except Gone:
            pass
        except asyncio.CancelledError:
            if not exchange.gone:
                raise
            cast("asyncio.Task[Any]", asyncio.current_task()).uncancel()
        except Exception as error:  # noqa: BLE001 - the end of the request: told to the client, whatever it is
            await self._tell(exchange, codec_for(scope["path"]), error)

    async def _tell(self, exchange: Exchange, codec: Codec, error: Exception) -> None:
        told = refused(error)
        if told.status == 500:
            log.exception("a request failed", exc_info=error)
        if told.retry_after is not None:
            exchange.headers.append((b"retry-after", str(max(1, round(told.retry_after))).encode()))
        await exchange.reply_json(told.status, codec.write_error(told))

    async def read(self, exchange: Exchange, schema: Schema) -> dict[str, Any]:
        """The body of a request, held against `schema`. Raises Refused, and Gone when the client left."""
        limits = self.settings.limits
        length = exchange.header(b"content-length") or None
        body = parse_body(await read_body(exchange.receive, length, limits), limits)
        check_body(body, schema)
        return body

    async def generate(self, exchange: Exchange, codec: Codec) -> None:
        """Answers a request that a model answers, in the API of `codec`."""
        limits = self.settings.limits
        body = await self.read(exchange, codec.BODY)
        asked = cast("Asked", codec.read_request(body, as_tools))
        served = self.models.find(asked.model, exchange.visible)
        stamp = Stamp(secrets.token_hex(12), int(time.time()), asked.model)
        stream = Stream(exchange, cast("Writer", codec.ReplyWriter(asked, stamp))) if asked.stream else None
        alive = stream.alive if stream else None
        async with exchange.attended(limits.first, limits.keep_alive, alive), asyncio.timeout(limits.deadline):
            if stream:
                await self._stream(stream, asked, served)
            else:
                await self._whole(exchange, codec, asked, served, stamp)

    async def _stream(self, stream: Stream, asked: Asked, served: Served) -> None:
        try:
            async with aclosing(_events(asked, served)) as events:
                async for choice, event in events:
                    if data := stream.writer.feed(event, choice):
                        await stream.write(data)
            await stream.write(stream.writer.close())
        except Exception as error:
            if not stream.exchange.started:
                raise
            told = refused(error)
            if told.status == 500:
                log.exception("a request failed", exc_info=error)
            await stream.write(stream.writer.error(told))
        await stream.exchange.end()

    async def _whole(self, exchange: Exchange, codec: Codec, asked: Asked, served: Served, stamp: Stamp) -> None:
        async def one() -> Reply:
            async with aclosing(answer(asked.request, served.model, tries=served.settings.tries)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        return event.value
            raise AssertionError("an answer ends with Done")

        replies = [await one()] if asked.n == 1 else await asyncio.gather(*(one() for _ in range(asked.n)))
        await exchange.reply_json(200, cast("Payload", codec.write_reply(replies, asked, stamp)))


async def _events(asked: Asked, served: Served) -> AsyncGenerator[tuple[int, Event]]:
    """The events of all the replies that are wanted, each with the number of its reply."""
    for choice in range(asked.n):
        async with aclosing(answer(asked.request, served.model, tries=served.settings.tries)) as events:
            async for event in events:
                if not isinstance(event, Done):
                    yield choice, event


def shown(settings: Settings) -> str:
    """The settings as a line of JSON, without secrets."""
    return json.dumps({"models": list(settings.models), "host": settings.host, "port": settings.port})
