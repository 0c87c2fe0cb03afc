"""What one connection may make the gateway hold, before anybody has said who they are."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from raw_client import connected

from clock import held_time
from toolspeak.gateway.config.settings import Limits
from toolspeak.gateway.serve.http_protocol import WAITING
from toolspeak.models.scripted import Scripted

LIVEZ = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
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


def test_requests_in_a_row_are_answered_in_their_order(serve_models: Callable[..., Any]) -> None:
    async def go() -> bytes:
        async with serve_models(m=Scripted("x", repeat=True)) as running:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
            writer.write(
                LIVEZ * (WAITING // 2) + b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
            )
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
    ],
    ids=["trailers", "one trailer", "an extension", "the size of a chunk"],
)
def test_what_stands_beside_a_body_is_bounded(serve_models: Callable[..., Any], first: bytes, more: bytes) -> None:
    async def go() -> bytes:
        async with serve_models(m=Scripted("x", repeat=True)) as running:
            return await _answered(running.url, CHUNKED + first, more, 1_000_000)

    told = asyncio.run(go())
    assert re.search(rb"HTTP/1.1 4(31|00) ", told), told


def test_a_body_that_nobody_reads_arrives_in_time_or_not_at_all(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=Scripted("x", repeat=True), settings={"limits": Limits(reading=100)}) as running:
            with held_time() as clock:
                client = await connected(running.url)
                client.transport.write(CHUNKED + b"5\r\n")
                await clock.until(lambda: client.answered)
                assert client.told.startswith(b"HTTP/1.1 405")
                assert not client.closed.is_set()
                began = clock.now
                await clock.until(client.closed.is_set, step=1.0)
                assert clock.now - began < 300

    asyncio.run(go())
