"""One request and its answer on the wire: what was sent, keeping the line alive, noticing that the client left.

Who may end a request before its time calls `stop`: the watcher when the client leaves, the process when its time
to drain is over. `ended` then tells why, which a cancellation by itself cannot.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable, Awaitable, Callable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..api.json_stream import dumped
from ..api.sse import CONTENT_TYPE
from ..models.offload import LARGE
from ..schema.infer import as_tools
from ..types import Tool
from .body import Gone
from .call_policy import CallPolicy
from .telemetry.request_record import Record

if TYPE_CHECKING:
    from .config.settings import Key

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

STREAM: Headers = [
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class RequestContext:
    """Sends one answer. `headers` go out with whatever status is sent; `ended` is why it was stopped, if it was.

    Belongs to the task that makes it. `visible` tells which models the client may know of and use: all, unless its
    key says otherwise. `tools` makes Tools of what a body offers, within bounds. `owner` is the name of the client's
    key, "" without one: what is kept for one is nobody else's. `key` is that key. `background` is for a line of a batch, which makes room
    for requests. `policy` says which calls the client gets.
    """

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, record: Record | None = None, span: Any = None
    ) -> None:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self.scope = scope
        self.receive = receive
        self.record = record or Record()
        name = self.record.id.encode()
        self.headers: Headers = [(b"x-request-id", name), (b"request-id", name)]  # the SDKs differ in where they look
        self.visible: Callable[[str], bool] = lambda _: True
        self.owner = ""
        self.key: Key | None = None
        self.policy: CallPolicy | None = None
        self.background = False
        self.tools: Callable[[Any], tuple[Tool[..., Any], ...] | None] = as_tools
        self.span = span
        self.writer: Any = None
        """What writes the stream, once there is one: its errors are told in its form."""
        self.received = 0
        self.status = 0
        self.over = False
        self.ended: Exception | None = None
        self._send = send
        self._task = task
        self._loop = task.get_loop()
        self._writing = False
        self._last = 0.0
        self._alive: Callable[[], bytes] | None = None
        self._pause = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._sign: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None

    @property
    def started(self) -> bool:
        """Whether the status has been sent: after that an error can only be told in the stream."""
        return self.status != 0

    @property
    def tokens(self) -> int:
        """What the answer has cost so far. Where nobody told, because the upstream does not or the client left before,
        four bytes are a token."""
        told = self.record.tokens_in + self.record.tokens_out
        asked = self.record.model and (self.gone or self.status == 200)
        return told or ((self.received + self.record.bytes) // 4 if asked else 0)

    @property
    def gone(self) -> bool:
        """Whether the client has left."""
        return isinstance(self.ended, Gone)

    def stop(self, why: Exception) -> None:
        """Ends the request wherever it is, unless its answer is on its way. The first reason counts."""
        if self.over or self.ended:
            return
        self.ended = why
        self._task.cancel()

    def header(self, name: bytes) -> str:
        """The value of a header of the request by its name in lower case, "" without one; of several the first."""
        return next((value.decode("latin-1") for key, value in self.scope["headers"] if key == name), "")

    async def understand(self, read: Callable[[Any, Any], T], body: Any, *, beside: int = 0) -> T:
        """What `read` makes of a body and of `tools`. A large one is read in a thread: its tools, where they are new,
        take long to make. `beside`: bytes of what the body refers to, and holds by now."""
        if self.received + beside < LARGE:
            return read(body, self.tools)
        return await asyncio.to_thread(read, body, self.tools)

    def tell_ignored(self, names: Sequence[str]) -> None:
        """Names, in a header, the fields of the body that say nothing here."""
        if names:
            self.headers.append((b"x-toolspeak-ignored", _shown(names)))

    async def reply(self, status: int, body: bytes, content_type: bytes = b"application/json") -> None:
        """A whole answer."""
        self._begin(status)
        self.over = True
        head = [(b"content-type", content_type), (b"content-length", b"%d" % len(body)), *self.headers]
        if self.scope["method"] == "HEAD":
            body = b""
        try:
            await self._send({"type": "http.response.start", "status": status, "headers": head})
            await self._send({"type": "http.response.body", "body": body})
        except OSError:
            raise Gone from None
        self.record.bytes += len(body)

    async def reply_content(self, size: int, chunks: AsyncIterable[bytes], content_type: bytes) -> None:
        """An answer of so many bytes, sent as they come."""
        self._begin(200)
        self.over = True
        head = [(b"content-type", content_type), (b"content-length", b"%d" % size), *self.headers]
        try:
            await self._send({"type": "http.response.start", "status": 200, "headers": head})
            if self.scope["method"] != "HEAD":
                async for chunk in chunks:
                    await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
                    self.record.bytes += len(chunk)
            await self._send({"type": "http.response.body", "body": b""})
        except OSError:
            raise Gone from None

    async def reply_json(self, status: int, value: Any) -> None:
        await self.reply(status, dumped(value).encode())

    async def write(self, data: bytes, *, sign: bool = False) -> None:
        """More of a stream of events; the status goes out before the first of it. Waits for a reader who is slow."""
        if not sign:
            await self._signed()
        self._writing = True
        try:
            if not self.status:
                self._begin(200)
                kind = self.writer.content_type if self.writer else CONTENT_TYPE
                head = [(b"content-type", kind), *STREAM, *self.headers]
                await self._send({"type": "http.response.start", "status": 200, "headers": head})
            await self._send({"type": "http.response.body", "body": data, "more_body": True})
        except OSError:
            raise Gone from None
        finally:
            self._writing = False
        self.record.bytes += len(data)
        self._last = self._loop.time()

    async def end(self) -> None:
        """Ends a stream."""
        await self._signed()
        self.over = True
        try:
            await self._send({"type": "http.response.body", "body": b""})
        except OSError:
            raise Gone from None

    def keep_alive(self, alive: Callable[[], bytes], first: float, pause: float) -> None:
        """From now on sends what `alive` gives after `first` seconds without a status, later after `pause` seconds
        without an event. Holds until the answer is over."""
        self._alive = alive
        self._pause = pause
        self._timer = self._loop.call_later(first, self._quiet)

    def attend(self) -> None:
        """From now on stops the request when the client leaves, until `close`. The body must have been read."""
        self._watcher = self._loop.create_task(self._watch())

    def close(self) -> None:
        """The request is over: lets go of whatever still waits for the client."""
        for waiting in (self._watcher, self._timer, self._sign):
            if waiting:
                waiting.cancel()
        # What holds the request must not be held by it: a task that was cancelled holds where it was.
        self._watcher = self._timer = self._sign = self._alive = None

    def _begin(self, status: int) -> None:
        if self.status:
            raise RuntimeError(f"an answer has begun with {self.status}, and another was to be sent with {status}")
        self.status = self.record.status = status
        if self.record.shown:
            self.headers.append((b"x-toolspeak-tools", self.record.shown.encode()))

    async def _watch(self) -> None:
        try:
            while (await self.receive())["type"] != "http.disconnect":
                pass
        except Exception as error:  # noqa: BLE001 - told where the request is: nobody waits for this task
            self.stop(error)
        else:
            self.stop(Gone())

    def _quiet(self) -> None:
        """Sends a sign of life if it is time, and comes again."""
        if self.over or self.ended:
            return
        now = self._loop.time()
        due = self._last + self._pause
        # Whoever has the turn waits for a slow reader, who has enough to read.
        if (not self.status or now >= due) and not self._writing:
            self._sign = self._loop.create_task(self._write_sign())
            due = now + self._pause
        self._timer = self._loop.call_at(max(due, now + 0.05), self._quiet)

    async def _signed(self) -> None:
        """Waits for a sign of life that waits for a slow reader: what comes after it is sent after it."""
        if self._sign and not self._sign.done():
            await asyncio.wait([self._sign])

    async def _write_sign(self) -> None:
        try:
            if self._alive and not (self.over or self.ended or self._writing):
                await self.write(self._alive(), sign=True)
        except Exception as error:  # noqa: BLE001 - as in _watch
            self.stop(error)


def _shown(names: Sequence[str]) -> bytes:
    """Names of fields as a header may hold them: what a client wrote is shown, and nothing that it could break out
    with."""
    shown = [re.sub(r"[^\w.-]", "?", name[:64], flags=re.ASCII) for name in names[:20]]
    return ", ".join([*shown, *(["..."] if len(names) > 20 else [])]).encode("ascii", "replace")
