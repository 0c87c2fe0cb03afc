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
from ..errors import Refused
from ..events import Event
from ..types import Reply, Request, Schema
from .body import Gone, check_body, check_head, parse_body, read_body
from .door import Door
from .exchange import Exchange, Receive, Scope, Send
from .models import Models, Served, check_able
from .refusals import refused
from .responses import Session
from .routes import Codec, Writer, answer_route, codec_for
from .schemas import bounded_tools, check_schema
from .settings import Settings
from .store import ResponseStore

log = logging.getLogger(__name__)


FINAL = frozenset({"no_valid_reply", "deadline", "upstream_unreachable", "upstream_cut", "upstream_failed"})
"""Errors after which the gateway has tried all it may: a client that tries again by itself only adds load."""


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
        self.door = Door(settings)
        self.store = ResponseStore(settings.store) if settings.store and settings.store.responses else None
        if self.store:
            self.store.prepare()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, receive, send)
        try:
            await self.door.let_in(exchange, lambda: answer_route(self, exchange))
        except Gone:
            pass
        except asyncio.CancelledError:
            if not exchange.gone:
                raise
            cast("asyncio.Task[Any]", asyncio.current_task()).uncancel()
        except Exception as error:  # noqa: BLE001 - the end of the request: told to the client, whatever it is
            await self._tell(exchange, codec_for(exchange), error)

    async def _tell(self, exchange: Exchange, codec: Codec, error: Exception) -> None:
        told = self._refused(error)
        if told.code in FINAL:
            exchange.headers.append((b"x-should-retry", b"false"))
        if told.retry_after is not None:
            exchange.headers.append((b"retry-after", str(max(1, round(told.retry_after))).encode()))
        await exchange.reply_json(told.status, codec.write_error(told))

    async def read(self, exchange: Exchange, schema: Schema) -> dict[str, Any]:
        """The body of a request, held against `schema`. Raises Refused, and Gone when the client left."""
        limits = self.settings.limits
        check_head(exchange.scope["headers"])
        length = exchange.header(b"content-length") or None
        raw = await read_body(exchange.receive, length, limits)
        exchange.tools = bounded_tools(raw, limits)
        body = parse_body(raw, limits)
        check_body(body, schema)
        return body

    async def generate(self, exchange: Exchange, codec: Codec, session: Session | None = None) -> None:
        """Answers a request that a model answers, in the API of `codec`. `session` is what keeps its reply."""
        limits = self.settings.limits
        body = await self.read(exchange, codec.BODY)
        asked = await session.read(body) if session else cast("Asked", codec.read_request(body, exchange.tools))
        check_schema(asked.request.schema, "text.format" if session else "response_format", limits)
        served = self.models.find(asked.model, exchange.visible)
        exchange.tell_ignored(asked.ignored)
        check_able(asked, served)
        stamp = Stamp(secrets.token_hex(12), int(time.time()), asked.model)
        stream = Stream(exchange, cast("Writer", codec.ReplyWriter(asked, stamp))) if asked.stream else None
        alive = stream.alive if stream else None
        async with exchange.attended(limits.first, limits.keep_alive, alive):
            try:
                async with asyncio.timeout(limits.deadline):
                    if stream:
                        await self._told(stream, asked, served, session)
                    else:
                        await self._whole(exchange, codec, asked, served, stamp, session)
            except Exception as error:
                if stream is None or not exchange.started:
                    raise
                await stream.write(stream.writer.error(self._refused(error)))  # the status is sent: told in the stream
            if stream:
                await exchange.end()

    async def _told(self, stream: Stream, asked: Asked, served: Served, session: Session | None) -> None:
        async with aclosing(_events(asked, served)) as events:
            async for choice, event in events:
                if data := stream.writer.feed(event, choice):
                    await stream.write(data)
        end = stream.writer.close()
        if session:  # before the end is told: the client may go on from it at once
            await session.keep(cast("Any", stream.writer).response)
        await stream.write(end)

    def _refused(self, error: BaseException) -> Refused:
        """The error as it is told; one of our own is logged."""
        told = refused(error)
        if told.status == 500:
            log.error("a request failed", exc_info=error)
        return told

    async def _whole(
        self, exchange: Exchange, codec: Codec, asked: Asked, served: Served, stamp: Stamp, session: Session | None
    ) -> None:
        async def one(request: Request) -> Reply:
            async with aclosing(served.answer(request)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        return event.value
            raise AssertionError("an answer ends with Done")

        wanted = asked.requests
        replies = [await one(wanted[0])] if len(wanted) == 1 else await asyncio.gather(*map(one, wanted))
        if rules := dict.fromkeys(note.rule for reply in replies for note in reply.notes):
            exchange.headers.append((b"x-toolspeak-notes", ", ".join(rules).encode()))
        told = cast("Payload", codec.write_reply(replies, asked, stamp))
        if session:
            await session.keep(told)
        await exchange.reply_json(200, told)


async def _events(asked: Asked, served: Served) -> AsyncGenerator[tuple[int, Event]]:
    """The events of all the replies that are wanted, each with the number of its reply."""
    for choice, request in enumerate(asked.requests):
        async with aclosing(served.answer(request)) as events:
            async for event in events:
                if not isinstance(event, Done):
                    yield choice, event


def shown(settings: Settings) -> str:
    """The settings as a line of JSON, without secrets."""
    return json.dumps({"models": list(settings.models), "host": settings.host, "port": settings.port})
