"""What a server may make the client hold, or compute on the event loop, besides an endless reply."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp.client_proto import ResponseHandler

from toolspeak.api.json_stream import Payloads
from toolspeak.api.sse_parser import LONGEST, EventParser
from toolspeak.errors import ModelError, ServerFailed
from toolspeak.events import TextDelta
from toolspeak.models.http import bounded_connection
from toolspeak.models.http.client import Http
from toolspeak.types import Request

HI = Request([{"role": "user", "content": "Hi"}])
ANSWER = b'{"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}'
OK = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(ANSWER) + ANSWER


@asynccontextmanager
async def _server(answer: bytes) -> AsyncIterator[Http]:
    """A model at a server that sends these bytes to each request."""

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(reply, "127.0.0.1", 0)
    model = Http(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", "m", retries=0)
    try:
        yield model
    finally:
        await model.aclose()
        server.close()


def _text(answer: bytes) -> str:
    async def go() -> str:
        async with _server(answer) as model:
            return "".join([event.text async for event in model.stream(HI) if isinstance(event, TextDelta)])

    return asyncio.run(go())


def test_informational_responses_do_not_pile_up() -> None:
    """300,000 of them, 10 MB, took 120 MB, and the event loop a second for each quarter of a megabyte."""
    early = b"HTTP/1.1 102 Processing\r\n\r\n"
    assert _text(early * 50 + OK) == "Hello"
    with pytest.raises(ModelError):
        _text(early * 10_000 + OK)


def test_what_arrives_at_once_is_parsed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    longest, received = [0], ResponseHandler.data_received

    def watched(self: ResponseHandler, data: bytes) -> None:
        longest[0] = max(longest[0], len(data))
        received(self, data)

    monkeypatch.setattr(ResponseHandler, "data_received", watched)
    text = "x" * 1_000_000
    body = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()
    assert _text(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body) == text
    assert 0 < longest[0] <= bounded_connection.PIECE


def test_chunks_that_arrive_at_once_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiohttp parsed again, nothing, after each chunk that was read."""
    steps, received = [0], ResponseHandler.data_received

    def watched(self: ResponseHandler, data: bytes) -> None:
        steps[0] += 1
        received(self, data)

    monkeypatch.setattr(ResponseHandler, "data_received", watched)
    event = json.dumps({"choices": [{"index": 0, "delta": {"content": "x"}}]}).encode()
    lines = [b"data: " + event + b"\n\n"] * 300 + [b"data: [DONE]\n\n"]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(line), line) for line in lines)
    assert _text(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n") == "x" * 300
    assert steps[0] < 50


@pytest.mark.parametrize("options", [{}, {"resume_parser": False}])
def test_a_paused_connection_continues_as_its_version_of_aiohttp_has_it(
    options: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With aiohttp 3.13, a reply that was read slowly ended in a TypeError: there, `resume_reading` has no parameters."""
    calls: list[dict[str, bool]] = []
    monkeypatch.setattr(ResponseHandler, "resume_reading", lambda _self, **options: calls.append(options))

    async def resumed() -> None:
        connection = bounded_connection.BoundedConnection(asyncio.get_running_loop())
        connection.resume_reading(**options)
        assert calls == []
        connection._reading_paused = True
        connection.resume_reading(**options)

    asyncio.run(resumed())
    assert calls == [options]


@pytest.mark.parametrize("stream", [True, False])
def test_a_long_part_is_parsed_beside_the_event_loop(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event with 150,000 choices stopped the loop for a fifth of a second."""
    threads: set[threading.Thread] = set()
    parse = Payloads._parse

    def watched(self: Payloads, text: str, **options: Any) -> Any:
        if len(text) >= 100_000:
            threads.add(threading.current_thread())
        return parse(self, text, **options)

    monkeypatch.setattr(Payloads, "_parse", watched)
    many = [{"index": i, "delta": {"content": "x"}, "message": {"content": "x"}} for i in range(10_000)]
    body = json.dumps({"choices": many}).encode()
    if stream:
        short = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).encode()
        body = b"data: " + body + b"\n\ndata: " + short + b"\n\ndata: [DONE]\n\n"
    assert _text(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body) == "x"
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.parametrize("size", [1_000, 65_536, LONGEST])
def test_the_length_of_an_event_does_not_depend_on_its_pieces(size: int) -> None:
    """An event of 9 MB was refused as one of more than 16: its pieces and its line were counted."""

    def read(length: int) -> int:
        parser, text = EventParser(), "data: " + "x" * length + "\n\n"
        return sum(len(data) for at in range(0, len(text), size) for data, *_ in parser.feed(text[at : at + size]))

    assert read(LONGEST - 10) == LONGEST - 10
    with pytest.raises(ServerFailed):
        read(LONGEST + 10)


def test_vectors_are_bounded_by_the_number_of_texts() -> None:
    """A server could answer a word with 256 MB."""

    async def go(numbers: int) -> int:
        body = json.dumps({"data": [{"index": 0, "embedding": [0.5] * numbers}]}).encode()
        async with _server(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body) as model:
            return len((await model.embed(["a"])).rows[0])

    assert asyncio.run(go(8_192)) == 8_192
    with pytest.raises(ServerFailed, match="more than"):
        asyncio.run(go(300_000))
