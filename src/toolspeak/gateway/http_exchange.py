"""One HTTP request and its response: sends data, keeps the connection alive, and notices that the client left.

A request may end early: the watcher calls `stop` when the client leaves, the process when its time to drain is over.
`ended` then holds the reason, which a cancellation alone cannot carry.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..api.json_stream import dumped
from ..api.sse_parser import CONTENT_TYPE
from ..models.offload import offloaded
from ..schema.infer import as_tools
from ..schema.suggestions import misspelled
from ..types import Schema, Tool
from .body import Gone
from .call_policy import CallPolicy
from .telemetry.request_record import RequestRecord

if TYPE_CHECKING:
    from .config.settings import Key

T = TypeVar("T")
UNPRINTABLE, UNNAMED = re.compile(r"[^ -~]"), re.compile(r"[^\w.-]", re.ASCII)
"""Characters that a header, and a name in one, cannot have."""
NAMED = 20
"""How many fields without effect a response names."""
PIECE = 262_144
"""The most bytes that are sent in one step."""
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

STREAM: Headers = [
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


def _json(value: Any, size: int) -> bytes:
    return dumped(value, size).encode()


class HttpExchange:
    """Sends one response. `headers` are sent with any status; `ended` is why the request was stopped, if it was.

    It belongs to the task that creates it. `visible` says which models the client may see and use: all, unless its key
    says otherwise. `tools` makes Tools of what a body offers, within limits. `owner` is the name of the client's key,
    "" without one; stored data belongs to an owner. `key` is that key, and `policy` decides which calls the client
    gets. `body_schema` is that of the request's body. `background` marks a line of a batch, which yields to requests.
    `received` are the bytes of the body, and `stored` those of stored data that were read for the request.
    """

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, record: RequestRecord | None = None, span: Any = None
    ) -> None:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self.scope = scope
        self.receive = receive
        self.record = record or RequestRecord()
        name = self.record.id.encode()
        self.headers: Headers = [(b"x-request-id", name), (b"request-id", name)]  # some SDKs read one, some the other
        self.visible: Callable[[str], bool] = lambda _: True
        self.owner = ""
        self.key: Key | None = None
        self.policy: CallPolicy | None = None
        self.background = False
        self.body_schema: Schema = {}
        self.tools: Callable[[Any], tuple[Tool[..., Any], ...] | None] = as_tools
        self.span = span
        self.writer: Any = None
        """The writer of the stream, once there is one. It also writes errors."""
        self.received = self.reading_cost = self.stored = 0
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
        self._sending_keep_alive: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None

    @property
    def started(self) -> bool:
        """Whether the status was sent. After that, an error can only be sent in the stream."""
        return self.status != 0

    @property
    def tokens(self) -> int:
        """The tokens that the response has used so far. If they are unknown, because the upstream does not report them
        or the client left, they are estimated at four bytes per token."""
        total = self.record.tokens_in + self.record.tokens_out
        ran = self.record.model and (self.gone or self.status == 200)
        return total or ((self.received + self.record.bytes) // 4 if ran else 0)

    @property
    def gone(self) -> bool:
        """Whether the client has left."""
        return isinstance(self.ended, Gone)

    def stop(self, why: Exception) -> None:
        """End the request now, unless its response is already being sent. The first reason counts."""
        if self.over or self.ended:
            return
        self.ended = why
        self._task.cancel()

    def header(self, name: bytes) -> str:
        """Return a header of the request by its lower-case name, "" if missing; of several the first."""
        return next((value.decode("latin-1") for key, value in self.scope["headers"] if key == name), "")

    async def understand(self, read: Callable[[Any, Any], T], body: Any, *, beside: int = 0) -> T:
        """Return what `read` makes of a body and `tools`. A large body, or one with costly patterns, is read in a thread,
        because new tools take long to make. `beside` is the number of bytes that the body refers to, such as an earlier
        conversation."""
        return await offloaded(self.reading_cost + beside, read, body, self.tools)

    def tell_ignored(self, names: Sequence[str]) -> None:
        """Name, in headers, the fields of the body that have no effect, and the fields that some of them misspell."""
        if not names:
            return
        self.headers.append((b"x-toolspeak-ignored", _header_text(names)))
        meant = {name: field for name in names[:NAMED] if (field := _meant(name, self.body_schema))}
        self._hint(meant)

    def tell_model(self, name: str, default: tuple[str, str] | None) -> None:
        """Name, in a header, the model that answers. `default`: the client's name for it, if only the default model
        answers to that, and the name that it probably misspells."""
        self.record.model = name  # not the client's name, which may be any text
        self.headers.append((b"x-toolspeak-model", _printable(name)))
        if default:
            self.record.default = True
            self._hint({default[0]: default[1]} if default[1] else {})

    def _hint(self, meant: Mapping[str, str]) -> None:
        """Name what misspelled names probably meant, in a header and the log."""
        self.record.meant += tuple(meant.values())
        if hints := [f"{_escaped(name)}: did you mean {field}?" for name, field in meant.items()]:
            self.headers.append((b"x-toolspeak-hint", _printable(" ".join(hints))))

    async def reply(self, status: int, body: bytes, content_type: bytes = b"application/json") -> None:
        """Send a whole response."""
        self._begin(status)
        self.over = True
        head = [(b"content-type", content_type), (b"content-length", b"%d" % len(body)), *self.headers]
        if self.scope["method"] == "HEAD":
            body = b""
        try:
            await self._send({"type": "http.response.start", "status": status, "headers": head})
            for at in range(0, max(1, len(body)), PIECE):
                more = at + PIECE < len(body)
                await self._send({"type": "http.response.body", "body": body[at : at + PIECE], "more_body": more})
        except OSError:
            raise Gone from None
        self.record.bytes += len(body)

    async def reply_content(self, size: int, chunks: AsyncIterable[bytes], content_type: bytes) -> None:
        """Send a response of `size` bytes in chunks."""
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

    async def reply_json(self, status: int, value: Any, size: int = 0) -> None:
        """Send a JSON value of about `size` characters."""
        await self.reply(status, await offloaded(size, _json, value, size))

    async def write(self, data: bytes, *, sign: bool = False) -> None:
        """Send data of an event stream, after the status. Waits for a slow reader."""
        if not sign:
            await self._keep_alive_sent()
        self._writing = True
        try:
            if not self.status:
                self._begin(200)
                kind = self.writer.content_type if self.writer else CONTENT_TYPE
                head = [(b"content-type", kind), *STREAM, *self.headers]
                await self._send({"type": "http.response.start", "status": 200, "headers": head})
            for at in range(0, len(data), PIECE):
                await self._send({"type": "http.response.body", "body": data[at : at + PIECE], "more_body": True})
        except OSError:
            raise Gone from None
        finally:
            self._writing = False
        self.record.bytes += len(data)
        self._last = self._loop.time()

    async def end(self) -> None:
        """End the stream."""
        await self._keep_alive_sent()
        self.over = True
        try:
            await self._send({"type": "http.response.body", "body": b""})
        except OSError:
            raise Gone from None

    def keep_alive(self, alive: Callable[[], bytes], first: float, pause: float) -> None:
        """Start sending keep-alives (`alive`): after `first` seconds without a status, and after `pause` seconds
        without an event. Lasts until the response is complete."""
        self._alive = alive
        self._pause = pause
        self._timer = self._loop.call_later(first, self._keep_alive_if_due)

    def attend(self) -> None:
        """Watch from now on whether the client leaves, until `close`. The body must have been read."""
        self._watcher = self._loop.create_task(self._watch())

    def close(self) -> None:
        """Release what still waits for the client, at the end of the request."""
        for waiting in (self._watcher, self._timer, self._sending_keep_alive):
            if waiting:
                waiting.cancel()
        # Break reference cycles: a cancelled task keeps its frames, and these keep the request.
        self._watcher = self._timer = self._sending_keep_alive = self._alive = None

    def _begin(self, status: int) -> None:
        if self.status:
            raise RuntimeError(f"a response has begun with status {self.status}, so one with {status} cannot be sent")
        self.status = self.record.status = status
        if self.record.visible_tools:
            self.headers.append((b"x-toolspeak-tools", self.record.visible_tools.encode()))

    async def _watch(self) -> None:
        try:
            while (await self.receive())["type"] != "http.disconnect":
                pass
        except Exception as error:  # noqa: BLE001 - passed to the request: nobody awaits this task
            self.stop(error)
        else:
            self.stop(Gone())

    def _keep_alive_if_due(self) -> None:
        """Send a keep-alive if it is due, and schedule the next check."""
        if self.over or self.ended:
            return
        now = self._loop.time()
        due = self._last + self._pause
        # A write in progress waits for a slow reader, who needs no keep-alive.
        if (not self.status or now >= due) and not self._writing:
            self._sending_keep_alive = self._loop.create_task(self._send_keep_alive())
            due = now + self._pause
        self._timer = self._loop.call_at(max(due, now + 0.05), self._keep_alive_if_due)

    async def _keep_alive_sent(self) -> None:
        """Wait for a keep-alive that is being sent: what follows must come after it."""
        if self._sending_keep_alive and not self._sending_keep_alive.done():
            await asyncio.wait([self._sending_keep_alive])

    async def _send_keep_alive(self) -> None:
        try:
            if self._alive and not (self.over or self.ended or self._writing):
                await self.write(self._alive(), sign=True)
        except Exception as error:  # noqa: BLE001 - as in _watch
            self.stop(error)


def _header_text(names: Sequence[str]) -> bytes:
    """Return field names as a header value: characters that a header cannot carry are escaped."""
    return ", ".join([*map(_escaped, names[:NAMED]), *(["..."] if len(names) > NAMED else [])]).encode("ascii")


def _printable(text: str) -> bytes:
    return UNPRINTABLE.sub("?", text).encode("ascii")


def _escaped(name: str) -> str:
    return UNNAMED.sub("?", name[:64])


def _meant(name: str, schema: Schema) -> str:
    """Return the field in the schema of a body that a name such as `options.temprature` misspells, "" for none."""
    *outer, last = name[:200].split(".")
    for part in outer:
        schema = schema.get("properties", {}).get(part, {})
    field = misspelled(last, tuple(schema.get("properties", ())))
    return field and ".".join([*outer, field])
