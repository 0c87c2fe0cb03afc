"""A client that leaves: whatever was being done for it ends, at every endpoint, streamed or not, at every moment."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from clock import held_time
from toolspeak.errors import ServerFailed
from toolspeak.events import Event, Finished
from toolspeak.gateway.config.settings import GatewayLimits
from toolspeak.models.base import Capability, Model
from toolspeak.models.http import Http
from toolspeak.models.speaker import Speaker
from toolspeak.types import Request

TOOL = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASKED = [{"role": "user", "content": "Weather in Xiamen?"}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "messages": ASKED,
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": TOOL}}],
    },
    "/v1/messages": {
        "messages": ASKED,
        "max_tokens": 100,
        "tools": [{"name": "weather", "input_schema": TOOL}],
    },
    "/v1/responses": {
        "input": ASKED,
        "tools": [{"type": "function", "name": "weather", "parameters": TOOL}],
    },
    "/v1/completions": {"prompt": "Once upon a time"},
    "/v1/embeddings": {"input": "Xiamen"},
}
WITH_TOOLS = ("/v1/chat/completions", "/v1/messages", "/v1/responses")
PHASES = ("headers", "first", "text", "arguments", "reask", "retry", "queue")

CASES = [
    (path, stream, phase)
    for path in BODIES
    for stream in (False, True)
    for phase in PHASES
    if path in WITH_TOOLS or phase not in ("arguments", "reask")
    if path != "/v1/embeddings" or (phase in ("headers", "queue") and not stream)
]


class Upstream:
    """A server that stops at the point that a test names, notes that it got there, and whether it was left alone."""

    def __init__(self, phase: str) -> None:
        self.phase = phase
        self.requests = 0
        self.there = asyncio.Event()
        self.left = asyncio.Event()
        self.url = ""
        self.sent = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(length)
            self.requests += 1
            if self.phase == "retry":
                writer.write(b"HTTP/1.1 503 No\r\nretry-after: 30\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                self.there.set()
                return
            if self.phase == "reask" and self.requests == 1:
                self._begin(writer)
                self._say(writer, '<tool_call>\n{"name": "weather", "arguments": {"town": 1}}\n</tool_call>')
                self._chunk(writer, b"data: [DONE]\n\n")
                writer.write(b"0\r\n\r\n")
                continue
            if self.phase not in ("headers", "reask", "queue"):
                self._begin(writer)
            if self.phase in ("text", "arguments"):
                self._say(writer, "Let me look. ")
            if self.phase == "arguments":
                self._say(writer, '<tool_call>\n{"name": "weather", "arguments": {"city": "Xia')
            await writer.drain()
            self.there.set()
            while self.phase == "flood":
                self._say(writer, "word " * 2000)
                self.sent += 10_000
                await writer.drain()
            assert await reader.read(1) == b""  # nothing but the end comes now
            self.left.set()
            return

    def _begin(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")

    def _say(self, writer: asyncio.StreamWriter, text: str) -> None:
        row = {"index": 0, "delta": {"content": text}, "text": text, "finish_reason": None}
        self._chunk(writer, b"data: " + json.dumps({"choices": [row]}).encode() + b"\n\n")

    def _chunk(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(b"%x\r\n%b\r\n" % (len(data), data))


@asynccontextmanager
async def stopping(phase: str) -> AsyncIterator[Upstream]:
    upstream = Upstream(phase)
    server = await asyncio.start_server(upstream.handle, "127.0.0.1", 0)
    upstream.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield upstream
    finally:
        server.close()


class Kept:
    """Keeps the lines that a gateway would log."""

    detail = True

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def write(self, line: str) -> None:
        self.records.append(json.loads(line))


def asked(path: str, url: str) -> Model:
    if path == "/v1/completions":
        return Http(url, "up", api="completions", key="")
    return Speaker(Http(url, "up", native=False, key=""), "hermes") if path in WITH_TOOLS else Http(url, "up", key="")


async def ask(url: str, path: str, body: dict[str, Any]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1000)
    data = json.dumps({"model": "m", **body}).encode()
    writer.write(b"POST %b HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n" % path.encode())
    writer.write(b"content-length: %d\r\n\r\n%b" % (len(data), data))
    await writer.drain()
    return reader, writer


async def until(true: Callable[[], bool], seconds: float = 600) -> bool:
    due = time.monotonic() + seconds
    while not true() and time.monotonic() < due:
        await asyncio.sleep(0.005)
    return true()


def served(path: str) -> bool:
    from toolspeak.gateway.routes import find

    return bool(find(path)[0])


@pytest.mark.parametrize(("path", "stream", "phase"), CASES)
def test_everything_ends(serve_models: Callable[..., Any], path: str, stream: bool, phase: str) -> None:
    if not served(path):
        pytest.skip("no such endpoint yet")

    async def go() -> None:
        queued = phase == "queue"
        limits = GatewayLimits(running=1 if queued else 100)
        async with stopping(phase) as upstream:
            async with serve_models(settings={"limits": limits}, m=asked(path, upstream.url)) as running:
                gateway = running.gateway
                gateway.observer.lines = kept = Kept()
                tasks = len(asyncio.all_tasks())
                body = {**BODIES[path], **({"stream": True} if stream else {})}
                first = await ask(running.url, path, body)
                await asyncio.wait_for(upstream.there.wait(), 60)
                if queued:
                    second = await ask(running.url, path, body)
                    assert await until(lambda: gateway.admission.waiting == 1)
                    second[1].transport.abort()
                    assert await until(lambda: gateway.admission.waiting == 0)
                    assert gateway.admission.running == 1
                    assert await until(lambda: len(kept.records) == 1)
                    assert kept.records.pop()["status"] == 499
                if stream and phase in ("text", "arguments"):
                    assert b" 200 " in await first[0].readline()
                first[1].transport.abort()
                if phase != "retry":  # nothing is open to the upstream while it is let alone
                    await asyncio.wait_for(upstream.left.wait(), 60)
                assert await until(lambda: not gateway.open)
                assert gateway.admission.running == 0
                assert await until(lambda: len(asyncio.all_tasks()) <= tasks), asyncio.all_tasks()
                assert upstream.requests == (2 if phase == "reask" else 1)
                (line,) = kept.records
                assert (line["status"], line["route"], line["gone"]) == (499, path, True)

    asyncio.run(go())


@pytest.mark.parametrize("path", [path for path in BODIES if path != "/v1/embeddings"])
def test_a_reader_who_is_slow_holds_the_model_back_and_may_leave(serve_models: Callable[..., Any], path: str) -> None:
    if not served(path):
        pytest.skip("no such endpoint yet")

    async def go() -> None:
        async with stopping("flood") as upstream, serve_models(m=asked(path, upstream.url)) as running:
            body = {**BODIES[path], "stream": True, "tools": []}
            if path == "/v1/completions":
                del body["tools"]
            reader, writer = await ask(running.url, path, body)
            await reader.readline()
            sent = -1
            while sent != upstream.sent:  # until all that lies between is full
                sent = upstream.sent
                await asyncio.sleep(0.3)
            (exchange,) = running.gateway.open
            # What the gateway holds is bounded; the rest lies in the sockets of the system.
            assert upstream.sent < 30_000_000
            assert exchange.started
            writer.transport.abort()
            await asyncio.wait_for(upstream.left.wait(), 60)
            assert await until(lambda: not running.gateway.open)

    asyncio.run(go())


def test_a_client_that_leaves_while_it_sends(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with stopping("headers") as upstream:
            async with serve_models(m=asked("/v1/messages", upstream.url)) as running:
                running.gateway.observer.lines = kept = Kept()
                host, _, port = running.url.removeprefix("http://").partition(":")
                _, writer = await asyncio.open_connection(host, int(port))
                writer.write(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n")
                writer.write(b"content-length: 100\r\n\r\n{")
                await writer.drain()
                assert await until(lambda: bool(running.gateway.open))
                writer.transport.abort()
                assert await until(lambda: not running.gateway.open)
                assert upstream.requests == 0
                assert kept.records[0]["status"] == 499

    asyncio.run(go())


class Forked:
    """A model that fails the first time it is asked, and is silent every other time."""

    name = "forked"
    capabilities: frozenset[Capability] = frozenset({"tools"})

    def __init__(self) -> None:
        self.asked = 0
        self.stopped = 0

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.asked += 1
        if self.asked == 1:
            await asyncio.sleep(0.05)
            raise ServerFailed("no", code=500)
        try:
            await asyncio.sleep(60)
        finally:
            self.stopped += 1
        yield Finished()


def test_of_several_replies_that_are_wanted_one_fails_and_the_others_are_not_left_behind(
    serve_models: Callable[..., Any],
) -> None:
    async def go() -> None:
        model = Forked()
        async with serve_models(m=model) as running:
            reader, writer = await ask(running.url, "/v1/chat/completions", {"messages": ASKED, "n": 3})
            assert b" 502 " in await asyncio.wait_for(reader.readline(), 60)
            assert (model.asked, model.stopped) == (3, 2)
            writer.close()

    asyncio.run(go())


def test_who_never_reads_does_not_hold_a_place_for_ever(
    serve_models: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolspeak.gateway.app.LAST_WORDS", 0.2)

    async def go() -> None:
        settings = {"limits": GatewayLimits(deadline=100)}
        async with (
            stopping("flood") as upstream,
            serve_models(settings=settings, m=asked("/v1/messages", upstream.url)) as running,
        ):
            running.gateway.observer.lines = kept = Kept()
            body = {**BODIES["/v1/messages"], "stream": True, "tools": []}
            reader, writer = await ask(running.url, "/v1/messages", body)
            await reader.readline()
            with held_time() as clock:
                clock.now += 101
                await clock.until(upstream.left.is_set, step=0.001)
                await clock.until(lambda: not running.gateway.open, step=0.001)
            assert running.gateway.admission.running == 0
            (line,) = kept.records
            assert (line["status"], line["code"]) == (200, "deadline")
            writer.transport.abort()

    asyncio.run(go())
