"""One connection to an MCP server, by the official SDK: held open by a task of its own until it is let go or lost."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

from ...errors import MissingExtra, ToolError, UsageError
from .address import Address

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.client._transport import TransportStreams

log = logging.getLogger(__name__)
logging.getLogger("mcp").addHandler(logging.NullHandler())
"""Without a handler Python itself would print what the SDK warns of, a traceback for each line that is no message: many
servers begin with a greeting. What matters is raised."""
LARGEST = 16 * 1024 * 1024
"""Bytes of one answer over HTTP."""
LEAVING, CANCELLED = 1.0, 1.0
"""Seconds for a session over HTTP to end in good order, and for one that does not to be broken off."""
ENDING = 6.0
"""Seconds for a server that was started here: it is asked to end, then told to, then killed."""
PAGES, TOOLS = 1_000, 20_000
"""How far a list of tools is followed."""
_SAID = 2_000

sent: contextvars.ContextVar[list[bool] | None] = contextvars.ContextVar("sent", default=None)
"""Grows when a request of this context is handed to the connection: from then on the server may act on it."""


class Link:
    """A connection under way: `ready` gives the SDK's client, or raises ToolError or UsageError, which say why there is none.

    `news(client)` is awaited when the server says that its tools have changed.
    """

    def __init__(self, address: Address, timeout: float, news: Callable[[Client], Awaitable[None]]) -> None:
        self.address = address
        self.timeout = timeout
        self.news = news
        self.loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[Client] = self.loop.create_future()
        self.expired = self.doubted = False
        self._status = 0
        self._said = ""
        self._over = False
        self._changed = False
        self._wake = asyncio.Event()
        self.task = self.loop.create_task(self._hold())

    @property
    def alive(self) -> bool:
        """Whether it may still be used: one that its server has closed is only found out by trying."""
        return not self.task.done() and not self.expired and not self._over

    async def lost(self) -> bool:
        """Whether it can no longer be used, after a request that failed. By the protocol a server that has forgotten a
        session says 404; many say 400, which may be for anything, and to everything."""
        if self.alive and self.doubted:
            from mcp.shared.exceptions import MCPError

            self.doubted = False
            with contextlib.suppress(MCPError, ValueError):
                await self.ready.result().session.send_ping()
            self.expired |= self.doubted
        return not self.alive

    @property
    def said(self) -> str:
        """What a server that was started here wrote to its standard error, for the end of a message."""
        return f". It wrote: {self._said.strip()[-600:]}" if self._said.strip() else ""

    async def close(self) -> None:
        """Ends the session, and the server with it where it was started here; returns when that is done, or took too long:
        a server that does not answer must not hold up who leaves it."""
        self._over = True
        self._wake.set()
        if not self.ready.done():  # nothing was begun that could end in good order
            self.task.cancel()
        patience = ENDING if self.address.command else LEAVING
        _, pending = await asyncio.wait([self.task], timeout=patience)
        if pending:
            self.task.cancel()
            _, pending = await asyncio.wait([self.task], timeout=CANCELLED)
        if pending:
            log.warning("%s: the connection does not end, and is left behind", self.address.shown)

    async def _hold(self) -> None:
        try:
            async with self._client() as client:
                listening = self.loop.create_task(self._listen(client))
                try:
                    self.ready.set_result(client)
                    await self._wait(client)
                finally:
                    listening.cancel()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever ended it is told to those who wait
            leaf = _leaf(error)
            log.info("%s: the connection ended: %s", self.address.shown, leaf)
            if not self.ready.done():
                self.ready.set_exception(self._failure(leaf))
                self.ready.exception()  # somebody may have given up waiting for it

    async def _wait(self, client: Client) -> None:
        while not self._over:
            await self._wake.wait()
            self._wake.clear()
            if self._changed and not self._over:
                self._changed = False
                await self.news(client)

    def _client(self) -> Client:
        from mcp import Client
        from mcp.types import Implementation

        from ... import __version__

        return Client(
            self._transport(),
            read_timeout_seconds=self.timeout,
            message_handler=self._message,
            client_info=Implementation(name="toolspeak", version=__version__),
            cache=None,
        )

    # what the server says unasked

    async def _message(self, message: Any) -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._tools_changed()

    async def _listen(self, client: Client) -> None:
        """Newer servers tell of changes only to those who ask."""
        from mcp.client.subscriptions import ListenNotSupportedError
        from mcp.shared.exceptions import MCPError

        with contextlib.suppress(ListenNotSupportedError, MCPError, RuntimeError, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._tools_changed()

    def _tools_changed(self) -> None:
        self._changed = True
        self._wake.set()

    # the two ways to a server

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[TransportStreams]:
        async with self._by_http() if self.address.url else self._by_stdio() as (reading, writing):
            yield reading, _Marking(writing)

    @asynccontextmanager
    async def _by_stdio(self) -> AsyncGenerator[TransportStreams]:
        from mcp import StdioServerParameters, stdio_client

        program, *args = self.address.command
        parameters = StdioServerParameters(command=program, args=args, env=dict(self.address.env), cwd=self.address.cwd)
        with self._errors() as errors:
            async with stdio_client(parameters, errors) as streams:
                yield streams

    @contextlib.contextmanager
    def _errors(self) -> Generator[TextIO]:
        """A file for the server's standard error: logged, and its end kept for when the server fails."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)

        def read() -> None:
            with contextlib.suppress(BlockingIOError):
                while raw := os.read(reading, 65_536):
                    text = raw.decode("utf-8", "replace")
                    self._said = (self._said + text)[-_SAID:]
                    log.debug("%s: %s", self.address.shown, text.rstrip())

        self.loop.add_reader(reading, read)
        try:
            with os.fdopen(writing, "w") as file:
                yield file
        finally:
            self.loop.remove_reader(reading)
            read()
            os.close(reading)

    @asynccontextmanager
    async def _by_http(self) -> AsyncGenerator[TransportStreams]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        waits = httpx2.Timeout(self.timeout, read=None)  # how long an answer may take is for each call to say
        hooks = {"response": [self._answered]}
        async with (
            httpx2.AsyncClient(
                headers={"Accept-Encoding": "identity", **self.address.headers},
                timeout=waits,
                event_hooks=hooks,
                trust_env=False,
            ) as http,
            streamable_http_client(self.address.url, http_client=http, max_sse_event_size=LARGEST) as streams,
        ):
            yield streams

    async def _answered(self, response: httpx2.Response) -> None:
        """Sees each answer's head: a session that the server has forgotten, a refusal, a body that needs a bound."""
        if "mcp-session-id" in response.request.headers:
            self.expired |= response.status_code == 404
            self.doubted |= response.status_code == 400
        if response.status_code >= 400:
            self._status = response.status_code
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("", "identity"):
            # A thousand bytes may become a million, all at once: what was not asked for is not unpacked.
            del response.headers["content-encoding"]
            response.stream = _refused(
                response.stream, f"the answer is compressed ({coding[:40]}), which was not asked for"
            )
        elif not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _bounded(response.stream)

    def _failure(self, error: BaseException) -> Exception:
        """Why there is no connection, for people."""
        what = self.address.shown
        if isinstance(error, FileNotFoundError) and self.address.command:
            missing = self.address.cwd if self.address.cwd and not os.path.isdir(self.address.cwd) else ""
            why = f"there is no folder {missing}" if missing else f"there is no program {self.address.command[0]!r}"
            return UsageError(f"the MCP server {what} cannot be started: {why}")
        if isinstance(error, ImportError):
            return MissingExtra("MCP servers need the official SDK: pip install 'toolspeak[mcp]'")
        if isinstance(error, OSError) and self.address.command:
            return ToolError(f"the MCP server {what} cannot be started: {error}")
        if self._status in (401, 403):
            return ToolError(
                f"the MCP server {what} wants to know who asks (HTTP {self._status}): "
                'headers={"Authorization": "Bearer …"}'
            )
        status = f" (HTTP {self._status})" if self._status else ""
        return ToolError(f"the MCP server {what} gave no session: {error or type(error).__name__}{status}{self.said}")


async def listed(client: Client) -> list[dict[str, Any]]:
    """Every tool that a server offers, page after page: what a model may come to read of each, as JSON data."""
    if client.server_capabilities.tools is None:
        return []
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        kept = {"name", "title", "description", "input_schema", "output_schema", "annotations"}
        found += [tool.model_dump(mode="json", by_alias=True, exclude_none=True, include=kept) for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return found
        if len(found) > TOOLS:
            raise ToolError(f"the server lists more than {TOOLS:,} tools")
    raise ToolError(f"the server's list of tools has more than {PAGES:,} pages")


class _Marking:
    """The way to a server, which tells when a request has gone on it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def send(self, item: Any, /) -> None:
        if (mark := sent.get()) is not None:
            mark.append(True)
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


def _bounded(stream: Any) -> Any:
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        """A body that breaks off where it grows too large."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in stream:
                size += len(part)
                if size > LARGEST:
                    raise httpx2.StreamError(f"the answer has more than {LARGEST:,} bytes")
                yield part

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


def _refused(stream: Any, why: str) -> Any:
    import httpx2

    class Refused(httpx2.AsyncByteStream):
        """A body that is not read."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            raise httpx2.StreamError(why)
            yield b""

        async def aclose(self) -> None:
            await stream.aclose()

    return Refused()


def _leaf(error: BaseException) -> BaseException:
    """The first thing that really went wrong among what several tasks raised."""
    while isinstance(error, BaseExceptionGroup):
        inner = cast("tuple[BaseException, ...]", error.exceptions)
        error = next((one for one in inner if not isinstance(one, asyncio.CancelledError)), inner[0])
    return error
