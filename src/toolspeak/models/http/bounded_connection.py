"""Limits the heads and the responses to no request that a server may send over a connection. aiohttp limits only bodies.

aiohttp parses all that arrives at once, up to 256 KB, and queues each response that it has read, also informational
ones (1xx) and those that nobody waits for. Of the shortest ones 256 KB take half a second and 20 MB, and a server may
send more at any time.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

PIECE = 16_384
"""Bytes that are parsed in one step."""
RESPONSES = 100
"""Responses that may wait on one connection."""


class BoundedConnection(ResponseHandler):
    """A connection to a server. It fails if the server sends more responses than are read."""

    def data_received(self, data: bytes) -> None:
        for at in range(0, len(data) or 1, PIECE):  # without data it continues with what it has
            super().data_received(data[at : at + PIECE])
            if len(self) > RESPONSES:
                self.set_exception(aiohttp.ClientPayloadError(f"more than {RESPONSES} responses to one request"))
                if self.transport is not None:
                    self.transport.close()
                return

    def resume_reading(self, *args: Any, **options: Any) -> None:
        """Continue a paused connection. aiohttp (3.14) calls this after each chunk of a body, and parses again even if it
        was not paused, when nothing is left to parse. Earlier versions have no parameters."""
        if self._reading_paused:
            super().resume_reading(*args, **options)


def bounded(connector: aiohttp.TCPConnector) -> aiohttp.TCPConnector:
    """Return the connector, whose connections are now bounded. aiohttp has no option for it."""
    connector._factory = partial(BoundedConnection, loop=asyncio.get_running_loop())  # type: ignore[assignment]
    return connector
