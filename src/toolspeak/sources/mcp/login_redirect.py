"""An address on this machine to which a browser is redirected with the outcome of a login (RFC 8252, 7.3).

Only the outcome with the right `state` counts, because any page in the browser may send requests here. The page that
the browser gets shows nothing of what it sent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

from mcp.shared.auth import AuthorizationCodeResult

from ...api.upstream_errors import excerpt
from ...errors import ToolError, ToolspeakError, UsageError

HOST, PATH = "127.0.0.1", "/callback"
HEAD = 10.0
"""The time limit in seconds for the browser's request."""
_PAGE = (
    "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {size}\r\nCache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{page}"
)
_HTML = '<!doctype html><html lang="en"><meta charset="utf-8"><title>toolspeak</title><p>{}</p></html>'
_DONE = "toolspeak has the answer. The terminal says whether the login succeeded; this page can be closed."
_LOST = "There is nothing here."


class Redirect:
    """Waits at `uri` for the outcome of one login. `tell` gets the address to open in a browser."""

    def __init__(self, tell: Callable[[str], None], port: int, patience: float) -> None:
        self.tell = tell
        self.patience = patience
        self._port = port
        self._state = ""
        self._outcome: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    @property
    def uri(self) -> str:
        """The address to which the browser is redirected."""
        return f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}{PATH}"

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(self._answer, HOST, self._port, limit=65_536)
        except OSError as error:
            raise UsageError(f"cannot listen at port {self._port}: {error.strerror or error}") from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self._outcome.cancel()

    async def open(self, url: str) -> None:
        """Have an address opened; the outcome must have its `state`."""
        self._state = _field(urlsplit(url).query, "state")
        self.tell(url)

    async def result(self) -> AuthorizationCodeResult:
        """Return the code from the browser. Raises ToolError for any other outcome, and if none comes in time."""
        try:
            async with asyncio.timeout(self.patience):
                return await self._outcome
        except TimeoutError:
            raise ToolError(f"nobody logged in within {self.patience:g} s. Run the command again") from None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(TimeoutError, OSError, EOFError, asyncio.LimitOverrunError):
            async with asyncio.timeout(HEAD):
                head = await reader.readuntil(b"\r\n\r\n")
            method, target, *_ = [*head.split(b"\r\n", 1)[0].decode("latin-1").split(" "), ""]
            parts = urlsplit(target)
            is_outcome = (method, parts.path) == ("GET", PATH)
            page = _HTML.format(_DONE if is_outcome else _LOST)
            status = "200 OK" if is_outcome else "404 Not Found"
            writer.write(_PAGE.format(status=status, size=len(page), page=page).encode())
            await writer.drain()
            if is_outcome:
                self._take(parts.query)
        writer.close()

    def _take(self, query: str) -> None:
        """Accept the first outcome."""
        if self._outcome.done():
            return
        try:
            self._outcome.set_result(self._read(query))
        except ToolspeakError as error:
            self._outcome.set_exception(error)

    def _read(self, query: str) -> AuthorizationCodeResult:
        if not self._state or _field(query, "state") != self._state:
            raise ToolError(
                "the browser came back with the outcome of another login (its state is not the one that was sent). "
                "Run the command again, and open the address that it prints"
            )
        if error := _field(query, "error"):
            detail = f": {excerpt(description)}" if (description := _field(query, "error_description")) else ""
            denied = (
                "consent was denied" if error == "access_denied" else f"the authorization server says {excerpt(error)}"
            )
            raise ToolError(f"{denied}{detail}")
        if not (code := _field(query, "code")):
            raise ToolError("the browser came back without a code")
        return AuthorizationCodeResult(code=code, state=self._state, iss=_field(query, "iss") or None)


def _field(query: str, name: str) -> str:
    return parse_qs(query).get(name, [""])[0]
