"""The page at `/ui`: its files, which need no key and contain no data, and its API, which does need one.

Pages of other origins may not use that API, whatever the configuration says about CORS, and on loopback the Host header
must name this machine. Both are checked before the key, so that a page cannot misuse a user's browser.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...api.incoming import IncomingRequest
from ...api.sse_parser import CONTENT_TYPE
from ...dialects import get, names
from ...drive import Done
from ...errors import Refused
from ...events import Event
from ...models.base import Model
from ...models.http.address import is_loopback
from ...schema.bounded_cache import BoundedCache
from ...toolbox import Toolbox
from ...types import Reply, Request
from ...ui.assets import INDEX, PAGE, REPORT, asset
from ...ui.dialect_view import dialect_rows, draft, read_reply
from ...ui.live import LiveRequest, Ring
from ...ui.model_tap import listener, listening, tap
from ...ui.playground import resumed, run_call, strategy_line, strategy_of, turn
from ...ui.reports import Reports
from ...verbs import Options
from ..access.host_check import names_loopback
from ..call_policy import Policed
from ..http_exchange import HttpExchange, Receive, Send
from ..limits.budgets import Metered
from ..registry import Served, build
from ..telemetry.request_record import RequestRecord
from .pagination import query
from .ui_bodies import CALL, DRAFT, NAME, READ, RESUME, TURN, answer_of, flat

if TYPE_CHECKING:
    from ..app import Gateway
    from ..config.settings import PageSettings

HOME = "/ui"
API = f"{HOME}/api/"
REPORT_PATH = f"{HOME}/report/"
WATCHED = frozenset(
    ("POST", path)
    for path in (
        *("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"),
        *("/api/chat", "/api/generate"),
    )
)
"""The routes whose requests are recorded for the page: those that a model answers."""
ASKING = ("turn", "resume")
"""The names in the page's API that ask a model, as clients do."""
FACTS = (
    "status",
    "code",
    "stream",
    "seconds",
    "first",
    "waited",
    "tokens_in",
    "tokens_out",
    "reasks",
    "retries",
    "repairs",
)
"""The fields of a request's record that the page shows."""
OPTIONS = ("choice", "temperature", "max_tokens", "seed")
DIALECTS = 32
"""How many models with another dialect are cached."""


@dataclass(frozen=True, slots=True)
class WatchedModel(Served):
    """A served model whose replies are recorded for the page."""

    entry: LiveRequest

    async def answer(
        self, request: Request, *, whole: bool = False, eager: Collection[str] = ()
    ) -> AsyncGenerator[Event | Done[Reply]]:
        """Yield the events of a reply; see `Served`."""
        async with aclosing(Served.answer(self, request, whole=whole, eager=eager)) as events:
            async for event in events:
                if isinstance(event, Done):
                    self.entry.replied(event.value)
                else:
                    self.entry.passed_on(event)
                yield event


class RowWriter:
    """Writes the rows of a turn as server-sent events. An error that ends them is a row too."""

    content_type = CONTENT_TYPE

    def row(self, row: Mapping[str, Any]) -> bytes:
        """Return a row as an event."""
        return f"data: {json.dumps(row, default=str)}\n\n".encode()

    def error(self, error: Refused) -> bytes:
        """Return an error as an event."""
        return self.row({"row": "error", "type": "Refused", "message": str(error), "attempts": []})


class Interface:
    """Serves the page of a gateway, and its API."""

    def __init__(self, settings: PageSettings, gateway: Gateway) -> None:
        self.settings = settings
        self.gateway = gateway
        self.tools = settings.tools or Toolbox()
        self._prompted = BoundedCache[tuple[str, str], Model](DIALECTS)
        self._tapped: dict[str, tuple[Served, Served]] = {}
        self._routes: Mapping[tuple[str, str], Callable[[HttpExchange], Awaitable[None]]] = {
            ("GET", "about"): self.about,
            ("GET", "dialects"): self.dialects,
            ("POST", "turn"): self.turn,
            ("POST", "resume"): self.resume,
            ("POST", "run"): self.run,
            ("POST", "read"): self.read,
            ("POST", "draft"): self.draft,
            ("GET", "live"): self.live,
            ("GET", "request"): self.one_request,
            ("GET", "reports"): self.list_reports,
            ("POST", "report"): self.open_report,
        }
        self.ring = Ring(settings.live) if settings.live else None
        self.reports = Reports(settings.reports) if settings.reports else None

    def serves(self, path: str) -> bool:
        """Whether a path belongs to the page."""
        return path == HOME or path.startswith(f"{HOME}/")

    async def let_in(self, exchange: HttpExchange, _: Callable[[], Awaitable[None]]) -> None:
        """Answer a request to the page. Raises Refused."""
        exchange.record.route = HOME
        path: str = exchange.scope["path"]
        self._check_page(exchange, api=path.startswith(API))
        if path.startswith(API):
            exchange.headers += [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
            name = path.removeprefix(API)
            rated = exchange.scope["method"] == "POST" and name in ASKING
            await self.gateway.auth.let_in(exchange, lambda: self._answer(exchange, name), rated=rated)
        elif path == HOME:
            exchange.headers.append((b"location", f"{HOME}/".encode()))
            await exchange.reply(308, b"", b"text/plain")
        elif path.startswith(REPORT_PATH):
            await self._report(exchange, path.removeprefix(REPORT_PATH))
        else:
            await self._file(exchange, path.removeprefix(f"{HOME}/") or INDEX)

    @contextmanager
    def watch(self, record: RequestRecord, receive: Receive, send: Send) -> Generator[tuple[Receive, Send]]:
        """Record a request that models answer, if requests are recorded."""
        if self.ring is None or (record.method, record.route) not in WATCHED:
            yield receive, send
            return
        entry = self.ring.begin(record.route, record.id, lambda: record.key)
        try:
            with listening(entry):
                yield entry.receiving(receive), entry.sending(send)
        finally:
            entry.end({name: getattr(record, name) for name in FACTS})

    def listened_to(self, incoming: IncomingRequest, served: Served) -> Served:
        """Return the model, recording its prompts and output for this request."""
        entry = listener()
        if not isinstance(entry, LiveRequest):
            return served
        tapped = self.tapped(served)
        strategy = strategy_of(tapped.model)
        entry.understood(
            incoming.requests[0],
            served.settings.name,
            strategy_line(tapped.model),
            strategy.dialect if strategy else None,
        )
        return WatchedModel(tapped.settings, tapped.model, entry)

    def _check_page(self, exchange: HttpExchange, *, api: bool) -> None:
        """Raises Refused for a page of another origin, and for DNS rebinding."""
        host, origin = exchange.header(b"host"), exchange.header(b"origin")
        if is_loopback(self.gateway.settings.host) and not names_loopback(host):
            message = "this page accepts only requests whose Host header names localhost"
            raise Refused(message, status=403, code="host_not_allowed")
        elsewhere = origin and origin.partition("://")[2] != host
        if elsewhere or (api and exchange.header(b"sec-fetch-site") in ("cross-site", "same-site")):
            raise Refused("only the page itself may use this address", status=403, code="origin_not_allowed")

    async def _file(self, exchange: HttpExchange, name: str) -> None:
        file = asset(name)
        if file is None:
            raise Refused(f"there is no {exchange.scope['path'][:200]} here", status=404, code="not_found")
        if exchange.scope["method"] not in ("GET", "HEAD"):
            raise Refused(f"{exchange.scope['path'][:200]} takes GET or HEAD", status=405, code="method_not_allowed")
        exchange.headers += PAGE
        await exchange.reply(200, *file)

    async def _answer(self, exchange: HttpExchange, name: str) -> None:
        handle = self._routes.get((exchange.scope["method"], name))
        if handle is None:
            known = [method for method, route in self._routes if route == name]
            message = f"{name[:100]} takes {' or '.join(known)}" if known else f"there is no {API}{name[:100]} here"
            raise Refused(message, status=405 if known else 404, code="method_not_allowed" if known else "not_found")
        self.gateway.admission.check_open()
        await handle(exchange)

    # -------------------------------------------------------------- the page's API

    async def about(self, exchange: HttpExchange) -> None:
        """Answer with the models, tools and options to choose from."""
        models = self.gateway.models
        rows = [
            {"name": name, "asked": strategy_line(models.find(name).model)} for name in models.names(exchange.visible)
        ]
        body = {
            "version": __version__,
            "models": rows,
            "tools": self.tools.list(),
            "dialects": list(names()),
            "live": self.ring is not None,
            "reports": self._reports(exchange) is not None,
            "policy": self.settings.policy is not None,
        }
        await exchange.reply_json(200, body)

    async def dialects(self, exchange: HttpExchange) -> None:
        """Answer with all dialects, each with an example call."""
        await exchange.reply_json(200, {"dialects": dialect_rows()})

    async def turn(self, exchange: HttpExchange) -> None:
        """Answer with the events of a turn in the playground."""
        exchange.record.route = f"{API}turn"
        body = await self.gateway.read(exchange, TURN)
        await self._tell(exchange, body, lambda model, box, options: turn(model, body["messages"], box, options))

    async def resume(self, exchange: HttpExchange) -> None:
        """Continue a run in the playground with answers to its pending calls, and answer with its events."""
        exchange.record.route = f"{API}resume"
        body = await self.gateway.read(exchange, RESUME)
        if self.settings.policy is None:
            raise Refused("no policy was given (`toolspeak ui --policy FILE`), so nothing is pending", code="no_policy")
        answers = {id_: answer_of(value) for id_, value in body["answers"].items()}
        paused = {name: body["paused"][name] for name in ("messages", "pending")}
        await self._tell(exchange, body, lambda model, box, options: resumed(model, paused, answers, box, options))

    async def _tell(
        self,
        exchange: HttpExchange,
        body: Any,
        row_source: Callable[[Model, Toolbox, Options], AsyncGenerator[Mapping[str, Any]]],
    ) -> None:
        """Write the rows that the model produces for the tools and options in a body."""
        gateway = self.gateway
        async with gateway.admitted(exchange):
            box = await exchange.understand(self._box, body)
            model = await asyncio.to_thread(self._model, exchange, body["model"], body.get("dialect", ""))
            if spend := await gateway.spender(exchange, gateway.models.find(body["model"], exchange.visible)):
                model = Metered(model, spend)
            if exchange.policy:
                model = Policed(model, exchange.policy, exchange.owner)
            options: Any = {name: body[name] for name in OPTIONS if name in body}
            if self.settings.policy is not None:
                options["policy"] = self.settings.policy
            exchange.writer = writer = RowWriter()
            async with aclosing(row_source(model, box, options)) as rows:
                async for row in rows:
                    if row["row"] == "reply":
                        exchange.record.tokens_in += row["usage"]["prompt_tokens"]
                        exchange.record.tokens_out += row["usage"]["completion_tokens"]
                    await exchange.write(writer.row(row))
            await exchange.end()

    def _box(self, body: Any, tools: Callable[[Any], Any]) -> Toolbox:
        """Return the tools of a turn: those chosen from the command line, and those pasted into the page."""
        offered = set(body.get("offered", ()))
        if self.settings.policy is not None and body.get("tools"):
            message = "with a policy calls are run, and a pasted tool cannot run: give it with `toolspeak ui --tools`"
            raise Refused(message, code="invalid_value", param="tools")
        return Toolbox(*(one for one in self.tools if one.name in offered), *(tools(flat(body)) or ()))

    def tapped(self, served: Served) -> Served:
        """Return the same with a model that can be recorded."""
        before, tapped = self._tapped.get(served.settings.name, (None, served))
        if before is not served:
            tapped = replace(served, model=tap(served.model))
            self._tapped[served.settings.name] = served, tapped
        return tapped

    def _model(self, exchange: HttpExchange, name: str, dialect: str) -> Model:
        """Return the model of that name, as it is served or with another dialect."""
        served = self.tapped(self.gateway.models.find(name, exchange.visible))
        exchange.record.model = served.settings.name
        if not dialect:
            return served.model
        key = served.settings.name, dialect
        if (model := self._prompted.get(key)) is None:
            model = tap(build(replace(served.settings, dialect=get(dialect), mode="auto")).model)
            self._prompted.put(key, model, 1)
        return model

    async def run(self, exchange: HttpExchange) -> None:
        """Run a call of a tool that was given on the command line."""
        exchange.record.route = f"{API}run"
        body = await self.gateway.read(exchange, CALL)
        if self.settings.policy is not None:
            raise Refused("with a policy calls run only as part of a conversation", status=403, code="policy")
        if body["name"] not in self.tools:
            message = f"{body['name'][:100]}: only tools that were given with `toolspeak ui --tools` can run"
            raise Refused(message, code="invalid_value", param="name")
        async with self.gateway.admitted(exchange):
            await exchange.reply_json(
                200, await run_call(self.tools, body["name"], body["arguments"], body.get("id", "call_1"))
            )

    async def read(self, exchange: HttpExchange) -> None:
        """Answer with how dialects parse a reply."""
        body = await self.gateway.read(exchange, READ)
        async with self.gateway.admitted(exchange):
            tools = await exchange.understand(lambda body, make: make(flat(body)), body) if body.get("tools") else None
            reading = await asyncio.to_thread(read_reply, body["text"], body.get("dialect", ""), tools)
            await exchange.reply_json(200, reading)

    async def draft(self, exchange: HttpExchange) -> None:
        """Answer with the dialect of a chat template."""
        body = await self.gateway.read(exchange, DRAFT)
        async with self.gateway.admitted(exchange):
            drafted = await asyncio.to_thread(draft, body["template"], body.get("name", ""))
            await exchange.reply_json(200, drafted)

    async def live(self, exchange: HttpExchange) -> None:
        """Answer with the requests that changed since the page's last poll."""
        after = query(exchange).get("after", "0")
        await exchange.reply_json(200, self._ring().changes(_number(after, "after"), self._owner(exchange)))

    async def one_request(self, exchange: HttpExchange) -> None:
        """Answer with everything that is recorded of a request."""
        number = _number(query(exchange).get("number", ""), "number")
        entry = self._ring().find(number, self._owner(exchange))
        if entry is None:
            raise Refused(f"request {number} is no longer kept", status=404, code="not_found")
        await exchange.reply_json(200, entry.detail())

    def _ring(self) -> Ring:
        if self.ring is None:
            raise Refused("no requests are recorded: set `live` in [ui]", status=404, code="not_found")
        return self.ring

    def _owner(self, exchange: HttpExchange) -> str | None:
        """Return whose requests the client may see: its own, or everybody's (None)."""
        return None if self._sees_all(exchange) else exchange.owner

    def _sees_all(self, exchange: HttpExchange) -> bool:
        """Whether the client may see what belongs to no key: as an operator, or because there are no keys."""
        return exchange.key is None or exchange.owner in self.settings.operators

    def _reports(self, exchange: HttpExchange) -> Reports | None:
        """Return the reports that the client may see. They name any model, and repeat cases, so no part of them belongs
        to a key."""
        return self.reports if self._sees_all(exchange) else None

    async def list_reports(self, exchange: HttpExchange) -> None:
        """Answer with the reports in the folder."""
        reports = self._reports(exchange)
        rows = await asyncio.to_thread(reports.rows) if reports else []
        await exchange.reply_json(200, {"reports": rows})

    async def open_report(self, exchange: HttpExchange) -> None:
        """Answer with an address at which a report can be opened once."""
        body = await self.gateway.read(exchange, NAME)
        reports = self._reports(exchange)
        ticket = await asyncio.to_thread(reports.ticket, body["name"]) if reports else None
        if ticket is None:
            raise Refused(f"there is no report {body['name'][:200]} here", status=404, code="not_found")
        await exchange.reply_json(200, {"address": f"report/{ticket}"})

    async def _report(self, exchange: HttpExchange, ticket: str) -> None:
        """A report, by its ticket."""
        report = await asyncio.to_thread(self.reports.take, ticket) if self.reports else None
        if report is None:
            raise Refused("this address of a report was already used, or has expired", status=404, code="not_found")
        exchange.headers += REPORT
        await exchange.reply(200, report, b"text/html; charset=utf-8")


def _number(text: str, name: str) -> int:
    if not re.fullmatch("[0-9]{1,15}", text, re.ASCII):
        raise Refused(f"{name}: expected a number, got {text[:40]!r}", code="invalid_value", param=name)
    return int(text)
