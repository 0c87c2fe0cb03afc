"""The gateway as an ASGI application: the way of a request from its body to its answer."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, cast

from ..api.asked import Asked, Stamp
from ..api.payloads import Payload
from ..drive import Done
from ..events import Event
from ..models.offload import offloaded
from ..models.pool import on_retry
from ..types import Reply, Request, Schema
from .admission import Admission
from .body import Gone, check_head, checked_body, read_body
from .door import Door
from .exchange import Exchange, Receive, Scope, Send
from .health import Readiness
from .hosted import HostedTools, Running, answered
from .models import Models, Served, check_able
from .observe import Observer
from .record import UNKNOWN
from .refusals import refused
from .responses import Session
from .routes import Codec, Writer, answer_route, codec_for
from .schemas import bounded_tools, check_format
from .settings import Settings
from .several import side_by_side
from .store import ResponseStore
from .toolsets import Toolsets
from .trim import Trimmer

log = logging.getLogger(__name__)

FINAL = frozenset({"no_valid_reply", "deadline", "upstream_unreachable", "upstream_cut", "upstream_failed"})
"""Errors after which the gateway has tried all it may: a client that tries again by itself only adds load."""


Events = AsyncGenerator[tuple[int, Event | Done[Reply]]]
"""The events of replies, each with the number of its reply."""


class Stream:
    """An answer told in events, its opening first, whatever comes first: an event or a sign of life."""

    def __init__(self, exchange: Exchange, writer: Writer) -> None:
        self.exchange = exchange
        self.writer = writer
        self._begun = False

    def alive(self) -> bytes:
        """What tells that the gateway is still at work."""
        return self.opened(self.writer.keep_alive)

    def opened(self, data: bytes) -> bytes:
        """The data, behind the opening where that has not been told."""
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
        self.models = Models(settings.models, settings.limits, aliases=settings.aliases, default=settings.default)
        self.hosted = HostedTools(settings.hosted)
        self.door = Door(settings)
        self.toolsets = Toolsets()
        self.store = ResponseStore(settings.store) if settings.store and settings.store.responses else None
        if self.store:
            self.store.prepare()
        self.admission = Admission(settings.limits)
        self.readiness = Readiness()
        self.open: set[Exchange] = set()
        self._trimmer = Trimmer()

    def drain(self) -> None:
        """Takes nothing new from now on; what is under way goes on."""
        self.readiness.draining = True
        self.admission.drain()

    def look(self) -> None:
        """Tells the metrics how full the gateway is now."""
        self.observer.metrics.full(self.admission.running, self.admission.waiting)
        self.observer.metrics.breakers(self.models.breakers())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        record, span = self.observer.begin(scope["method"], scope["headers"])
        exchange = Exchange(scope, receive, send, record, span)
        if self.readiness.draining:
            exchange.headers.append((b"connection", b"close"))
        self.open.add(exchange)
        try:
            await self.door.let_in(exchange, lambda: answer_route(self, exchange))
        except asyncio.CancelledError:
            if exchange.ended is None:
                raise
            cast("asyncio.Task[Any]", asyncio.current_task()).uncancel()
            await self._tell(exchange, exchange.ended)
        except Exception as error:  # noqa: BLE001 - the end of the request: told to the client, whatever it is
            await self._tell(exchange, exchange.ended or error)
        finally:
            exchange.close()
            _let_go(exchange.ended)
            self.open.discard(exchange)
            self._trimmer.ended(exchange.received + record.bytes)
            self.observer.end(record, span, gone=exchange.gone)

    async def _tell(self, exchange: Exchange, error: Exception) -> None:
        """Tells the client what went wrong, in the form of its API, in its stream where that has begun."""
        if isinstance(error, Gone):
            exchange.ended = error
            return
        exchange.ended = error  # nobody else ends it now
        told = refused(error)
        exchange.record.code = told.code
        told.request_id = exchange.record.id
        if told.status == 500:
            log.error("request %s failed", exchange.record.id, exc_info=error)
        if exchange.over:
            return
        if told.code in FINAL:
            exchange.headers.append((b"x-should-retry", b"false"))
        if told.retry_after is not None:
            exchange.headers.append((b"retry-after", str(max(1, round(told.retry_after))).encode()))
        with suppress(TimeoutError, Gone):
            async with asyncio.timeout(LAST_WORDS):
                if not exchange.started:
                    await exchange.reply_json(told.status, codec_for(exchange).write_error(told))
                elif exchange.writer:
                    await exchange.write(exchange.writer.error(told))
                    await exchange.end()

    @asynccontextmanager
    async def admitted(self, exchange: Exchange) -> AsyncGenerator[None]:
        """A place among the requests that are worked on, once the body is read: ends when the client leaves, and when
        the request's time is over. Raises Refused (429, 503) where there is no place."""
        exchange.attend()
        came = time.perf_counter()
        await self.admission.enter(exchange.owner)
        began = time.perf_counter()
        exchange.record.waited = began - came
        try:
            async with asyncio.timeout(self.settings.limits.deadline):
                yield
        finally:
            self.admission.leave(time.perf_counter() - began, exchange.owner)

    async def read(self, exchange: Exchange, schema: Schema) -> dict[str, Any]:
        """The body of a request, held against `schema`. Raises Refused, and Gone when the client left."""
        self.admission.check(exchange.owner)
        exchange.record.model = UNKNOWN  # until one of ours is found
        on_retry.set(exchange.record.retried)
        limits = self.settings.limits
        check_head(exchange.scope["headers"])
        length = exchange.header(b"content-length") or None
        raw = await read_body(exchange.receive, length, limits)
        exchange.received = len(raw)
        exchange.tools = bounded_tools(raw, limits, self.toolsets)
        body = await offloaded(len(raw), checked_body, raw, schema, limits)
        if body.get("model") == "":
            body["model"] = self.models.only(exchange.visible)
        return body

    async def generate(self, exchange: Exchange, codec: Codec, session: Session | None = None) -> None:
        """Answers a request that a model answers, in the API of `codec`. `session` is what stores its reply."""
        body = await self.read(exchange, codec.BODY)
        async with self.admitted(exchange):
            asked = await (session.read(body) if session else exchange.understand(codec.read_request, body))
            check_format(asked.request.schema, "text.format" if session else "response_format", self.settings.limits)
            asked, running = await self.hosted.join(asked)
            served = self.observer.asked(exchange, asked, self.models.find(asked.model, exchange.visible))
            exchange.tell_ignored(asked.ignored)
            check_able(asked, served)
            stamp = Stamp(secrets.token_hex(12), int(time.time()), asked.model)
            if asked.stream:
                exchange.writer = cast("Writer", codec.ReplyWriter(asked, stamp))
                await self._stream(Stream(exchange, exchange.writer), _events(asked, served, running), session)
            else:
                await self._whole(exchange, codec, asked, _events(asked, served, running), stamp, session)

    async def _stream(self, stream: Stream, made: Events, session: Session | None) -> None:
        limits = self.settings.limits
        hear, feed = stream.exchange.record.hear, stream.writer.feed
        opened, write = stream.opened, stream.exchange.write
        stream.exchange.keep_alive(stream.alive, limits.first, limits.keep_alive)
        async with aclosing(made) as events:
            async for choice, event in events:
                if isinstance(event, Done):
                    continue
                hear(event)
                if data := feed(event, choice):
                    await write(opened(data))
        end = stream.writer.close()
        if session:  # before the end is told: the client may go on from it at once
            await session.save(cast("Any", stream.writer).response)
        await write(opened(end))
        await stream.exchange.end()

    async def _whole(
        self, exchange: Exchange, codec: Codec, asked: Asked, made: Events, stamp: Stamp, session: Session | None
    ) -> None:
        hear = exchange.record.hear
        found: dict[int, Reply] = {}
        async with aclosing(made) as events:
            async for choice, event in events:
                if isinstance(event, Done):
                    found[choice] = event.value
                else:
                    hear(event)
        replies = [found[choice] for choice in range(asked.n)]
        if rules := dict.fromkeys(note.rule for reply in replies for note in reply.notes):
            exchange.headers.append((b"x-toolspeak-notes", ", ".join(rules).encode()))
        told = cast("Payload", codec.write_reply(replies, asked, stamp))
        if session:
            await session.save(told)
        await exchange.reply_json(200, told)


def _let_go(error: BaseException | None) -> None:
    """Takes from an error the places in the code where it was: they hold the request's body, and the error is held by the
    request, in a circle that only a look through all memory would find."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _events(asked: Asked, served: Served, running: Mapping[str, Running]) -> Events:
    """The events of all the replies that are wanted, each with the number of its reply. Calls of tools that are `running`
    here are run."""

    def ask(request: Request) -> AsyncGenerator[Event | Done[Reply]]:
        return served.answer(request, whole=not asked.stream)

    return side_by_side([answered(one, running, ask) if running else ask(one) for one in asked.requests])
