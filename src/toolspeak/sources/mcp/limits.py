"""The limits of one request to an MCP server, and of what a server sends unasked.

The SDK reads a line over standard output of any length, and an event stream over HTTP of any length, even after the
caller has given up. Here a line and a response have at most `LARGEST` bytes, and a finished request releases its
connection. `Request` holds the limits of one request. It is found by `current`, because the SDK works for a request in
the context of the caller.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from ...schema.value_count import ValueCounter

LARGEST = 16 * 1024 * 1024
"""The most bytes of one line over standard output, and of all responses over HTTP to one request."""
VALUES, BLOCKS = 100_000, 5_000
"""The most values of JSON in one line over standard output, and in all responses over HTTP for one page of an answer; and the most
content blocks of a result. The interpreter does nothing else while the SDK parses them, which takes up to half a
microsecond a value and 10 a block."""
FLOOD = 16 * LARGEST
"""The most bytes per minute that a process may write, or that a server over HTTP may send unasked: all servers share one
thread."""
UNANSWERED = 1_000
"""The most unanswered requests of a server: a server that never reads answers would fill the memory."""
TRIES = 100
"""The most HTTP requests for one request: a broken stream is resumed if its server supports that."""
PARTING = 1.0
"""Seconds for telling the server that a request was cancelled."""
STREAMS = 100
"""The most streams of notifications per minute: one that ends is opened again as soon as its server wishes."""

current: contextvars.ContextVar[BoundedRequest | None] = contextvars.ContextVar("current", default=None)


class PerMinute:
    """Counts what a server does in a minute, up to `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._count = 0
        self._since = 0.0

    def exceeded(self, amount: int = 1) -> bool:
        """Count `amount`, and return whether it is too much."""
        now = asyncio.get_running_loop().time()
        if now - self._since > 60:
            self._since, self._count = now, 0
        self._count += amount
        return self._count > self.most


def flood() -> PerMinute:
    """Return the limit of the bytes that a server may write unasked."""
    return PerMinute(FLOOD)


class BoundedRequest:
    """One request to a server, from `with` on: whether it was sent, and its remaining limits.

    `sent`: the server may have acted on it. `forgotten`: it answered that it has no such session, so it did not act.
    `problem`: why its answer was aborted, "" if it was not. `unasked` counts what no call waits for.
    """

    def __init__(self, unasked: PerMinute | None = None) -> None:
        self.sent = self.forgotten = False
        self.problem = ""
        self._received = self._tries = 0
        self._values = ValueCounter()
        self._unasked = unasked
        self._deadline: float | None = None
        self._limits: set[asyncio.Timeout] = set()

    def __enter__(self) -> BoundedRequest:
        self._token = current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        current.reset(self._token)
        self._deadline = asyncio.get_running_loop().time() + PARTING
        for limit in self._limits:
            limit.reschedule(self._deadline)

    @asynccontextmanager
    async def limited(self) -> AsyncGenerator[None]:
        """Run the block until shortly after the request ends; then raise TimeoutError in it."""
        async with asyncio.timeout_at(self._deadline) as limit:
            self._limits.add(limit)
            try:
                yield
            finally:
                self._limits.discard(limit)

    def tried(self) -> None:
        self._tries += 1
        if self._tries > TRIES:
            raise self.broken(f"the answer broke off more than {TRIES} times")

    def answered(self) -> None:
        """Begin to count the tries and the values of the next page of the answer."""
        self._tries = 0
        self._values = ValueCounter()

    def received(self, part: bytes) -> None:
        size = len(part)
        self._received += size
        self._values.add(part)
        if self._values.count > VALUES:
            raise self.broken(f"the answer has more than {VALUES:,} values")
        if self._received > LARGEST:
            raise self.broken(f"the answer has more than {LARGEST:,} bytes")
        if self._unasked and self._unasked.exceeded(size):
            raise self.broken(f"it wrote more than {self._unasked.most:,} bytes in a minute that nobody asked for")

    def broken(self, why: str) -> Exception:
        """Return an error that ends one response, so that the SDK passes it to this request and continues with others."""
        import httpx2

        self.problem = self.problem or why
        return httpx2.StreamError(why)


class Unasked:
    """What a server over HTTP sends that no call waits for, such as notifications, within limits."""

    def __init__(self) -> None:
        self._streams, self._written = PerMinute(STREAMS), flood()

    def request(self, method: str) -> BoundedRequest:
        """Return the limits of one response. Raises an error of the transport if the server ends its streams all the
        time, so that the SDK opens no other."""
        request = BoundedRequest(self._written)
        if method == "GET" and self._streams.exceeded():
            raise request.broken(f"it ended more than {STREAMS} streams in a minute")
        return request
