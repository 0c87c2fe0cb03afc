"""What one connection may make the gateway hold, before anybody has said who they are."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from raw_client import connected

from clock import held_time
from toolspeak.gateway.config.settings import GatewayLimits
from toolspeak.gateway.serve.http_protocol import HEADERS, WAITING, WAITING_BYTES
from toolspeak.models.scripted import Scripted

LIVEZ = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
CLOSE = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
CHUNKED = b"POST /livez HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


async def _answered(url: str, first: bytes, more: bytes, size: int) -> bytes:
    """What was said to `first` and then `more` again and again, `size` bytes in all, read only after they were sent."""
    client = await connected(url)
    with held_time() as clock:  # the gateway lingers for as long as this sends
        client.transport.pause_reading()
        client.transport.write(first)
        for _ in range(size // len(more)):
            client.transport.write(more)
            await clock.until(lambda: client.transport.get_write_buffer_size() < 65_536 or client.closed.is_set())
        client.transport.resume_reading()
        await clock.until(client.closed.is_set, step=0.1)
    return client.told


def test_answers_that_are_not_read_do_not_pile_up(serve_models: Callable[..., Any]) -> None:
    """One connection sent requests and read nothing: each waited in memory, as many as were sent."""

    async def go() -> bytes:
        async with serve_models(m=Scripted("x", repeat=True)) as running:
            return await _answered(running.url, LIVEZ, LIVEZ * 1000, 4_000_000)

    told = asyncio.run(go())
    assert told.count(b"HTTP/1.1 200") <= 4 * WAITING  # of 100,000
    assert b"HTTP/1.1 429" in told
    assert f"more than {WAITING} requests".encode() in told  # and not the bytes, which take thousands of them


def test_requests_in_a_row_are_answered_in_their_order(serve_models: Callable[..., Any]) -> None:
    async def go() -> bytes:
        async with serve_models(m=Scripted("x", repeat=True)) as running:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
            writer.write(LIVEZ * (WAITING // 2) + CLOSE)
            told = await reader.read()
            writer.close()
            return told

    told = asyncio.run(go())
    assert told.count(b"HTTP/1.1 200") == WAITING // 2 + 1


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (b"0\r\n", b"x-a: " + b"b" * 100 + b"\r\n"),
        (b"0\r\nx-a: ", b"b" * 1000),
        (b"5;a=", b"b" * 1000),
        (b"", b"000000"),
        (b"", b"1\r\na\r\n" * 100),
        (b"", b"1;" + b"b" * 1000 + b"\r\na\r\n"),
    ],
    ids=["trailers", "one trailer", "an extension", "the size of a chunk", "chunks of one byte", "many extensions"],
)
def test_what_stands_beside_a_body_is_bounded(serve_models: Callable[..., Any], first: bytes, more: bytes) -> None:
    async def go() -> bytes:
        async with serve_models(m=Scripted("x", repeat=True)) as running:
            return await _answered(running.url, CHUNKED + first, more, 1_000_000)

    told = asyncio.run(go())
    assert re.search(rb"HTTP/1.1 4(31|00) ", told), told


def test_chunks_of_a_usual_size_may_be_many(serve_models: Callable[..., Any]) -> None:
    """The limit is for what is around a body, in proportion to it."""

    async def go() -> bytes:
        async with serve_models(m=Scripted("x", repeat=True)) as running:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
            writer.write(CHUNKED + b"10\r\n" + b"a" * 16 + b"\r\n")
            for _ in range(100):
                writer.write((b"10\r\n" + b"a" * 16 + b"\r\n") * 100)
                await writer.drain()
            writer.write(b"0\r\nx-a: b\r\n\r\n" + CLOSE)
            told = await reader.read()
            writer.close()
            return told

    told = asyncio.run(go())
    assert re.findall(rb"HTTP/1.1 (\d+)", told) == [b"405", b"200"]


@pytest.mark.parametrize(
    ("first", "more"),
    [(LIVEZ[:-2], b"a:b\r\n"), (CHUNKED + b"0\r\n", b"a:b\r\n")],
    ids=["of a request", "of its trailers"],
)
def test_small_headers_are_counted(serve_models: Callable[..., Any], first: bytes, more: bytes) -> None:
    """A header of five bytes takes a hundred and fifty: 32 KB of them took a megabyte."""

    async def go(count: int) -> bytes:
        async with serve_models(m=Scripted("x", repeat=True)) as running:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
            writer.write(first + more * count + b"\r\n" + CLOSE)
            told = await reader.read()
            writer.close()
            return told

    assert b"HTTP/1.1 431" not in asyncio.run(go(HEADERS - 10))
    assert b"HTTP/1.1 431" in asyncio.run(go(HEADERS + 1))


def test_bodies_that_wait_on_a_connection_do_not_pile_up(serve_models: Callable[..., Any]) -> None:
    """Sixty requests in a row, each with a body of 60 KB: one connection took four megabytes."""
    post = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 60000\r\n\r\n" + b" " * 60_000

    async def go() -> bytes:
        async with serve_models(m=Scripted("x", repeat=True)) as running:
            return await _answered(running.url, LIVEZ * 2, post, 4_000_000)

    told = asyncio.run(go())
    assert b"HTTP/1.1 429" in told
    assert f"{WAITING_BYTES:,} bytes".encode() in told


def test_a_request_for_another_protocol_writes_no_line_of_its_own(
    serve_models: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> bytes:
        async with serve_models(m=Scripted("x", repeat=True)) as running:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
            writer.write(LIVEZ[:-2] + b"connection: close, upgrade\r\nupgrade: websocket\r\n\r\n")
            told = await reader.read()
            writer.close()
            return told

    assert asyncio.run(go()).startswith(b"HTTP/1.1 200")
    assert not [record for record in caplog.records if "upgrade" in record.message.lower()]


@pytest.mark.parametrize("drips", [True, False], ids=["a little each second", "nothing more"])
def test_a_body_that_nobody_reads_arrives_in_time_or_not_at_all(serve_models: Callable[..., Any], drips: bool) -> None:
    async def go() -> None:
        async with serve_models(
            m=Scripted("x", repeat=True), settings={"limits": GatewayLimits(reading=100)}
        ) as running:
            with held_time() as clock:
                client = await connected(running.url)
                client.transport.write(CHUNKED)
                await clock.until(lambda: client.answered)
                assert client.told.startswith(b"HTTP/1.1 405")
                assert not client.closed.is_set()
                began = clock.now
                while clock.now - began < 300 and not client.closed.is_set():
                    if drips:
                        client.transport.write(b"5\r\naaaaa\r\n")
                    later = clock.now + 1
                    await clock.until(lambda later=later: clock.now >= later or client.closed.is_set(), step=0.1)
                assert client.closed.is_set()

    asyncio.run(go())
