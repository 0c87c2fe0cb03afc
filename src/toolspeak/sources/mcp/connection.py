"""One connection to an MCP server through the official SDK, kept open by a task until it is closed or lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TextIO

from ...api.upstream_errors import excerpt
from ...errors import MissingExtra, ToolError, UsageError
from ...schema.nonblocking_json import dumps
from ...secret_removal import Secrets
from .config import NO_SDK, McpAddress
from .error_groups import first_error
from .limits import LARGEST, current
from .logins import login_hint
from .stdio import by_stdio
from .transports import IncomingStream, OutgoingStream, by_http

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.client._transport import TransportStreams

    from .server_questions import Elicit, QuestionHandler

log = logging.getLogger(__name__)
logging.getLogger("mcp").addHandler(logging.NullHandler())
"""Without a handler Python would print the SDK's warnings, a traceback for each line that is not a message, and many servers
begin with a greeting. Relevant errors are raised."""
LEAVING, CANCELLED = 1.0, 1.0
"""Seconds for a session over HTTP to end normally, and then for it to be aborted."""
ENDING = 6.0
"""Seconds for a server that was started here to end: its input is closed, it is terminated, then killed."""
PAGES, TOOLS = 1_000, 20_000
"""The most pages of a list of tools, and the most tools."""
PAUSE = 0.1
"""Seconds between a notice of changed tools and the request for them: notices come in bursts."""
_STDERR_SIZE = 2_000
_WORDS = 2_000
_INPUT = re.compile(r", input_value=.*, input_type=\w+\]")
"""What a validation error of the SDK repeats of a message."""


class Connection:
    """A connection in progress: `ready` returns the SDK's client, or raises ToolError or UsageError, which say why
    there is none.

    `news(client)` is awaited when the server reports that its tools have changed. `secrets()` are removed from what the
    server says. `elicit` answers the questions of the server; without it the server learns that nobody does.
    """

    def __init__(
        self,
        address: McpAddress,
        timeout: float,
        news: Callable[[Client], Awaitable[None]],
        secrets: Callable[[], Secrets],
        auth: httpx2.Auth | None = None,
        elicit: Elicit | None = None,
    ) -> None:
        self.address = address
        self.auth = auth
        self.elicit = elicit
        self.questions: QuestionHandler | None = None
        self.timeout = timeout
        self.news = news
        self.secrets = secrets
        self.loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[Client] = self.loop.create_future()
        self.expired = self.doubted = False
        self.problem = ""
        """Why the server's output can no longer be read, "" while it can."""
        self._status = 0
        self._stderr = ""
        self._begun = self._over = False
        self._changed = False
        self._wake = asyncio.Event()
        self.task = self.loop.create_task(self._hold())

    @property
    def alive(self) -> bool:
        """Whether the connection may still be used. A connection that the server closed is only detected on use."""
        return not self.task.done() and not self.expired and not self._over

    async def lost(self) -> bool:
        """Whether the connection can no longer be used, after a failed request.

        By the protocol, a server that has forgotten a session answers 404. Many answer 400, which may also mean
        anything else.
        """
        if self.alive and self.doubted:
            from mcp.shared.exceptions import MCPError

            self.doubted = False
            with contextlib.suppress(MCPError, ValueError):
                await self.ready.result().session.send_ping()
            self.expired |= self.doubted
        return not self.alive

    def reason(self, words: str, broken: str = "") -> str:
        """Return why a request failed: what broke off its answer or the connection, else the server's message. Each may
        repeat what the server sent."""
        return excerpt(self.secrets().out_of(broken or self.problem or _INPUT.sub("]", words)), _WORDS)

    @property
    def stderr_text(self) -> str:
        """Return the end of the standard error of a server that was started here, for an error message."""
        text = self.secrets().out_of(self._stderr.strip())
        return f". It wrote: {text[-600:]}" if text else ""

    async def close(self) -> None:
        """End the session, and the server if it was started here. Returns when that is done, or took too long: a server
        that does not answer must not delay the program."""
        self._over = True
        self._wake.set()
        if not self._begun:  # there is no session to end; a caller that gave up waiting has cancelled `ready`
            self.task.cancel()
        patience = ENDING if self.address.command else LEAVING
        _, pending = await asyncio.wait([self.task], timeout=patience)
        if pending:
            self.task.cancel()
            _, pending = await asyncio.wait([self.task], timeout=CANCELLED)
        if pending:
            log.warning("%s: the connection does not end, and is abandoned", self.address.description)

    async def _hold(self) -> None:
        try:
            async with self._client() as client:
                listening = self.loop.create_task(self._listen(client))
                try:
                    self.ready.set_result(client)
                    self._begun = True
                    await self._wait(client)
                finally:
                    listening.cancel()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - passed on to those who wait
            leaf = first_error(error)
            log.info("%s: the connection ended: %s", self.address.description, self.reason(_text_of(leaf)))
            if not self.ready.done():
                self.ready.set_exception(self._failure(leaf))
                self.ready.exception()  # the caller may have given up waiting

    async def _wait(self, client: Client) -> None:
        while not self._over:
            await self._wake.wait()
            self._wake.clear()
            if self._changed and not self._over:
                await asyncio.sleep(PAUSE)
                self._changed = False
                await self.news(client)

    def _client(self) -> Client:
        from mcp import Client
        from mcp.types import Implementation

        from ... import __version__
        from .server_questions import QuestionHandler

        self.questions = QuestionHandler(self.elicit, self.secrets) if self.elicit else None
        return Client(
            self._transport(),
            read_timeout_seconds=self.timeout,
            message_handler=self._message,
            elicitation_callback=self.questions,
            client_info=Implementation(name="toolspeak", version=__version__),
            cache=None,
        )

    # what the server says unasked

    async def _message(self, message: Any) -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._tools_changed()

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes of tools, as newer servers require."""
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
            arriving = IncomingStream(reading, self._broken)
            yield arriving, OutgoingStream(writing, arriving)

    def _by_http(self) -> AbstractAsyncContextManager[TransportStreams]:
        return by_http(self.address.url, self.address.headers, self.timeout, self._answered, self.auth)

    @asynccontextmanager
    async def _by_stdio(self) -> AsyncGenerator[TransportStreams]:
        address = self.address
        with self._errors() as errors:
            async with by_stdio(address.command, address.env, address.cwd, errors, self._broken) as streams:
                yield streams

    def _broken(self, why: str) -> None:
        self.problem = why

    @contextlib.contextmanager
    def _errors(self) -> Generator[TextIO]:
        """Yield a file for the server's standard error. It is logged, and its end is kept for error messages."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)

        def read() -> None:
            with contextlib.suppress(BlockingIOError):
                while raw := os.read(reading, 65_536):
                    text = raw.decode("utf-8", "replace")
                    self._stderr = (self._stderr + text)[-_STDERR_SIZE:]
                    log.debug("%s: %s", self.address.description, text.rstrip())

        self.loop.add_reader(reading, read)
        try:
            with os.fdopen(writing, "w") as file:
                yield file
        finally:
            self.loop.remove_reader(reading)
            read()
            os.close(reading)

    def _answered(self, response: httpx2.Response) -> None:
        """Look at the head of each HTTP response: whether the session is forgotten or the client refused."""
        if "mcp-session-id" in response.request.headers:
            self.expired |= response.status_code == 404
            if (ours := current.get()) is not None:
                ours.forgotten = (response.status_code, response.request.method) == (404, "POST")
            self.doubted |= response.status_code == 400
        self._status = response.status_code if response.status_code >= 400 else 0

    @property
    def refusal(self) -> str:
        """Return what it means that the server refuses the client, and what to do."""
        problem: str = getattr(self.auth, "problem", "")
        if problem and self._status == 401:
            return problem
        if self.auth is None:
            return f"it refuses the key that it was given (HTTP {self._status})"
        return f"it requires a login, or another one (HTTP {self._status}): {login_hint(self.address)}"

    def _missing(self, program: str) -> str:
        folder = self.address.cwd
        return f"folder {folder}" if folder and not os.path.isdir(folder) else f"program {program!r}"

    def _failure(self, error: BaseException) -> Exception:
        """Return why there is no connection, as an error for people."""
        what = self.address.description
        if isinstance(error, FileNotFoundError) and self.address.command:
            missing = self._missing(self.address.command[0])
            return UsageError(f"the MCP server {what} cannot be started: there is no {missing}")
        if isinstance(error, ImportError):
            return MissingExtra(NO_SDK)
        if isinstance(error, OSError) and self.address.command:
            return ToolError(f"the MCP server {what} cannot be started: {error}")
        if self._status in (401, 403):
            return ToolError(f"the MCP server {what}: {self.refusal}")
        status = f" (HTTP {self._status})" if self._status else ""
        why = self.reason(_text_of(error))
        return ToolError(f"the MCP server {what} gave no session: {why}{status}{self.stderr_text}")


async def listed(client: Client) -> list[dict[str, Any]]:
    """Return every tool that a server offers, page by page: everything that a model may read of each, as JSON data."""
    if client.server_capabilities.tools is None:
        return []
    tools: list[dict[str, Any]] = []
    cursor: str | None = None
    size = 0
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        if (request := current.get()) is not None:
            request.answered()
        if len(tools) + len(page.tools) > TOOLS:
            raise ToolError(f"the server lists more than {TOOLS:,} tools")
        fields = {"name", "title", "description", "input_schema", "output_schema", "annotations"}
        tools += [tool.model_dump(mode="json", by_alias=True, exclude_none=True, include=fields) for tool in page.tools]
        size += len(dumps(tools[-len(page.tools) :])) if page.tools else 0
        if size > LARGEST:
            raise ToolError(f"the server's list of tools has more than {LARGEST:,} characters")
        cursor = page.next_cursor
        if cursor is None:
            return tools
    raise ToolError(f"the server's list of tools has more than {PAGES:,} pages")


def _text_of(error: BaseException) -> str:
    return str(error) or type(error).__name__
