"""A line of a batch as a request: what the gateway is asked, without a connection, and what it answers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from ..context import Message, Scope


@dataclass(slots=True)
class Answer:
    """A whole answer."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    body: bytes = b""

    @property
    def value(self) -> Any:
        """The JSON of its body."""
        return json.loads(self.body)

    @property
    def retry_after(self) -> float | None:
        """Seconds after which coming back may help, where it says so."""
        told = self.headers.get(b"retry-after")
        return None if told is None else float(told)


class LineRequest:
    """One request: an ASGI scope, and the two functions that go with it. `answer` is whole when it was answered."""

    def __init__(self, path: str, body: bytes) -> None:
        length = b"%d" % len(body)
        self.scope: Scope = {
            "type": "http", "method": "POST", "path": path, "query_string": b"",
            "headers": [(b"content-type", b"application/json"), (b"content-length", length)],
        }  # fmt: skip
        self.answer = Answer()
        self._body: bytes | None = body

    async def receive(self) -> Message:
        """The body, then nothing: who asks does not leave."""
        if self._body is None:
            await asyncio.get_running_loop().create_future()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Takes what the gateway answers."""
        if message["type"] == "http.response.start":
            self.answer.status, self.answer.headers = message["status"], dict(message["headers"])
        else:
            self.answer.body += message.get("body", b"")
