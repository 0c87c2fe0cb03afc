"""One HTTP exchange with an untrusted server: limits redirects, addresses, size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from ...api.upstream_errors import excerpt
from ...errors import ToolError, UsageError
from ...models.http.address import parse_address
from ...models.http.http_response import cause
from ...models.http.public_only import NOT_PUBLIC, PrivateAddress
from ...models.http.sessions import get_session

if TYPE_CHECKING:
    import aiohttp

REDIRECTS = 5
CONNECT = 10.0
"""The time limit in seconds for a connection."""
DEFAULT_PORTS = {"http": 80, "https": 443}

Origin = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a request: which origins may be private addresses, which one gets the credentials, and the size of
    the response."""

    private: frozenset[Origin]
    keys_to: Origin | None
    limit: int
    anywhere: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """What is added to a request: headers, query parameters and cookies."""

    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    query: tuple[str, ...] = ()
    cookies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request without its secrets."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A server's whole response."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    url: str


def origin(url: str) -> Origin:
    """Return the scheme, host and port of an absolute URL."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or DEFAULT_PORTS.get(parts.scheme, 0)


async def exchange(sent: SentRequest, secret: Credentials, bounds: Bounds) -> HttpAnswer:
    """Return the response to a request, after redirects. Raises ToolError; a cancellation closes the connection."""
    for _ in range(REDIRECTS + 1):
        here = origin(sent.url)
        response = await _send(sent, secret if here == bounds.keys_to else Credentials(), bounds)
        try:
            if response.status not in (301, 302, 303, 307, 308) or not response.headers.get("Location"):
                body = await _body(response, bounds.limit)
                return HttpAnswer(response.status, response.reason or "", response.headers.copy(), body, sent.url)
            sent = _redirected(sent, response.status, response.headers["Location"])
        finally:
            response.close()
    raise ToolError(f"the server redirects more than {REDIRECTS} times")


async def fetch(
    url: str, timeout: float, limit: int, headers: Mapping[str, str], *, allow_private: bool
) -> tuple[str, str, str]:
    """Return (final URL, the same for display, text) of a document that the operator named. Only its origin gets the
    `headers`."""
    address = parse_address(url)
    if address.user or address.password:
        raise UsageError(f"{address.public}: fetch a document that needs a password yourself, and pass the file")
    bounds = Bounds(frozenset({origin(url)}), origin(url), limit, allow_private)
    accept = {"Accept": "application/json, application/yaml;q=0.9, */*;q=0.5"}
    try:
        async with asyncio.timeout(timeout):
            answer = await exchange(SentRequest("GET", address.url(""), accept), Credentials(headers), bounds)
        if answer.status != 200:
            raise UsageError(f"{address.public} answered {answer.status} {answer.reason}, not a document")
        return answer.url, parse_address(answer.url).public, answer.body.decode("utf-8-sig")
    except TimeoutError:
        raise UsageError(f"{address.public} did not answer within {timeout:g} s") from None
    except ToolError as error:
        raise UsageError(f"{address.public} cannot be read: {error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{address.public} is not UTF-8: {error.reason} at byte {error.start}") from None


async def _send(sent: SentRequest, secret: Credentials, bounds: Bounds) -> aiohttp.ClientResponse:
    import aiohttp
    from yarl import URL

    private = bounds.anywhere or origin(sent.url) in bounds.private
    session = await get_session(public=not private)
    headers = {**sent.headers, **secret.headers}
    if cookies := "; ".join(filter(None, [headers.pop("Cookie", ""), *secret.cookies])):
        headers["Cookie"] = cookies
    url = sent.url
    if secret.query:
        url += ("&" if "?" in url else "?") + "&".join(secret.query)
    try:
        return await session.request(
            sent.method,
            URL(url, encoded=True),
            data=sent.body,
            headers=headers,
            skip_auto_headers=("Content-Type",),  # without a body there is none
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT),
            allow_redirects=False,
        )
    except aiohttp.ConnectionTimeoutError:
        raise ToolError(f"no connection to {_host(url)} within {CONNECT:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ToolError(_unreached(error, url)) from None


def _unreached(error: Exception, url: str) -> str:
    host = _host(url)
    inner = getattr(error, "os_error", error)
    if isinstance(inner, PrivateAddress) or NOT_PUBLIC in str(inner):
        return (
            f"{host} resolves to an address on this machine or in a private network ({inner}), which is reached only if "
            f'you name the server: server="{urlsplit(url).scheme}://{host}/…" of toolspeak.openapi. On the command line, '
            "write `api = toolspeak.openapi(DOCUMENT, server=…)` into api.py, and name api.py:api instead of the document"
        )
    return f"no answer from {host} ({cause(error)})"


async def _body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    import aiohttp

    body = bytearray()
    try:
        while chunk := await response.content.readany():
            body += chunk
            if len(body) > limit:
                raise ToolError(f"the answer has more than {limit:,} bytes: ask for less of it")
    except (aiohttp.ClientError, OSError) as error:
        raise ToolError(f"the answer broke off ({cause(error)})") from None
    return bytes(body)


def _redirected(sent: SentRequest, status: int, location: str) -> SentRequest:
    """Return the request for a redirect. Raises ToolError if it must not be followed."""
    try:
        target = urljoin(sent.url, location)
        address = parse_address(target).public
        here, there = origin(sent.url), origin(target)
    except (UsageError, ValueError):
        raise ToolError(
            f"the server redirects to {excerpt(location.partition('?')[0], 100)!r}, which is not a valid address"
        ) from None
    if here == there:
        if status in (307, 308) or sent.method in ("GET", "HEAD"):
            return SentRequest(sent.method, target, sent.headers, sent.body)
        headers = {name: text for name, text in sent.headers.items() if name.lower() != "content-type"}
        return SentRequest("GET", target, headers)
    if sent.method not in ("GET", "HEAD"):
        raise ToolError(f"the server redirects a {sent.method} to another one, {address}, which is not followed")
    if here[0] == "https" and there[0] != "https":
        raise ToolError(f"the server redirects to {address}, without encryption, which is not followed")
    return SentRequest(sent.method, target, {"Accept": sent.headers.get("Accept", "*/*")})


def _host(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
