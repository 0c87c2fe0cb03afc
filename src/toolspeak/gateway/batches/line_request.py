"""A line of a batch as an ASGI request without a connection, and its response."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from ...batch.formats import parsed_in_steps
from ..http_exchange import Message, Scope


@dataclass(slots=True)
class LineResponse:
    """A whole response."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    body: bytes = b""

    @property
    def value(self) -> Any:
        """The body, parsed as JSON."""
        return parsed_in_steps(self.body.decode())

    @property
    def retry_after(self) -> float | None:
        """Seconds after which a retry may succeed; None if the response does not say."""
        header = self.headers.get(b"retry-after")
        return None if header is None else float(header)


class LineRequest:
    """A request as an ASGI scope with its two functions. `answer` is complete after the request was handled."""

    def __init__(self, path: str, body: bytes) -> None:
        length = b"%d" % len(body)
        self.scope: Scope = {
            "type": "http", "method": "POST", "path": path, "query_string": b"",
            "headers": [(b"content-type", b"application/json"), (b"content-length", length)],
        }  # fmt: skip
        self.answer = LineResponse()
        self._body: bytes | None = body

    async def receive(self) -> Message:
        """Return the body, then wait forever: this client never disconnects."""
        if self._body is None:
            await asyncio.get_running_loop().create_future()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Collect the response."""
        if message["type"] == "http.response.start":
            self.answer.status, self.answer.headers = message["status"], dict(message["headers"])
        else:
            self.answer.body += message.get("body", b"")
