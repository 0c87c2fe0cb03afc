"""The gateway as an ASGI application: the way of a request from its body to its answer."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from ..api.asked import Asked, Stamp
from ..api.payloads import Payload
from ..drive import Done
from ..events import Event
from ..types import Reply, Schema
from .answer import answer
from .body import Gone, check_body, parse_body, read_body
from .exchange import Exchange, Receive, Scope, Send
from .models import Models, Served
from .refusals import refused
from .routes import Codec, Writer, answer_route, codec_for
from .settings import Settings
from .several import side_by_side
from .toolsets import Toolsets

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
        self.toolsets = Toolsets()

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
        if told.code == "no_valid_reply":  # it has been asked again already
            exchange.headers.append((b"x-should-retry", b"false"))
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
        asked = cast("Asked", codec.read_request(body, self.toolsets))
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
                    if not isinstance(event, Done) and (data := stream.writer.feed(event, choice)):
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
        replies: dict[int, Reply] = {}
        async with aclosing(_events(asked, served)) as events:
            async for choice, event in events:
                if isinstance(event, Done):
                    replies[choice] = event.value
        told = [replies[choice] for choice in range(asked.n)]
        await exchange.reply_json(200, cast("Payload", codec.write_reply(told, asked, stamp)))


def _events(asked: Asked, served: Served) -> AsyncGenerator[tuple[int, Event | Done[Reply]]]:
    """The events of all the replies that are wanted, each with the number of its reply."""
    first = asked.request
    seeded = [] if first.seed is None else [replace(first, seed=_next(first.seed, i)) for i in range(1, asked.n)]
    requests = [first, *(seeded or [first] * (asked.n - 1))]  # of one seed all would be alike
    return side_by_side([answer(request, served.model, tries=served.settings.tries) for request in requests])


def _next(seed: int, choice: int) -> int:
    return seed + choice if seed + choice < 2**63 else seed - choice


def shown(settings: Settings) -> str:
    """The settings as a line of JSON, without secrets."""
    return json.dumps({"models": list(settings.models), "host": settings.host, "port": settings.port})
