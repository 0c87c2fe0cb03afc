"""The two transports to an MCP server, with limits that the SDK's own transports do not have.

The SDK reads a line over standard output of any length, and an event stream over HTTP of any length, even after the
caller has given up. Here a line and a response have at most `LARGEST` bytes, and a finished request releases its
connection. `Request` holds the limits of one request. It is found by `current`, because the SDK works for a request in
the context of the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

LARGEST = 16 * 1024 * 1024
"""The most bytes of one line over standard output, and of all responses over HTTP to one request."""
FLOOD = 16 * LARGEST
"""The most bytes that a process may write per minute, because all servers share one thread."""
UNANSWERED = 1_000
"""The most unanswered requests of a server: a server that never reads answers would fill the memory."""
TRIES = 100
"""The most HTTP requests for one request: a broken stream is resumed if its server supports that."""
PARTING = 1.0
"""Seconds for telling the server that a request was cancelled."""
GRACE = 2.0
"""Seconds for a process to end once its input is closed, again once it was asked to, and half of it once it was
killed."""
LAST_WORDS = 4 * LARGEST
"""The most bytes that a server may write while it ends."""

current: contextvars.ContextVar[Request | None] = contextvars.ContextVar("current", default=None)


class Request:
    """One request to a server, from `with` on: whether it was sent, and its remaining limits.

    `sent`: the server may have acted on it. `problem`: why its answer was aborted, "" if it was not.
    """

    def __init__(self) -> None:
        self.sent = False
        self.problem = ""
        self._received = self._tries = 0
        self._deadline: float | None = None
        self._limits: set[asyncio.Timeout] = set()

    def __enter__(self) -> Request:
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

    def received(self, size: int) -> None:
        self._received += size
        if self._received > LARGEST:
            raise self.broken(f"the answer has more than {LARGEST:,} bytes")

    def broken(self, why: str) -> Exception:
        """Return an error that ends one response, so that the SDK passes it to this request and continues with others."""
        import httpx2

        self.problem = self.problem or why
        return httpx2.StreamError(why)


# ------------------------------------------------------------------ both


class Around:
    """A message stream around another one, which it closes with itself."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class IncomingStream(Around):
    """The messages from a server. The stream ends, like that of a gone server, if it sends requests but reads no
    answers."""

    def __init__(self, inner: Any, ended: Callable[[str], None]) -> None:
        super().__init__(inner)
        self.ended = ended
        self.unanswered = 0

    @property
    def last_context(self) -> contextvars.Context | None:
        return getattr(self.inner, "last_context", None)

    async def receive(self) -> Any:
        from anyio import EndOfStream
        from mcp.types import JSONRPCRequest

        item = await self.inner.receive()
        if isinstance(getattr(item, "message", None), JSONRPCRequest):
            self.unanswered += 1
            if self.unanswered > UNANSWERED:
                self.ended(f"it sent more than {UNANSWERED:,} requests and read no answer")
                raise EndOfStream
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None


class OutgoingStream(Around):
    """The messages to a server. Marks the current request as sent."""

    def __init__(self, inner: Any, arriving: IncomingStream) -> None:
        super().__init__(inner)
        self.arriving = arriving

    async def send(self, item: Any, /) -> None:
        if (request := current.get()) is not None:
            request.sent = True
        await self.inner.send(item)
        self.arriving.unanswered = 0


# ------------------------------------------------------------------ HTTP


@asynccontextmanager
async def by_http(
    url: str,
    headers: Mapping[str, str],
    timeout: float,
    answered: Callable[[httpx2.Response], None],
    auth: httpx2.Auth | None = None,
) -> AsyncGenerator[TransportStreams]:
    """Yield the message streams from and to a server over HTTP. `answered` sees the head of each response; `auth`
    authenticates requests."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def seen(response: httpx2.Response) -> None:
        answered(response)

    async with (
        httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **headers},
            timeout=httpx2.Timeout(timeout, read=None),  # each call has its own time limit
            event_hooks={"response": [seen]},
            trust_env=False,
            auth=auth,
            transport=bounded(),
        ) as http,
        streamable_http_client(url, http_client=http, max_sse_event_size=LARGEST) as streams,
    ):
        yield streams


def bounded() -> httpx2.AsyncBaseTransport:
    """Return an HTTP transport with the limits of a request."""
    import httpx2

    class Bounded(httpx2.AsyncHTTPTransport):
        """HTTP transport that ends requests of finished calls, and aborts responses that grow too large."""

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            ours = (
                current.get() or Request()
            )  # no call waits for a stream of notifications: it has the limits of one response
            ours.tried()
            try:
                async with ours.limited():
                    response = await super().handle_async_request(request)
            except TimeoutError:
                raise httpx2.ReadTimeout("the request was given up", request=request) from None
            coding = response.headers.get("content-encoding", "identity").strip().lower()
            refused = ""
            if coding not in ("", "identity"):
                # A thousand compressed bytes may become a million at once, so unrequested compression is refused.
                del response.headers["content-encoding"]
                refused = f"the answer is compressed ({coding[:40]}), which was not asked for"
            response.stream = Body(response.stream, ours, refused)
            return response

    class Body(httpx2.AsyncByteStream):
        """A response while it arrives."""

        def __init__(self, inner: Any, ours: Request, refused: str) -> None:
            self.inner, self.ours, self.refused = inner, ours, refused

        async def __aiter__(self) -> AsyncIterator[bytes]:
            if self.refused:
                raise self.ours.broken(self.refused)
            parts = aiter(self.inner)
            while True:
                try:
                    async with self.ours.limited():
                        part = await anext(parts, None)
                except TimeoutError:
                    raise self.ours.broken("the request was given up") from None
                except httpx2.TransportError as error:
                    raise self.ours.broken(f"the answer broke off ({error or type(error).__name__})") from None
                if part is None:
                    return
                self.ours.received(len(part))
                yield part

        async def aclose(self) -> None:
            await self.inner.aclose()

    return Bounded(trust_env=False)


# ------------------------------------------------------------------ standard input and output


@asynccontextmanager
async def by_stdio(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    errors: TextIO,
    ended: Callable[[str], None],
) -> AsyncGenerator[TransportStreams]:
    """Yield the message streams from and to a server that is started here, and has ended at the exit. `ended` is called
    with the reason if its output cannot be read any further."""
    import anyio
    from mcp.client.stdio import get_default_environment

    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
        env=get_default_environment() | dict(env),
        cwd=cwd,
        limit=LARGEST,
        start_new_session=True,
    )
    arriving, reading = anyio.create_memory_object_stream[Any](0)
    writing, leaving = anyio.create_memory_object_stream[Any](0)
    tasks = [
        asyncio.create_task(_read(process, arriving, ended)),
        asyncio.create_task(_write(process, leaving, arriving)),
    ]
    try:
        yield reading, writing
    finally:
        reading.close()
        writing.close()
        try:
            await _end(process, tasks)
        finally:
            arriving.close()
            leaving.close()


async def _read(process: asyncio.subprocess.Process, arriving: Any, ended: Callable[[str], None]) -> None:
    """Pass on each line of a server as a message, or as an error if it is not one."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    stdout, clock = cast("asyncio.StreamReader", process.stdout), asyncio.get_running_loop().time
    since, size = clock(), 0
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with arriving:
            while True:
                try:
                    line = await stdout.readline()
                except ValueError:
                    return ended(f"it wrote a line of more than {LARGEST:,} bytes")
                if not line:
                    return None
                if clock() - since > 60:
                    since, size = clock(), 0
                size += len(line)
                if size > FLOOD:
                    return ended(f"it wrote more than {FLOOD:,} bytes in a minute")
                try:
                    message: Any = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                except ValueError as error:
                    message = error
                await arriving.send(message)
    return None


async def _write(process: asyncio.subprocess.Process, leaving: Any, arriving: Any) -> None:
    """Write each message to a server as a line."""
    stdin = cast("asyncio.StreamWriter", process.stdin)
    try:
        async for item in leaving:
            text: str = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode() + b"\n")
            await stdin.drain()
    except OSError:
        await arriving.aclose()  # fail the requests that wait for an answer
    finally:
        with contextlib.suppress(OSError):
            stdin.close()


async def _end(process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]]) -> None:
    """End a server: close its input, then terminate it, then kill it, each time with its child processes. Its remaining
    output is discarded."""
    reader, writer = tasks
    reader.cancel()
    drained: asyncio.Task[bool] | None = None
    try:
        await asyncio.wait([reader])
        drained = asyncio.create_task(_drained(cast("asyncio.StreamReader", process.stdout)))
        await asyncio.wait([writer], timeout=PARTING / 2)
        writer.cancel()
        await asyncio.wait([writer])
        for sign, grace in ((None, GRACE), (signal.SIGTERM, GRACE), (signal.SIGKILL, GRACE / 2)):
            if sign is not None:
                _signal(process, sign)
            if await _is_over(process, grace, drained):
                return
    finally:
        if process.returncode is None:
            _signal(process, signal.SIGKILL)
        if drained is not None:
            drained.cancel()
        transport: Any = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()


async def _is_over(process: asyncio.subprocess.Process, grace: float, drained: asyncio.Task[bool]) -> bool:
    """Whether a process ends in time; a process that keeps writing does not. `wait` would also wait for children that
    hold its output."""
    end = asyncio.get_running_loop().time() + grace
    while process.returncode is None and asyncio.get_running_loop().time() < end:
        if drained.done() and drained.result():
            break
        await asyncio.sleep(0.01)
    return process.returncode is not None


async def _drained(stdout: asyncio.StreamReader) -> bool:
    """Reads on, so that a server that still writes can end; whether it does not leave off."""
    left = LAST_WORDS
    with contextlib.suppress(OSError, ValueError):
        while part := await stdout.read(65_536):
            left -= len(part)
            if left < 0:
                return True
    return False


def _signal(process: asyncio.subprocess.Process, sign: int) -> None:
    """Send a signal to a process and its children."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, sign)
