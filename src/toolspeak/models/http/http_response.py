"""HTTP responses: reads bodies within limits, and explains refusals and broken connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from ...api.stream_reader import StreamReader
from ...api.upstream_errors import failure
from ...errors import ModelError, ServerFailed, UsageError
from ...events import Event
from ..offload import offloaded
from ..retries import retry_after
from .address import parse_address

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

DRAIN = 0.25
"""Seconds to read the rest of a finished reply, so that its connection can be reused."""


@lru_cache(256)
def whole_url(text: str) -> URL:
    """Parse a URL, cached: parsing costs as much as building the rest of a request."""
    from yarl import URL

    return URL(text)


async def refusal(response: aiohttp.ClientResponse) -> ModelError:
    """Return the error for a response with a status other than 2xx."""
    status = response.status
    if 300 <= status < 400:
        target = _without_secrets(response.headers.get("Location", ""))
        message = f"the server redirects ({status}) to {target or 'nowhere'}: use that address if you trust it"
        return ServerFailed(message, code=status)
    wait = retry_after(response.headers.get("Retry-After"))
    return failure(status, await read_start(response, 65536), retry_after=wait)


async def read_start(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the start of the body, up to `limit` bytes, within a few seconds."""
    import aiohttp

    body = bytearray()
    with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(5):
            while len(body) < limit and (chunk := await response.content.readany()):
                body += chunk
    return bytes(body[:limit])


async def drain(response: aiohttp.ClientResponse) -> None:
    """Read the rest of a finished reply, which makes its connection available for the next request."""
    if response.content.at_eof():
        return
    import aiohttp

    with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(DRAIN):
            while await response.content.readany():
                pass


def _without_secrets(url: str) -> str:
    try:
        return parse_address(url).public
    except UsageError:
        return ""


REASONS = {
    "ServerDisconnectedError": "it closed the connection",
    "ClientOSError": "the connection was closed or broke",
    "ClientConnectionResetError": "it closed the connection",
    "ClientPayloadError": "the connection was cut",
    "ClientConnectorCertificateError": "its certificate is not trusted",
    "InvalidUrlClientError": "there can be no such address",
}


def cause(error: Exception) -> str:
    """Return a short reason for a failed connection: an aiohttp error's own text may contain the whole request."""
    name = type(error).__name__
    words = getattr(getattr(error, "os_error", error), "strerror", None)
    return REASONS.get(name) or words or f"{name.removeprefix('Client').removesuffix('Error')} error"


async def events_of(reader: StreamReader, chunk: bytes) -> list[Event]:
    """Return the events of the next bytes of a reply, b"" at its end. A long part is parsed in a thread."""
    if not chunk:
        return await offloaded(reader.due(b"\n"), reader.close)
    return await offloaded(reader.due(chunk), reader.feed, chunk)


async def read_all(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the whole body. Raises ServerFailed if it has more than `limit` bytes, and what aiohttp raises."""
    body = bytearray()
    while chunk := await response.content.readany():
        body += chunk
        if len(body) > limit:
            raise ServerFailed(f"the server sent more than {limit:,} bytes")
    return bytes(body)


class Explaining:
    """Replaces errors of a model that leave the block by what `explained` makes of them."""

    def __init__(self, explained: Callable[[ModelError], ModelError]) -> None:
        self._explained = explained

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: object, __: object) -> None:
        if isinstance(error, ModelError):
            raise self._explained(error) from None
