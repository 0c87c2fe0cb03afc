"""Sends the token of a login with each request to an MCP server, and renews it.

The SDK's provider is made for logging in: it allows one request at a time, and after a restart it does not know when a
token expires or where to renew it. Here only the renewal is exclusive, across all processes.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import TokenStorage
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import ValidationError

from ...errors import UsageError
from ...models.http.address import is_loopback
from .config import McpAddress
from .limits import current
from .logins import Login, Logins, login_hint
from .transports import bounded

log = logging.getLogger(__name__)

TIMEOUT = httpx2.Timeout(30.0)
"""The time limit of one request to an authorization server."""


class Bearer(httpx2.Auth):
    """The token of the login at a server, if there is one. If the server requires another one, `problem` says so."""

    def __init__(self, address: McpAddress, logins: Logins) -> None:
        self.address = address
        self.logins = logins
        self.problem = ""
        """What to do if the server requires a login, "" if it does not."""
        self.secrets: tuple[str, ...] = ()
        """Tokens that were sent or may be sent, to be removed from answers."""
        self._renewing = ""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        login = await self._fresh(self._read())
        response = yield _with_token(request, login)
        if response.status_code == 401:
            newer = await self._renewed(login)
            if newer not in (None, login):
                login = newer
                response = yield _with_token(request, login)
        self._note(response.status_code, login)

    def _read(self) -> Login | None:
        login = self.logins.read(self.address.url)
        self.secrets = login.secrets if login else ()
        return login

    def _note(self, status: int, login: Login | None) -> None:
        """Remember what a refusal means, for the connection and for this request."""
        if status != 401:
            self.problem = self._renewing = ""
            return
        why = self._renewing or ("the login is no longer accepted" if login else "it asks for a login")
        self.problem = f"{why} (HTTP 401): {login_hint(self.address)}"
        if (ours := current.get()) is not None:
            ours.problem = self.problem

    async def _fresh(self, login: Login | None) -> Login | None:
        if login is None:
            return None
        return await self._renewed(login) if login.is_stale(time.time()) else login

    async def _renewed(self, old: Login | None) -> Login | None:
        """Return the login that is valid now: another process may have renewed it, or the user logged in meanwhile."""
        if old is None:
            return self._read()
        async with self.logins.locked():
            if self._read() == old:
                newer = await self._refresh(old)
                if newer != old:
                    self.logins.put(self.address.url, newer)
        return self._read()

    async def _refresh(self, login: Login) -> Login | None:
        """Return the login with new tokens; None if it has ended; unchanged if it cannot be renewed now, or ever."""
        if login.refresh_token is None:
            return login
        form = {"grant_type": "refresh_token", "refresh_token": login.refresh_token}
        try:
            response = await post(self.address, login, login.token_endpoint, form)
            body = await response.aread()
        except (httpx2.HTTPError, UsageError) as error:
            self._renewing = f"the login cannot be renewed: {_reason(error)}"
            return login
        if response.status_code in (400, 401):  # RFC 6749, 5.2: the grant or the client is no longer valid
            self._renewing = "the login has ended"
            log.info("%s: the login has ended", self.address.description)
            return None
        try:
            tokens = OAuthToken.model_validate_json(body) if response.status_code == 200 else None
        except ValidationError:
            tokens = None
        if tokens is None or not is_usable(tokens.access_token):
            self._renewing = f"the login cannot be renewed: HTTP {response.status_code} with no token"
            return login
        new = tokens.model_dump(include={"access_token", "refresh_token", "scope"}, exclude_none=True)
        return replace(login, expires_at=None if tokens.expires_in is None else time.time() + tokens.expires_in, **new)


def _with_token(request: httpx2.Request, login: Login | None) -> httpx2.Request:
    if login is not None:
        request.headers["Authorization"] = f"Bearer {login.access_token}"
    return request


def is_usable(token: str) -> bool:
    """Whether a token can be sent in a header (RFC 6750, 2.1)."""
    return bool(re.fullmatch(r"[\x21-\x7e]+", token))


def refuse_plain(url: str, server: McpAddress) -> None:
    """Raises UsageError for an address over which no secret may be sent: anything but https, or loopback for a local
    server."""
    parts = urlsplit(url)
    if any((parts.scheme == "https", all(is_loopback(str(urlsplit(one).hostname)) for one in (url, server.url)))):
        return
    raise UsageError(
        f"a login goes over https only, or to this machine for a server on it; got {parts.scheme}://{parts.netloc} "
        f"for the MCP server {server.description}"
    )


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, UsageError) else type(error).__name__


async def post(server: McpAddress, login: Login, url: str, form: dict[str, str]) -> httpx2.Response:
    """Return an authorization server's response to a form of the login's client. Raises UsageError for an address that
    may get no secret."""
    refuse_plain(url, server)
    form |= {"client_id": login.client_id, **({"resource": login.resource} if login.resource else {})}
    form, headers = _client(login).prepare_token_auth(form, {})
    async with httpx2.AsyncClient(
        transport=bounded(), timeout=TIMEOUT, trust_env=False, headers={"Accept-Encoding": "identity"}
    ) as http:
        return await http.post(url, data=form, headers=headers)


def _client(login: Login) -> OAuthContext:
    """Return the SDK's context for the client of a login."""
    unused: Any = None
    storage: TokenStorage = unused
    context = OAuthContext(login.token_endpoint, OAuthClientMetadata(redirect_uris=None), storage, None, None)
    context.client_info = OAuthClientInformationFull(
        client_id=login.client_id,
        client_secret=login.client_secret,
        token_endpoint_auth_method=login.auth_method,
    )
    return context


async def revoke(server: McpAddress, login: Login) -> str:
    """Revoke the tokens of a login at a server. Returns why that failed, "" if it worked or the server does not
    support it."""
    if not login.revocation_endpoint:
        return ""
    try:
        form = {"token": login.refresh_token or login.access_token}
        response = await post(server, login, login.revocation_endpoint, form)
    except (httpx2.HTTPError, UsageError) as error:
        return _reason(error)
    return "" if response.status_code == 200 else f"HTTP {response.status_code}"
