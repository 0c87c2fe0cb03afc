"""A client that speaks raw bytes. What the server says is kept as it comes, also where it tears the connection afterwards."""

from __future__ import annotations

import asyncio


class RawClient(asyncio.Protocol):
    """One connection. `told` is all that came; `closed` is set when it is over."""

    def __init__(self) -> None:
        self.told = b""
        self.came = asyncio.Event()
        self.closed = asyncio.Event()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.told += data
        self.came.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.came.set()
        self.closed.set()

    @property
    def answered(self) -> bool:
        """Whether a whole answer has come, or nothing will any more."""
        head, _, rest = self.told.partition(b"\r\n\r\n")
        lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
        return self.closed.is_set() or bool(lengths and len(rest) >= int(lengths[0]))

    async def answer(self) -> bytes:
        """What was told, once it is whole."""
        while not self.answered:
            self.came.clear()
            await self.came.wait()
        return self.told


async def connected(url: str) -> RawClient:
    """A connection to a server at such an address."""
    host, _, port = url.rpartition("/")[2].partition(":")
    return (await asyncio.get_running_loop().create_connection(RawClient, host, int(port)))[1]
