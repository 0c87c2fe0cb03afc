"""One request and its answer on the wire: what was sent, keeping the line alive, noticing that the client left."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from ..schema.infer import as_tools
from ..types import Tool

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

STREAM: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class Exchange:
    """Sends one answer. `headers` go out with whatever status is sent; `gone` is set when the client has left.

    `visible` tells which models the client may know of and use: all, unless its key says otherwise. `tools` makes Tools
    of what a body offers, within bounds. `tokens` are those that the answer cost. `owner` is the name of the client's key, "" without
    one: what is kept for one is nobody else's.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self._send = send
        self.headers: Headers = []
        self.visible: Callable[[str], bool] = lambda _: True
        self.owner = ""
        self.tools: Callable[[Any], tuple[Tool[..., Any], ...] | None] = as_tools
        self.tokens = 0
        self.status = 0
        self.gone = False
        self.over = False
        self.sent = 0
        self._last = 0.0

    @property
    def started(self) -> bool:
        """Whether the status has been sent: after that an error can only be told in the stream."""
        return self.status != 0

    def header(self, name: bytes) -> str:
        """The value of a header of the request by its name in lower case, "" without one; of several the first."""
        return next((value.decode("latin-1") for key, value in self.scope["headers"] if key == name), "")

    def tell_ignored(self, names: Sequence[str]) -> None:
        """Names, in a header, the fields of the body that say nothing here."""
        if names:
            self.headers.append((b"x-toolspeak-ignored", _shown(names)))

    async def reply(self, status: int, body: bytes, content_type: bytes = b"application/json") -> None:
        """A whole answer."""
        self.status = status
        head = [(b"content-type", content_type), (b"content-length", str(len(body)).encode()), *self.headers]
        await self._send({"type": "http.response.start", "status": status, "headers": head})
        self.over = True
        self.sent += len(body)
        await self._send({"type": "http.response.body", "body": b"" if self.scope["method"] == "HEAD" else body})

    async def reply_json(self, status: int, value: Any) -> None:
        await self.reply(status, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())

    async def write(self, data: bytes) -> None:
        """More of a stream of events; the status goes out before the first of it. Waits for a reader who is slow."""
        if not self.status:
            self.status = 200
            await self._send({"type": "http.response.start", "status": 200, "headers": [*STREAM, *self.headers]})
        self.sent += len(data)
        self._last = asyncio.get_running_loop().time()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """Ends a stream."""
        self.over = True
        await self._send({"type": "http.response.body", "body": b""})

    @asynccontextmanager
    async def attended(self, first: float, pause: float, alive: Callable[[], bytes] | None) -> AsyncGenerator[None]:
        """Cancels the current task when the client leaves; of a stream, sends what `alive` gives after `first` seconds
        without a status and `pause` seconds without an event."""
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        watcher = asyncio.create_task(self._watch(task, first, pause, alive))
        try:
            yield
        finally:
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher

    async def _watch(
        self, task: asyncio.Task[Any], first: float, pause: float, alive: Callable[[], bytes] | None
    ) -> None:
        clock = asyncio.get_running_loop().time
        due = clock() + first if alive else None
        while True:
            try:
                async with asyncio.timeout_at(due):
                    message = await self.receive()
            except TimeoutError:
                if alive and not self.over and (not self.started or clock() - self._last >= pause):
                    await self.write(alive())
                due = self._last + pause
                continue
            if message["type"] == "http.disconnect":
                if not self.over:
                    self.gone = True
                    task.cancel()
                return


def _shown(names: Sequence[str]) -> bytes:
    """Names of fields as a header may hold them: what a client wrote is shown, and nothing that it could break out with."""
    shown = [re.sub(r"[^\w.-]", "?", name[:64], flags=re.ASCII) for name in names[:20]]
    return ", ".join([*shown, *(["..."] if len(names) > 20 else [])]).encode("ascii", "replace")
