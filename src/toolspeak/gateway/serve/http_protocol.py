"""Limits what a client may send before and around a body: the size and time of a request's head, sizes and extensions of
chunks, trailers, and pipelined requests.

uvicorn's protocol over httptools accepts heads of any size and waits for them forever. It also accepts trailers and
chunk extensions of any size, and reads on while it answers: pipelined requests whose responses are not read would pile
up, each with its body.

Small parts are dear: each header and each chunk costs about as much as a thousand bytes of a body. So headers are
counted, and chunks of fewer than five bytes on average count as data around the body. What arrives at once is parsed in
pieces, with the limits checked between them.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..config.settings import GatewayLimits

REASONS = {400: "Bad Request", 408: "Request Timeout", 429: "Too Many Requests", 431: "Request Header Fields Too Large"}
WAITING = 64
"""Pipelined requests that may wait on one connection."""
WAITING_BYTES = 65_536
"""Bytes of heads and bodies that they may have together."""
HEADERS = 256
"""Headers of a request, its trailers included."""
PIECE = 16_384
"""Bytes that are parsed in one step."""
UPLOADS = b"/v1/files"
LINGER = 1.0
"""Seconds for which further input is discarded before closing. Closing at once could lose the response."""


class Refusal(Exception):
    """Ends the reading of a connection."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Errors before a request is complete are answered here, in JSON, and the connection is closed."""

    limits = GatewayLimits()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head = 0
        self._in_head = True
        self._over = False
        self._beside = 0  # bytes around the body, less those of the body
        self._waiting_bytes = 0  # of the requests in the pipeline
        self._late: asyncio.TimerHandle | None = None
        self._body_late: asyncio.TimerHandle | None = None
        self._refusal = (400, "the request is not valid HTTP")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._came()
        self._body_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for at in range(0, len(data), PIECE):
            if self._over or self.transport.is_closing():
                return
            self._parse(data[at : at + PIECE])

    def _parse(self, data: bytes) -> None:
        self._beside += len(data)  # lowered by body data in this piece, if there is any
        super().data_received(data)
        if self._in_head:
            self._head += len(data)
            if self._head > self.limits.head:
                self._too_large()
                self.send_400_response("")
        elif self._body_late is not None and self._beside > self.limits.head:
            self._too_large("the request around its body (sizes and extensions of chunks, trailers)")
            self.send_400_response("")
        if self._late is None and self._idle and not self._over and not self.transport.is_closing():
            self._wait()  # blank lines between requests stop uvicorn's keep-alive timer

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        self._in_head = True
        self._wait()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > HEADERS:
            self._refusal = (431, f"the request has more than {HEADERS} headers")
            raise Refusal

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._came()
        head = len(self.url)
        for name, value in self.headers:
            head += len(name) + len(value) + 4
        if head > self.limits.head:
            self._too_large()
            raise Refusal
        if len(self.pipeline) >= WAITING:
            self._refusal = (429, f"more than {WAITING} requests were sent on one connection before they were answered")
            raise Refusal
        self._beside = 0
        self._body_came()
        slow = self.url.partition(b"?")[0] == UPLOADS  # a file is large: its endpoint has its own time limit
        seconds = self.limits.deadline if slow else self.limits.reading
        self._body_late = self.loop.call_later(seconds + LINGER, self._end)
        super().on_headers_complete()
        self._wait_in_line(head)

    def on_body(self, body: bytes) -> None:
        self._beside = max(0, self._beside - 2 * len(body))
        super().on_body(body)
        self._wait_in_line(len(body))

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline:
            self._waiting_bytes = 0

    def on_message_complete(self) -> None:
        self._body_came()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that never reached the application with an error, and close."""
        if self._over or self.transport.is_closing():
            return
        status, message = self._refusal
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        body = json.dumps({"error": error}).encode()
        head = (
            f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self._over = True
        self._came()
        self._body_came()
        self.loop.call_later(LINGER, self._end)

    def _unsupported_upgrade_warning(self) -> None:
        """Do not log it: the request is answered as one without an upgrade, and it costs its sender nothing."""

    def _wait_in_line(self, size: int) -> None:
        """Count bytes of a request that waits for others on its connection. Raises Refusal if they are too many."""
        if not self.pipeline:
            return
        self._waiting_bytes += size
        if self._waiting_bytes > WAITING_BYTES:
            self._refusal = (429, f"requests that wait on one connection have more than {WAITING_BYTES:,} bytes")
            raise Refusal

    @property
    def _idle(self) -> bool:
        """Whether no request is being answered."""
        cycle: Any = self.cycle
        return cycle is None or cycle.response_complete

    def _too_large(self, what: str = "the head of the request") -> None:
        self._refusal = (431, f"{what} is larger than {self.limits.head:,} bytes")

    def _end(self) -> None:
        """Close the connection. A client that does not even read the error is not waited for."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _body_came(self) -> None:
        if self._body_late is not None:
            self._body_late.cancel()
            self._body_late = None

    def _wait(self) -> None:
        self._came()
        self._late = self.loop.call_later(self.limits.reading, self._give_up)

    def _came(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        if not self._idle:
            self._wait()
            return
        self._late = None
        self._refusal = (408, f"the head of the request did not arrive within {self.limits.reading:g} s")
        self.send_400_response("")


def http_protocol(limits: GatewayLimits) -> type[asyncio.Protocol]:
    """The protocol for uvicorn's `http=`, with these limits."""
    return type("Protocol", (BoundedProtocol,), {"limits": limits})
