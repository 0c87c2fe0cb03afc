"""The gateway as an ASGI application: routes, and the way of a request from its body to its answer."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any, Protocol, cast

from ..api import openai_chat
from ..api.asked import Asked, Stamp
from ..api.payloads import Payload
from ..drive import Done
from ..errors import Refused
from ..events import Event
from ..schema.infer import as_tools
from ..types import Reply, Schema
from .admission import Admission
from .answer import answer
from .body import Gone, check_body, parse_body, read_body
from .exchange import Exchange, Receive, Scope, Send
from .health import ROUTES as HEALTH
from .health import Readiness
from .metrics import CONTENT_TYPE
from .models import Models, Served
from .observe import Observer
from .refusals import refused
from .settings import Settings

log = logging.getLogger(__name__)


class Writer(Protocol):
    """What makes a stream of events: see `api.openai_chat.ReplyWriter`."""

    @property
    def keep_alive(self) -> bytes: ...
    def begin(self) -> bytes: ...
    def feed(self, event: Event, choice: int = 0) -> bytes: ...
    def close(self) -> bytes: ...
    def error(self, error: Refused) -> bytes: ...


class Codec(Protocol):
    """An API as the gateway needs it; each of these modules in `api/` is one."""

    @property
    def BODY(self) -> Schema: ...  # noqa: N802 - a module's constant
    @property
    def ReplyWriter(self) -> Any: ...  # noqa: N802
    @property
    def read_request(self) -> Any: ...
    @property
    def write_reply(self) -> Any: ...
    @property
    def write_error(self) -> Any: ...


CODECS: dict[str, Codec] = {"/v1/chat/completions": cast("Codec", openai_chat)}


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


LAST_WORDS = 5.0
"""Seconds to tell an error to a client that reads slowly."""


class Gateway:
    """An ASGI application. `settings` say what it serves, `observer` hears of every request."""

    def __init__(self, settings: Settings, observer: Observer | None = None) -> None:
        self.settings = settings
        self.observer = observer or Observer()
        self.models = Models(settings.models)
        self.admission = Admission(settings.limits)
        self.readiness = Readiness()
        self.open: set[Exchange] = set()

    def drain(self) -> None:
        """Takes nothing new from now on; what is under way goes on."""
        self.readiness.draining = True
        self.admission.drain()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        record, span = self.observer.begin(scope["method"], scope["headers"])
        exchange = Exchange(scope, receive, send, record)
        exchange.span = span
        exchange.headers.append((b"x-request-id", record.id.encode()))
        if self.readiness.draining:
            exchange.headers.append((b"connection", b"close"))
        self.open.add(exchange)
        try:
            await self._guarded(exchange)
        finally:
            exchange.close()
            self.open.discard(exchange)
            self.observer.end(record, span, gone=exchange.gone)

    async def _guarded(self, exchange: Exchange) -> None:
        """Answers; whatever goes wrong is told to the client, if it is still there."""
        try:
            await self._route(exchange)
        except asyncio.CancelledError:
            if exchange.ended is None:
                raise
            cast("asyncio.Task[Any]", asyncio.current_task()).uncancel()
            await self._tell(exchange, exchange.ended)
        except Exception as error:  # noqa: BLE001 - the end of the request: told to the client, whatever it is
            await self._tell(exchange, exchange.ended or error)

    async def _tell(self, exchange: Exchange, error: Exception) -> None:
        if isinstance(error, Gone):
            exchange.ended = error
            return
        told = refused(error)
        exchange.record.code = told.code
        if told.status == 500:
            log.error("request %s failed", exchange.record.id, exc_info=error)
        if exchange.over:
            return
        if told.retry_after is not None:
            exchange.headers.append((b"retry-after", str(max(1, round(told.retry_after))).encode()))
        with suppress(TimeoutError, Gone):
            async with asyncio.timeout(LAST_WORDS):
                if not exchange.started:
                    codec = CODECS.get(exchange.scope["path"], cast("Codec", openai_chat))
                    await exchange.reply_json(told.status, codec.write_error(told))
                elif exchange.writer:
                    await exchange.write(exchange.writer.error(told))
                    await exchange.end()

    async def _route(self, exchange: Exchange) -> None:
        scope = exchange.scope
        path: str = scope["path"]
        codec = CODECS.get(path)
        if codec or path in HEALTH or path == "/metrics":
            exchange.record.route = path
        if path in HEALTH or path == "/metrics":
            await self._about(exchange, path)
            return
        if codec is None:
            raise Refused(f"there is no {path[:200]} here", status=404, code="not_found")
        if scope["method"] != "POST":
            raise Refused("expected POST", status=405, code="method_not_allowed")
        await self._post(exchange, codec)

    async def _about(self, exchange: Exchange, path: str) -> None:
        """Answers what is asked of the process itself."""
        if exchange.scope["method"] not in ("GET", "HEAD"):
            raise Refused("expected GET", status=405, code="method_not_allowed")
        if path == "/metrics":
            self.observer.metrics.full(self.admission.running, self.admission.waiting)
            await exchange.reply(200, self.observer.metrics.text(), CONTENT_TYPE)
            return
        status, detail = (200, {"status": "alive"}) if path == "/livez" else self.readiness.status(())
        if status == 503:
            exchange.headers.append((b"retry-after", b"1"))
        await exchange.reply_json(status, detail)

    async def _post(self, exchange: Exchange, codec: Codec) -> None:
        limits = self.settings.limits
        self.admission.check()
        length = next(
            (value.decode("latin-1") for name, value in exchange.scope["headers"] if name == b"content-length"), None
        )
        raw = await read_body(exchange.receive, length, limits)
        async with exchange.attended(), self.admission.slot(), asyncio.timeout(limits.deadline):
            await self._answer(exchange, codec, raw)

    async def _answer(self, exchange: Exchange, codec: Codec, raw: bytes) -> None:
        limits = self.settings.limits
        body = parse_body(raw, limits)
        check_body(body, codec.BODY)
        asked = cast("Asked", codec.read_request(body, as_tools))
        served = self.models.find(asked.model)
        exchange.record.model = asked.model
        exchange.record.stream = asked.stream
        model = self.observer.traced(served.model, exchange.span, asked.model)
        served = Served(served.settings, model) if model is not served.model else served
        stamp = Stamp(secrets.token_hex(12), int(time.time()), asked.model)
        if asked.stream:
            exchange.writer = cast("Writer", codec.ReplyWriter(asked, stamp))
            await self._stream(Stream(exchange, exchange.writer), asked, served)
        else:
            await self._whole(exchange, codec, asked, served, stamp)

    async def _stream(self, stream: Stream, asked: Asked, served: Served) -> None:
        limits = self.settings.limits
        hear = stream.exchange.record.hear
        stream.exchange.keep_alive(stream.alive, limits.first, limits.keep_alive)
        async with aclosing(_events(asked, served)) as events:
            async for choice, event in events:
                hear(event)
                if data := stream.writer.feed(event, choice):
                    await stream.write(data)
        await stream.write(stream.writer.close())
        await stream.exchange.end()

    async def _whole(self, exchange: Exchange, codec: Codec, asked: Asked, served: Served, stamp: Stamp) -> None:
        hear = exchange.record.hear

        async def one() -> Reply:
            async with aclosing(answer(asked.request, served.model, tries=served.settings.tries)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        return event.value
                    hear(event)
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
