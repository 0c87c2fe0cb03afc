"""A server on loopback that speaks raw bytes, so that it can go wrong in every way there is."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from replies import delta

Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def call(index: int, arguments: str, name: str | None = None, id: str | None = None) -> dict[str, Any]:  # noqa: A002
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return delta(tool_calls=[{"index": index, "function": function, **({"id": id} if id else {})}])


def whole(status: str, body: bytes, **headers: str) -> bytes:
    head = {"Content-Length": str(len(body)), "Content-Type": "application/json", "Connection": "close"}
    head |= {name.replace("_", "-"): value for name, value in headers.items()}
    return (
        f"HTTP/1.1 {status}\r\n".encode() + b"".join(f"{k}: {v}\r\n".encode() for k, v in head.items()) + b"\r\n" + body
    )


def reset(writer: asyncio.StreamWriter) -> None:
    """Tears the connection: the peer sees a reset, not an end."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def sends(*pieces: bytes, pause: float = 0.0, end: str = "close") -> Behaviour:
    """Sends the pieces; then it closes, resets, ends its half, or stays silent."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        if end == "reset":
            await asyncio.sleep(0.05)  # what was sent arrives first
            reset(writer)
        elif end == "half":
            writer.write_eof()
            await asyncio.sleep(30)
        elif end == "silence":
            await asyncio.sleep(30)

    return behave


class Faulty:
    """`url` without /v1; `requests` are the bodies that came, `left` is set when a client goes in the middle."""

    def __init__(self, behaviours: tuple[Behaviour, ...]) -> None:
        self.behaviours = behaviours
        self.requests: list[Any] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                (int(row.split(":")[1]) for row in head.splitlines() if row.lower().startswith("content-length")), 0
            )
            body = await reader.readexactly(length)
            if head.startswith("GET /props "):  # asked of every server that is prompted: this is no llama.cpp
                writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                return
            self.requests.append(json.loads(body) if body else None)
            await self.behaviours[min(len(self.requests), len(self.behaviours)) - 1](writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


@asynccontextmanager
async def faulty(*behaviours: Behaviour) -> AsyncIterator[Faulty]:
    made = Faulty(behaviours)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(made.serve(reader, writer))
        tasks.add(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
