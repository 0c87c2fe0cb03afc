"""An HTTP server's answer: its body within bounds, and what a refusal or a broken connection means."""

from __future__ import annotations

import asyncio
import contextlib
from functools import lru_cache
from typing import TYPE_CHECKING

from ...api.upstream_errors import failure
from ...errors import ModelError, ServerFailed, UsageError
from ..retries import retry_after
from .address import parse_address

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

DRAIN = 0.25
"""Seconds that a server gets to close a reply that is over, so that its connection can be used again."""


@lru_cache(256)
def whole_url(text: str) -> URL:
    """A URL taken apart, which costs as much as making all the rest of a request."""
    from yarl import URL

    return URL(text)


async def refusal(response: aiohttp.ClientResponse) -> ModelError:
    """The error that an answer other than 2xx stands for."""
    status = response.status
    if 300 <= status < 400:
        target = _shown(response.headers.get("Location", ""))
        said = f"the server redirects ({status}) to {target or 'nowhere'}: use that address if you trust it"
        return ServerFailed(said, code=status)
    told = retry_after(response.headers.get("Retry-After"))
    return failure(status, await read_start(response, 65536), retry_after=told)


async def read_start(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The answer's body as far as it comes, up to `limit` bytes, within seconds."""
    import aiohttp

    body = bytearray()
    with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(5):
            while len(body) < limit and (chunk := await response.content.readany()):
                body += chunk
    return bytes(body[:limit])


async def drain(response: aiohttp.ClientResponse) -> None:
    """Reads what is left of a reply that is over: only then is its connection free for the next request."""
    if response.content.at_eof():
        return
    import aiohttp

    with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(DRAIN):
            while await response.content.readany():
                pass


def _shown(url: str) -> str:
    try:
        return parse_address(url).shown
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
    """What went wrong with a connection, in few words: an aiohttp error's own may hold the whole request."""
    name = type(error).__name__
    words = getattr(getattr(error, "os_error", error), "strerror", None)
    return REASONS.get(name) or words or f"{name.removeprefix('Client').removesuffix('Error')} error"


async def read_all(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The whole body. Raises ServerFailed for one larger than `limit` bytes, and what aiohttp raises."""
    body = bytearray()
    while chunk := await response.content.readany():
        body += chunk
        if len(body) > limit:
            raise ServerFailed(f"the server sent more than {limit:,} bytes")
    return bytes(body)
