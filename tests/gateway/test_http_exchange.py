"""What is written to a client, in which order, and what ends it: against a line that a test holds in its hands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from clock import held_time
from toolspeak.errors import StreamCut
from toolspeak.events import Event, TextDelta
from toolspeak.gateway.app import Gateway
from toolspeak.gateway.body import Gone
from toolspeak.gateway.config.settings import GatewaySettings, ModelSettings
from toolspeak.gateway.http_exchange import HttpExchange
from toolspeak.gateway.registry import Served
from toolspeak.models.base import Capability
from toolspeak.types import Request


class Line:
    """The two ends that a server gives an application. `jam` makes every `send` wait until `clear`."""

    def __init__(self, method: str = "POST") -> None:
        self.scope: dict[str, Any] = {"type": "http", "method": method, "path": "/", "headers": []}
        self.sent: list[dict[str, Any]] = []
        self.left = asyncio.Event()
        self.free = asyncio.Event()
        self.free.set()
        self.failing: type[Exception] | None = None
        self.broken: Exception | None = None

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        if self.broken:
            raise self.broken
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.free.wait()
        if self.failing:
            raise self.failing
        self.sent.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    def exchange(self) -> HttpExchange:
        return HttpExchange(self.scope, self.receive, self.send)


@contextmanager
def attending(exchange: HttpExchange) -> Iterator[None]:
    exchange.attend()
    try:
        yield
    finally:
        exchange.close()


def run(test: Callable[[], Any]) -> None:
    asyncio.run(test())


def test_a_silent_stream_tells_that_it_is_alive_and_goes_on() -> None:
    async def go() -> None:
        line = Line()
        exchange = line.exchange()
        with attending(exchange):
            with held_time() as clock:
                exchange.keep_alive(lambda: b"+", 10, 5)
                assert not exchange.started
                await clock.until(lambda: line.body == b"++", step=1)
                await exchange.write(b"event")
                await clock.until(lambda: line.body == b"++event+", step=1)  # between events as well
                await exchange.end()
                count = len(line.sent)
                for _ in range(20):
                    clock.now += 10
                    await asyncio.sleep(0)
                assert len(line.sent) == count  # nothing after the end
        assert [message["type"] for message in line.sent].count("http.response.start") == 1

    run(go)


def test_a_busy_stream_has_no_need_to_tell() -> None:
    async def go() -> None:
        line = Line()
        exchange = line.exchange()
        with attending(exchange):
            with held_time() as clock:
                exchange.keep_alive(lambda: b"+", 10, 10)
                for _ in range(300):
                    await exchange.write(b".")
                    clock.now += 1
                    await asyncio.sleep(0)
                await exchange.end()
        assert b"+" not in line.body

    run(go)


def test_two_writers_never_pass_each_other() -> None:
    async def go() -> None:
        line = Line()
        exchange = line.exchange()
        line.free.clear()
        with attending(exchange):
            exchange.keep_alive(lambda: b"[opening]", 0.01, 0.01)
            while not exchange._writing:  # the sign of life hangs at a reader who does not read
                await asyncio.sleep(0.001)
            line.free.set()
            await exchange.write(b"event")  # at once, before the one that hangs has noticed that the line is free
            await exchange.end()
        assert line.body.startswith(b"[opening]event") or line.body == b"[opening]event"
        assert line.sent[0]["type"] == "http.response.start"

    run(go)


async def stopped(exchange: HttpExchange, work: Any) -> Exception | None:
    """Why a piece of work was stopped."""
    try:
        await work
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task
        task.uncancel()
        return exchange.ended
    return None


def test_who_leaves_stops_the_work() -> None:
    async def go() -> None:
        line = Line()
        exchange = line.exchange()
        with attending(exchange):
            asyncio.get_running_loop().call_later(0.02, line.left.set)
            assert isinstance(await stopped(exchange, asyncio.sleep(600)), Gone)
        assert exchange.gone

    run(go)


@pytest.mark.parametrize("where", ["watching", "sign"])
def test_what_fails_beside_is_not_lost(where: str) -> None:
    async def go() -> None:
        line = Line()
        exchange = line.exchange()

        def fails() -> bytes:
            raise KeyError("a fault")

        with attending(exchange):
            if where == "watching":
                line.broken = KeyError("a fault")
                line.left.set()
            else:
                exchange.keep_alive(fails, 0.01, 1)
            assert isinstance(await stopped(exchange, asyncio.sleep(600)), KeyError)
        assert not exchange.gone

    run(go)


@pytest.mark.parametrize("how", ["write", "reply", "end"])
def test_a_line_that_breaks_is_a_client_that_left(how: str) -> None:
    async def go() -> None:
        line = Line()
        exchange = line.exchange()
        line.failing = BrokenPipeError
        with pytest.raises(Gone):
            await {
                "write": lambda: exchange.write(b"x"),
                "reply": lambda: exchange.reply(200, b"x"),
                "end": exchange.end,
            }[how]()

    run(go)


def test_head_is_answered_without_a_body_and_with_its_length() -> None:
    async def go() -> None:
        line = Line("HEAD")
        await line.exchange().reply(200, b"12345")
        assert (b"content-length", b"5") in line.sent[0]["headers"]
        assert line.body == b""

    run(go)


def test_there_is_one_answer() -> None:
    async def go() -> None:
        line = Line()
        exchange = line.exchange()
        await exchange.reply(200, b"first")
        with pytest.raises(RuntimeError, match="has begun with status 200"):
            await exchange.reply(500, b"second")
        exchange.stop(Gone())  # it is answered: nobody is stopped any more
        await asyncio.sleep(0)
        assert line.body == b"first"

    run(go)


@pytest.mark.parametrize("leaves", [True, False])
def test_an_error_that_is_being_told_is_told_though_more_goes_wrong(leaves: bool) -> None:
    async def go() -> None:
        line = Line()
        body = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "Hi"}]}'
        coming = [{"type": "http.request", "body": body}]

        class Breaks:
            name = "breaks"
            capabilities: frozenset[Capability] = frozenset({"tools"})

            async def stream(self, request: Request) -> AsyncIterator[Event]:
                yield TextDelta("Well, ")
                line.free.clear()  # from now on the reader is slow
                raise StreamCut("no more")

        async def receive() -> Any:
            return coming.pop() if coming else await line.receive()

        settings = ModelSettings("m", ("scripted:",))
        gateway = Gateway(GatewaySettings({"m": settings}))
        gateway.models.served["m"] = Served(settings, Breaks())
        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": headers}
        answering = asyncio.create_task(gateway(scope, receive, line.send))
        while line.free.is_set():
            await asyncio.sleep(0.001)
        (exchange,) = gateway.open
        while not exchange._writing:  # the error, which the reader does not take
            await asyncio.sleep(0.001)
        if leaves:
            line.left.set()
        else:
            exchange.stop(RuntimeError("another reason"))
        await asyncio.sleep(0.05)
        line.free.set()
        await answering
        assert b"Well, " in line.body
        assert b"upstream_cut" in line.body

    run(go)
