"""The message streams to an MCP server, and the transport over HTTP, with limits that the SDK's own do not have."""

from __future__ import annotations

import contextvars
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from .limits import BLOCKS, LARGEST, UNANSWERED, BoundedRequest, Unasked, current

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams


# ------------------------------------------------------------------ both


class WrappedStream:
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


class IncomingStream(WrappedStream):
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
        from mcp.types import JSONRPCRequest, JSONRPCResponse

        item = await self.inner.receive()
        match getattr(item, "message", None):
            case JSONRPCRequest():
                self.unanswered += 1
                if self.unanswered > UNANSWERED:
                    self.ended(f"it sent more than {UNANSWERED:,} requests and read no answer")
                    raise EndOfStream
            case JSONRPCResponse(id=key, result={"content": [*blocks]}) if len(blocks) > BLOCKS:
                return replace(item, message=_too_many_blocks(key))
            case _:
                pass
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None


def _too_many_blocks(key: str | int) -> Any:
    """Return the error in place of a result that the SDK would validate, twice, in one step each."""
    from mcp.types import INTERNAL_ERROR, ErrorData, JSONRPCError

    why = f"the result has more than {BLOCKS:,} content blocks"
    return JSONRPCError(jsonrpc="2.0", id=key, error=ErrorData(code=INTERNAL_ERROR, message=why))


class OutgoingStream(WrappedStream):
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

    unasked = Unasked()

    class Bounded(httpx2.AsyncHTTPTransport):
        """HTTP transport that ends requests of finished calls, and aborts responses that grow too large."""

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            ours = current.get() or unasked.request(request.method)
            ours.tried()
            try:
                async with ours.limited():
                    response = await super().handle_async_request(request)
            except TimeoutError:
                raise httpx2.ReadTimeout("the request was given up", request=request) from None
            coding = response.headers.get("content-encoding", "identity").strip()
            refused = ""
            if coding.lower() not in ("", "identity"):
                # A thousand compressed bytes may become a million at once, so unrequested compression is refused.
                del response.headers["content-encoding"]
                refused = f"the answer is compressed ({coding[:40]}), which was not asked for"
            response.stream = Body(response.stream, ours, refused)
            return response

    class Body(httpx2.AsyncByteStream):
        """A response while it arrives."""

        def __init__(self, inner: Any, ours: BoundedRequest, refused: str) -> None:
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
                self.ours.received(part)
                yield part

        async def aclose(self) -> None:
            await self.inner.aclose()

    return Bounded(trust_env=False)
