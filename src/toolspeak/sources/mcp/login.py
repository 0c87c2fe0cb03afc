"""Logs in at an MCP server by OAuth, in a browser: the SDK's provider does the flow, this waits for its end.

The server says by its metadata where its authorization server is; toolspeak registers there as a client, sends the
browser there with a challenge (PKCE), and takes the code that comes back to an address of this machine. Nothing that a
server says of tokens, codes or states is shown or logged: its words are kept out of messages but for the standard
fields `error` and `error_description`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp.shared.exceptions import MCPError
from pydantic import AnyUrl

from ...api.upstream_errors import excerpt
from ...errors import ToolError, ToolspeakError, UsageError
from ...models.http.address import is_loopback
from .bearer import TIMEOUT, revoke
from .config import Address
from .connection import Connection, listed
from .login_redirect import Redirect
from .logins import Login, Logins

PATIENCE = 300.0
"""Seconds for somebody to answer in the browser."""
REQUESTS = 60.0
"""Seconds for all that is asked of servers meanwhile."""


async def log_in(address: Address, logins: Logins, tell: Callable[[str], None], *, port: int = 0) -> int:
    """Logs in at a server and keeps the login; how many tools it offers then. `tell` gets the address to be opened in a
    browser, which comes back to `port` of this machine (0: any that is free).

    Raises UsageError for a server that asks for no login or may not be sent one, ToolError for one that refuses it.
    """
    _refuse_plain(address.url, address)
    async with logins.locked():  # what cannot be kept is told before somebody logs in
        logins.read(address.url)
    async with Redirect(tell, port, PATIENCE) as redirect:
        flow = Flow(address, logins, redirect)
        logger = logging.getLogger("mcp.client.auth.oauth2")
        logger.addFilter(_nothing)  # it logs what servers answer, tokens included
        link = Connection(address, REQUESTS, _ignore, flow)
        try:
            async with asyncio.timeout(PATIENCE + REQUESTS):
                found = await listed(await link.ready)
        except (ToolspeakError, MCPError, TimeoutError) as error:
            raise flow.failure or _unusable(address, error, flow) from None
        finally:
            await link.close()
            logger.removeFilter(_nothing)
    if not flow.kept:
        raise UsageError(f"the MCP server {address.description} asks for no login: its tools can be used as they are")
    return len(found)


async def log_out(address: Address, logins: Logins) -> str:
    """Forgets the login at a server, which is asked to end it; why it did not, "" where it did or cannot be asked.

    Raises UsageError where there is none.
    """
    async with logins.locked():
        login = logins.read(address.url)
        if login is None:
            others = logins.addresses()
            there = f"There are logins at {', '.join(others)}" if others else "There is no login at all"
            raise UsageError(f"there is no login at {address.description}. {there}")
        logins.put(address.url, None)
    return await revoke(login)


def _nothing(_: logging.LogRecord) -> bool:
    return False


async def _ignore(_: Any) -> None:
    """Tools that change during a login are listed when they are used."""


def _unusable(address: Address, error: BaseException, flow: Flow) -> ToolError:
    said = "it was logged in at, but " if flow.kept else ""
    why = "gave no answer in time" if isinstance(error, TimeoutError) else f"cannot be used: {error}"
    return ToolError(f"the MCP server {address.description}: {said}{why}")


def _refuse_plain(url: str, server: Address) -> None:
    """Raises UsageError for an address over which no secret may go: only https, or this machine for a server on it."""
    parts, own = urlsplit(url), urlsplit(server.url)
    if parts.scheme == "https" or (is_loopback(parts.hostname or "") and is_loopback(own.hostname or "")):
        return
    raise UsageError(
        f"a login goes over https only, or to this machine for a server on it; got {parts.scheme}://{parts.netloc} "
        f"for the MCP server {server.description}"
    )


class Flow(OAuthClientProvider):
    """The SDK's provider for one login, whose requests are bounded and whose first failure is its last."""

    def __init__(self, address: Address, logins: Logins, redirect: Redirect) -> None:
        super().__init__(
            address.url.partition("#")[0],
            OAuthClientMetadata(client_name="toolspeak", redirect_uris=[AnyUrl(redirect.uri)]),
            self,
            self._open,
            redirect.result,
        )
        self.address = address
        self.logins = logins
        self.redirect = redirect
        self.kept = False
        self.failure: ToolspeakError | None = None
        """Why the login failed, for people; None while it has not."""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if self.failure is not None:  # the SDK would ask the server in another way, and open the browser once more
            raise self.failure
        flow, outgoing = super().async_auth_flow(request), request
        try:
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:
                    _refuse_plain(str(outgoing.url), self.address)
                    outgoing.extensions = {**outgoing.extensions, "timeout": TIMEOUT.as_dict()}
                response = yield outgoing
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        except GeneratorExit:
            if outgoing is not request:  # the client could not send it, or read the answer
                self.failure = self._readable(httpx2.RequestError("no answer that can be read", request=outgoing))
            raise
        except (OAuthFlowError, ToolspeakError, ValueError) as error:
            # Not as it came: whoever logs it would log what servers answered.
            self.failure = self._readable(error)
            raise self.failure from None
        finally:
            await flow.aclose()

    async def _open(self, url: str) -> None:
        _refuse_plain(url, self.address)
        await self.redirect.open(url)

    # where the provider keeps what it gets

    async def get_tokens(self) -> OAuthToken | None:
        """None: whoever logs in wants a new login."""
        return None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """None: a client is registered with the address that its browser comes back to, which is new each time."""
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Nothing: it is kept with the tokens."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keeps the login, with all that renewing it takes."""
        context = self.context
        client, metadata = cast("OAuthClientInformationFull", context.client_info), context.oauth_metadata
        revocation = metadata.revocation_endpoint if metadata else None
        resource = (
            context.get_resource_url() if context.should_include_resource_param(context.protocol_version) else None
        )
        login = Login(
            access_token=tokens.access_token,
            token_endpoint=self._get_token_endpoint(),
            client_id=client.client_id,
            refresh_token=tokens.refresh_token,
            expires_at=None if tokens.expires_in is None else time.time() + tokens.expires_in,
            client_secret=client.client_secret,
            auth_method=client.token_endpoint_auth_method,
            resource=resource,
            scope=tokens.scope,
            revocation_endpoint=str(revocation) if revocation else None,
        )
        async with self.logins.locked():
            self.logins.put(self.address.url, login)
        self.kept = True

    # what went wrong

    def _readable(self, error: Exception) -> ToolspeakError:
        if isinstance(error, ToolspeakError):
            return error
        return ToolError(f"the login at the MCP server {self.address.description} failed: {self._why(error)}")

    def _why(self, error: Exception) -> str:
        metadata = self.context.oauth_metadata
        if isinstance(error, OAuthRegistrationError):
            if metadata is None:
                return (
                    "it does not say where to log in (no metadata at /.well-known/oauth-protected-resource or "
                    '/.well-known/oauth-authorization-server). Give it a key: headers={"Authorization": "Bearer …"}'
                )
            if metadata.registration_endpoint is None:
                return (
                    f"the authorization server {metadata.issuer} lets no program register itself. Give the MCP server "
                    'a key: headers={"Authorization": "Bearer …"}'
                )
            return f"the authorization server {metadata.issuer} registered no client{_oauth_error(str(error))}"
        if isinstance(error, OAuthTokenError):
            return f"the authorization server gave no token that can be used{_oauth_error(str(error))}"
        if isinstance(error, OAuthFlowError):
            return excerpt(str(error))
        if isinstance(error, httpx2.RequestError):
            return f"{error.request.url.scheme}://{error.request.url.netloc.decode()} gave {error}"
        return f"what a server answered cannot be used ({type(error).__name__})"


def _oauth_error(text: str) -> str:
    """The status and the standard fields of an answer that the SDK has put into its message; nothing else of it."""
    status = re.search(r"\b[45][0-9]{2}\b", text.partition("{")[0])
    try:
        told: Any = json.loads(text[text.index("{") :])
    except ValueError:
        told = {}
    fields = [excerpt(str(told[name])) for name in ("error", "error_description") if isinstance(told.get(name), str)]
    return (f" (HTTP {status[0]})" if status else "") + (f": {', '.join(fields)}" if fields else "")
