"""The gateway as an ASGI application: a request from its body to its response."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast

from ..api.incoming import IncomingRequest, Stamp
from ..api.json_stream import Payload
from ..audit import audit, request_id, request_span
from ..drive import Done
from ..events import Event
from ..models.offload import LARGE, offloaded, reply_size
from ..models.pool import on_retry, returned
from ..types import Reply, Request, Schema, ToolCall
from .access.auth import Authenticator
from .batches.line_request import LineRequest, LineResponse
from .batches.worker import BatchWorker
from .body import Gone, check_head, checked_body, read_body
from .call_policy import policed
from .config.settings import GatewaySettings
from .endpoints.health import Readiness
from .endpoints.responses import Session
from .endpoints.ui import Interface
from .errors import drop_traceback, refused
from .hosted_rounds import answered
from .hosted_tools import HostedTools, Running
from .http_exchange import HttpExchange, Receive, Scope, Send
from .limits.admission import Admission
from .limits.admitted import Admitted
from .limits.batch_slots import BatchSlots
from .limits.budgets import Metered, Spend, budgets_of
from .limits.memory_trimming import Trimmer
from .limits.nested_json_limits import check_history
from .limits.schema_limits import bounded_tools, reading_cost, with_usable_schema
from .merge import side_by_side
from .registry import Models, Served, check_able
from .routes import Codec, Writer, answer_route, codec_for, known_path
from .storage.batch_store import BatchStore
from .storage.response_store import ResponseStore
from .telemetry.log_lines import log_model_failure
from .telemetry.observer import Observer
from .telemetry.request_record import UNKNOWN
from .tool_cache import Toolsets

log = logging.getLogger(__name__)

FINAL = frozenset(
    {
        "insufficient_quota", "no_valid_reply", "deadline", "upstream_unreachable", "upstream_failed",
        "upstream_key_refused",
    }
)  # fmt: skip
"""Errors after all attempts that the gateway may make: a client that retries by itself only adds load. `upstream_cut` is not
one: the gateway does not repeat a request whose reply has begun, even if the client has seen nothing of it yet."""


Events = AsyncGenerator[tuple[int, Event | Done[Reply]]]
"""The events of replies, each with the index of its reply."""


class Stream:
    """A streamed response. Its opening is sent before the first event or keep-alive, whichever comes first.

    The opening is made before any event reaches the writer: the writer counts what it writes, and an opening describes
    an empty reply.
    """

    def __init__(self, exchange: HttpExchange, writer: Writer) -> None:
        self.exchange = exchange
        self.writer = writer
        self._opening = writer.begin()

    def alive(self) -> bytes:
        """Return the bytes that keep the connection alive."""
        return self.opened(self.writer.keep_alive)

    def opened(self, data: bytes) -> bytes:
        """Return the data, after the opening if that has not been sent."""
        opening, self._opening = self._opening, b""
        return opening + data


LAST_WORDS = 5.0
"""The time limit in seconds for sending an error to a client that reads slowly."""


class Gateway:
    """An ASGI application. `settings` say what it serves; `observer` is notified of every request."""

    def __init__(self, settings: GatewaySettings, observer: Observer | None = None) -> None:
        self.settings = settings
        self.observer = observer or Observer()
        self.models = Models(
            settings.models, settings.limits,
            aliases=settings.aliases, default=settings.default, record=settings.record, keyed=bool(settings.keys),
        )  # fmt: skip
        self.hosted = HostedTools(settings.hosted, settings.mcp, settings.offered, settings.keys)
        self.auth = Authenticator(settings)
        self.budgets = budgets_of(settings)
        self.toolsets = Toolsets()
        self.store = ResponseStore(settings.store) if settings.store and settings.store.responses else None
        if self.store:
            self.store.prepare()
        self.admission = Admission(settings.limits, shared=len(settings.keys) > 1)
        self.background = BatchSlots(self.admission)
        self.batches = BatchStore(settings.batches) if settings.batches else None
        if self.batches:
            self.batches.prepare()
        self.worker = BatchWorker(self.batches, self.answer_line, settings.limits.body) if self.batches else None
        self.ui = Interface(settings.ui, self) if settings.ui else None
        self.readiness = Readiness()
        self.open: set[HttpExchange] = set()
        self._idle = asyncio.Event()
        self._trimmer = Trimmer()

    def drain(self) -> None:
        """Accept no new work; requests in progress continue."""
        self.readiness.draining = True
        self.admission.drain()
        if self.worker:
            self.worker.drain()
        self.background.drain()

    async def idle(self) -> None:
        """Wait until no request is open."""
        while self.open:
            await self._idle.wait()

    def look(self) -> None:
        """Update the metrics of how full the gateway is."""
        self.observer.metrics.full(self.admission.running, self.admission.waiting)
        self.observer.metrics.breakers(self.models.breakers())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        record, span = self.observer.begin(scope["method"], scope["headers"])
        record.route = known_path(scope["path"])
        page = self.ui if self.ui and self.ui.serves(scope["path"]) else None
        watched = self.ui.watch(record, receive, send) if self.ui else nullcontext((receive, send))
        with watched as (receive, send):
            exchange = HttpExchange(scope, receive, send, record, span)
            if self.readiness.draining:
                exchange.headers.append((b"connection", b"close"))
            await self._handle(exchange, page.let_in if page else self.auth.let_in)

    async def answer_line(self, owner: str, path: str, body: bytes) -> LineResponse:
        """Answer a line of a batch as a request of its owner, but with the priority of background work."""
        returned.set((429, 503))  # the batch then has fewer lines in progress
        line = LineRequest(path, body)
        record, span = self.observer.begin("POST", line.scope["headers"])
        exchange = HttpExchange(line.scope, line.receive, line.send, record, span)
        await self._handle(exchange, partial(self.auth.let_line_in, owner=owner))
        return line.answer

    async def _handle(self, exchange: HttpExchange, let_in: Callable[..., Awaitable[None]]) -> None:
        """Answer a request after the check `let_in`."""
        record = exchange.record
        self.open.add(exchange)
        self._idle.clear()
        request_span.set(exchange.span)
        request_id.set(record.id)
        try:
            await let_in(exchange, lambda: answer_route(self, exchange))
        except asyncio.CancelledError:
            if exchange.ended is None:
                raise
            cast("asyncio.Task[Any]", asyncio.current_task()).uncancel()
            await self._send_error(exchange, exchange.ended)
        except Exception as error:  # noqa: BLE001 - the last place to catch it: the client gets any error
            await self._send_error(exchange, exchange.ended or error)
        finally:
            exchange.close()
            drop_traceback(exchange.ended)
            self.open.discard(exchange)
            if not self.open:
                self._idle.set()
            self._trimmer.ended(exchange.received + exchange.stored + record.bytes, ran=record.ran)
            self.observer.end(record, exchange.span, gone=exchange.gone)

    async def _send_error(self, exchange: HttpExchange, error: Exception) -> None:
        """Send an error to the client in the format of its API; in the stream, if that has begun."""
        if isinstance(error, Gone):
            exchange.ended = error
            return
        exchange.ended = error  # so that no one else ends the request
        answer = refused(error)
        exchange.record.failed(error, answer.code)
        answer.request_id = exchange.record.id
        if answer.status == 500:
            log.error("request %s failed", exchange.record.id, exc_info=error)
        elif self.observer.lines:
            log_model_failure(exchange.record.id, error, answer.code)
        if exchange.over:
            return
        if answer.code in FINAL:
            exchange.headers.append((b"x-should-retry", b"false"))
        if answer.retry_after is not None:
            exchange.headers.append((b"retry-after", str(max(1, round(answer.retry_after))).encode()))
        with suppress(TimeoutError, Gone):
            async with asyncio.timeout(LAST_WORDS):
                if not exchange.started:
                    await exchange.reply_json(answer.status, codec_for(exchange).write_error(answer))
                elif exchange.writer:
                    writer = exchange.writer
                    await exchange.write(await offloaded(writer.due(None), writer.error, answer))
                    await exchange.end()

    def admitted(self, exchange: HttpExchange) -> Admitted:
        """Return a context in which a request, whose body was read, holds one of the places for requests."""
        places = self.background if exchange.background else self.admission
        return Admitted(exchange, places, self.settings.limits.deadline)

    async def read(
        self, exchange: HttpExchange, schema: Schema, *, any_type: bool = False, alias: str = "model"
    ) -> dict[str, Any]:
        """Return the body of a request, checked against `schema`.

        `any_type`: see `check_head`. `alias` is the field with the model's name if `model` is missing. Raises Refused,
        and Gone if the client left.
        """
        if not exchange.background:
            self.admission.check(exchange.owner)
        exchange.record.model = UNKNOWN  # until one of ours is found
        on_retry.set(exchange.record.retried)
        limits = self.settings.limits
        check_head(exchange.scope["headers"], any_type=any_type)
        length = exchange.header(b"content-length") or None
        raw = await read_body(exchange.receive, length, limits)
        exchange.received = len(raw)
        exchange.body_schema = schema
        exchange.reading_cost = reading_cost(raw)
        exchange.tools = bounded_tools(raw, limits, self.toolsets)
        body = await offloaded(len(raw), checked_body, raw, schema, limits)
        if alias in body and not body.get("model"):
            body["model"] = body[alias]
        if body.get("model") == "":
            body["model"] = self.models.only(exchange.visible)
        return body

    async def generate(self, exchange: HttpExchange, codec: Codec, session: Session | None = None) -> None:
        """Answer a request with a model's reply, in the API of `codec`. `session` stores the reply."""
        await self.answer(exchange, codec, await self.read(exchange, codec.BODY), session)

    async def answer(
        self, exchange: HttpExchange, codec: Codec, body: dict[str, Any], session: Session | None = None
    ) -> None:
        """Answer a request whose body was read."""
        async with self.admitted(exchange):
            incoming = await (session.read(body) if session else exchange.understand(codec.read_request, body))
            await check_history(incoming.request.messages, self.settings.limits)
            incoming = with_usable_schema(incoming, self.settings.limits)
            incoming, running = await self.hosted.add(*await self.hosted.join(incoming), exchange.key)
            served = self.find(incoming.model, exchange)
            served = self.observer.request_read(
                exchange, incoming, self.ui.listened_to(incoming, served) if self.ui else served
            )
            exchange.tell_ignored(incoming.ignored)
            check_able(incoming, served)
            if spend := await self.spender(exchange, served):
                served = replace(served, model=Metered(served.model, spend))
            stamp = Stamp(secrets.token_hex(12), int(time.time()), incoming.model, exchange.record.times)
            events = _events(incoming, served, running, exchange, self.settings.tool_turns)
            if incoming.stream:
                exchange.writer = cast("Writer", codec.ReplyWriter(incoming, stamp))
                await self._stream(Stream(exchange, exchange.writer), events, session)
            else:
                await self._whole(exchange, codec, incoming, events, stamp, session)

    def find(self, name: str, exchange: HttpExchange) -> Served:
        """Return the model of a name that a client sent, and name it in the response and the log. Raises Refused."""
        served = self.models.find(name, exchange.visible)
        exchange.tell_model(served.settings.name, self.models.by_default(name, exchange.visible))
        return served

    async def spender(self, exchange: HttpExchange, served: Served) -> Spend | None:
        """Return the counter of costs if the client's key has a budget. Raises Refused (429) if it is used up."""
        budgets, key = self.budgets, exchange.key
        if budgets is None or key is None or not key.budget:
            return None
        await budgets.check(key)
        return partial(budgets.spend, key, served.settings.price)

    async def _stream(self, stream: Stream, replies: Events, session: Session | None) -> None:
        limits = self.settings.limits
        hear, feed, due = stream.exchange.record.hear, stream.writer.feed, stream.writer.due
        opened, write = stream.opened, stream.exchange.write
        stream.exchange.keep_alive(stream.alive, limits.first, limits.keep_alive)
        async with aclosing(replies) as events:
            async for choice, event in events:
                if isinstance(event, Done):
                    continue
                hear(event)
                size = due(event, choice)
                if data := feed(event, choice) if size < LARGE else await offloaded(size, feed, event, choice):
                    await write(opened(data))
        end = await offloaded(due(None), stream.writer.close)
        if session:  # before the end is sent: the client may continue from this response at once
            await session.save(cast("Any", stream.writer).response)
        await write(opened(end))
        await stream.exchange.end()

    async def _whole(
        self,
        exchange: HttpExchange,
        codec: Codec,
        incoming: IncomingRequest,
        stream: Events,
        stamp: Stamp,
        session: Session | None,
    ) -> None:
        hear = exchange.record.hear
        by_choice: dict[int, Reply] = {}
        async with aclosing(stream) as events:
            async for choice, event in events:
                if isinstance(event, Done):
                    by_choice[choice] = event.value
                else:
                    hear(event)
        replies = [by_choice[choice] for choice in range(incoming.n)]
        if rules := dict.fromkeys(note.rule for reply in replies for note in reply.notes):
            exchange.headers.append((b"x-toolspeak-notes", ", ".join(rules).encode()))
        size = sum(map(reply_size, replies))
        body = cast("Payload", await offloaded(size, codec.write_reply, replies, incoming, stamp))
        if session:
            await session.save(body)
        await exchange.reply_json(200, body, size)


def _events(
    incoming: IncomingRequest, served: Served, running: Mapping[str, Running], exchange: HttpExchange, turns: int
) -> Events:
    """Yield the events of all replies to a request, each with the index of its reply. Calls that the client's policy
    refuses are left out, and the tools in `running` are run here."""
    policy, who = exchange.policy, exchange.owner

    def reply(request: Request) -> AsyncGenerator[Event | Done[Reply]]:
        return served.answer(request, whole=not incoming.stream, eager=() if policy else incoming.eager)

    def ask(request: Request) -> AsyncGenerator[Event | Done[Reply]]:
        return policed(reply, request, policy, running, who=who) if policy else reply(request)

    def run(request: Request) -> AsyncGenerator[Event | Done[Reply]]:
        longest, here = served.longest_result, incoming.run_here
        return answered(request, running, ask, reported=here, longest=longest, turns=turns, on_run=count)

    def count(call: ToolCall) -> None:
        exchange.record.ran += 1
        if not policy:  # otherwise the policy's decision is in the audit
            audit(call, None, "allowed", who=who)

    return side_by_side([run(one) if running else ask(one) for one in incoming.requests])
