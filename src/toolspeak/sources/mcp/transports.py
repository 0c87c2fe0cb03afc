"""The two ways to an MCP server, each with bounds that the SDK's own do not have.

Over standard input and output the SDK reads a line for as long as it goes on; over HTTP it reads a stream of events for
as long as it goes on, also after whoever asked has given up. Here a line and an answer have at most `LARGEST` bytes,
and a request that is over lets go of its connection. `Request` is what one request may take: it is found by `current`,
since the SDK runs what it does for a request in the context of whoever made it.
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
"""Bytes of one line over standard output, and of all that comes over HTTP in answer to one request."""
FLOOD = 16 * LARGEST
"""Bytes that a process may write in a minute: nobody asked for more, and all servers share one thread."""
UNANSWERED = 1_000
"""Requests of a server's own that wait for an answer: one that reads none does not heap them up here."""
TRIES = 100
"""HTTP requests that one request may take: a stream that breaks off is begun again where its server says how."""
PARTING = 1.0
"""Seconds in which a request that was given up may still be told so to its server."""
GRACE = 2.0
"""Seconds for a process to end once its input is closed, again once it was asked to, and half of it once it was
killed."""
LAST_WORDS = 4 * LARGEST
"""Bytes that a server may still write when it is to end."""

current: contextvars.ContextVar[Request | None] = contextvars.ContextVar("current", default=None)


class Request:
    """One request to a server, from `with` on: whether it has gone out, and what it may still take.

    `sent`: the server may act on it. `problem`: why its answer was broken off, "" where it was not.
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
        """What runs inside ends soon after the request does: with a TimeoutError."""
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
        """The error that ends an answer, so that the SDK passes it on to the one request and goes on with the
        others."""
        import httpx2

        self.problem = self.problem or why
        return httpx2.StreamError(why)


# ------------------------------------------------------------------ both


class Around:
    """A stream of messages around another one, with which it closes."""

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
    """The messages of a server. They end, as those of one that has gone, where it asks back and reads no answer."""

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
    """The way to a server, which tells the request under way that it has gone out."""

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
    """The streams of messages from and to a server over HTTP. `answered` sees the head of each answer; `auth` says who
    asks."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def seen(response: httpx2.Response) -> None:
        answered(response)

    async with (
        httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **headers},
            timeout=httpx2.Timeout(timeout, read=None),  # how long an answer may take is for each call to say
            event_hooks={"response": [seen]},
            trust_env=False,
            auth=auth,
            transport=bounded(),
        ) as http,
        streamable_http_client(url, http_client=http, max_sse_event_size=LARGEST) as streams,
    ):
        yield streams


def bounded() -> httpx2.AsyncBaseTransport:
    """HTTP with the bounds of a request."""
    import httpx2

    class Bounded(httpx2.AsyncHTTPTransport):
        """HTTP in which the request of a call that is over ends, and an answer that grows too large breaks off."""

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            ours = current.get() or Request()  # nobody waits for a stream of changes: it has the bounds of one answer
            ours.tried()
            try:
                async with ours.limited():
                    response = await super().handle_async_request(request)
            except TimeoutError:
                raise httpx2.ReadTimeout("the request was given up", request=request) from None
            coding = response.headers.get("content-encoding", "identity").strip().lower()
            refused = ""
            if coding not in ("", "identity"):
                # A thousand bytes may become a million, all at once: what was not asked for is not unpacked.
                del response.headers["content-encoding"]
                refused = f"the answer is compressed ({coding[:40]}), which was not asked for"
            response.stream = Body(response.stream, ours, refused)
            return response

    class Body(httpx2.AsyncByteStream):
        """An answer as it comes."""

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
    """The streams of messages from and to a server that is started, and has ended when this is left. `ended` is called
    with the reason where what it wrote cannot be read on."""
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
    """Passes on each line that a server writes as a message, or as the error that it is none."""
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
    """Writes each message to a server, a line each."""
    stdin = cast("asyncio.StreamWriter", process.stdin)
    try:
        async for item in leaving:
            text: str = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode() + b"\n")
            await stdin.drain()
    except OSError:
        await arriving.aclose()  # who waits for an answer learns that none comes
    finally:
        with contextlib.suppress(OSError):
            stdin.close()


async def _end(process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]]) -> None:
    """Ends a server in good order: its input is closed, then it is asked to end, then it is killed, each with all that
    it started. What it still writes meanwhile is thrown away."""
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
    """Whether a process ends in time; one that goes on writing does not. Its `wait` would also wait for children that
    have its output."""
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
    """Sends a signal to a process and all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, sign)
