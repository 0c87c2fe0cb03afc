"""Logs in at an MCP server by OAuth, in a browser. The SDK's provider runs the flow; this module waits for its end.

The server's metadata names its authorization server. toolspeak registers there as a client, opens the browser with a
challenge (PKCE), and receives the code at an address on this machine. Nothing that a server says about tokens, codes or
states is shown or logged: messages contain only the standard fields `error` and `error_description`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp.shared.exceptions import MCPError
from pydantic import AnyUrl

from ...api.upstream_errors import excerpt
from ...errors import ToolError, ToolspeakError, UsageError
from ...secret_removal import Secrets
from .bearer import TIMEOUT, is_usable, refuse_plain, revoke
from .config import McpAddress
from .connection import Connection, listed
from .login_redirect import Redirect
from .logins import Login, Logins

PATIENCE = 300.0
"""Seconds for the user to log in with the browser."""
REQUESTS = 60.0
"""Seconds for all requests to servers together."""


async def log_in(address: McpAddress, logins: Logins, tell: Callable[[str], None], *, port: int = 0) -> int:
    """Log in at a server, store the login, and return the number of tools that the server then offers.

    `tell` gets the address to open in a browser, which is redirected to `port` on this machine (0: any free one).
    Raises UsageError for a server that requires no login or that may not be sent one, ToolError for one that refuses
    it.
    """
    refuse_plain(address.url, address)
    async with logins.locked():  # check before the login that it can be stored
        logins.read(address.url)
    async with Redirect(tell, port, PATIENCE) as redirect:
        flow = Flow(address, logins, redirect)
        logger = logging.getLogger("mcp.client.auth.oauth2")
        logger.addFilter(_nothing)  # it logs responses, including tokens
        link = Connection(address, REQUESTS, _ignore, flow.secrets, flow)
        try:
            async with asyncio.timeout(PATIENCE + REQUESTS):
                tools = await listed(await link.ready)
        except (ToolspeakError, MCPError, TimeoutError) as error:
            raise flow.failure or _unusable(address, error, flow) from None
        finally:
            await link.close()
            logger.removeFilter(_nothing)
    if not flow.stored:
        raise UsageError(f"the MCP server {address.description} asks for no login: its tools can be used as they are")
    return len(tools)


async def log_out(address: McpAddress, logins: Logins) -> str:
    """Delete the login at a server, and revoke it there. Returns why the server did not revoke it, "" if it did or
    cannot.

    Raises UsageError if there is no login.
    """
    async with logins.locked():
        login = logins.read(address.url)
        if login is None:
            others = logins.addresses()
            there = f"There are logins at {', '.join(others)}" if others else "There is no login at all"
            raise UsageError(f"there is no login at {address.description}. {there}")
        logins.put(address.url, None)
    return await revoke(address, login)


def _nothing(_: logging.LogRecord) -> bool:
    return False


async def _ignore(_: Any) -> None:
    """Ignore tools that change during a login: they are listed when they are used."""


def _unusable(address: McpAddress, error: BaseException, flow: Flow) -> ToolError:
    message = "it was logged in at, but " if flow.stored else ""
    why = "gave no answer in time" if isinstance(error, TimeoutError) else f"cannot be used: {error}"
    return ToolError(f"the MCP server {address.description}: {message}{why}")


class Flow(OAuthClientProvider):
    """The SDK's provider for one login. Its requests are bounded, and its first failure ends it."""

    def __init__(self, address: McpAddress, logins: Logins, redirect: Redirect) -> None:
        super().__init__(
            address.url.partition("#")[0],
            OAuthClientMetadata(client_name="toolspeak", redirect_uris=[AnyUrl(redirect.uri)]),
            self,
            self._open,
            self._result,
        )
        self.address = address
        self.logins = logins
        self.redirect = redirect
        self.stored = False
        self._codes: list[str] = []
        self.failure: ToolspeakError | None = None
        """Why the login failed, None if it has not."""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if self.failure is not None:  # otherwise the SDK would retry another way, and open the browser again
            raise self.failure
        flow, outgoing = super().async_auth_flow(request), request
        try:
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:
                    refuse_plain(str(outgoing.url), self.address)
                    outgoing.extensions = {**outgoing.extensions, "timeout": TIMEOUT.as_dict()}
                response = yield outgoing
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        except GeneratorExit:
            if outgoing is not request:  # the request could not be sent, or the response not be read
                self.failure = self._readable(httpx2.RequestError("no answer that can be read", request=outgoing))
            raise
        except (OAuthFlowError, ToolspeakError, ValueError) as error:
            # Not the original error: a log of it would contain the server's response.
            self.failure = self._readable(error)
            raise self.failure from None
        finally:
            await flow.aclose()

    async def _open(self, url: str) -> None:
        refuse_plain(url, self.address)
        await self.redirect.open(url)

    async def _result(self) -> AuthorizationCodeResult:
        result = await self.redirect.result()
        self._codes.append(result.code)
        return result

    def secrets(self) -> Secrets:
        """Return what no message may contain: the code, the tokens and the client's secret."""
        client, tokens = self.context.client_info, self.context.current_tokens
        parts = [client and client.client_secret, tokens and tokens.access_token, tokens and tokens.refresh_token]
        return Secrets([*self.address.secrets, *self._codes, *filter(None, parts)])

    # where the provider keeps what it gets

    async def get_tokens(self) -> OAuthToken | None:
        """Return None, so that the provider starts a new login."""
        return None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return None: a client is registered with its redirect address, which is new each time."""
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Do nothing: the client is stored with the tokens."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store the login, with everything that a renewal needs."""
        if not is_usable(tokens.access_token):
            raise OAuthTokenError("the token cannot be sent")
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
        self.stored = True

    # what went wrong

    def _readable(self, error: Exception) -> ToolspeakError:
        if isinstance(error, ToolspeakError):
            return error
        why = self.secrets().out_of(self._why(error))
        return ToolError(f"the login at the MCP server {self.address.description} failed: {why}")

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
    """Return the status and the standard fields of the response in an SDK error, and nothing else of it."""
    status = re.search(r"\b[45][0-9]{2}\b", text.partition("{")[0])
    try:
        body: Any = json.loads(text[text.index("{") :])
    except ValueError:
        body = {}
    fields = [excerpt(str(body[name])) for name in ("error", "error_description") if isinstance(body.get(name), str)]
    return (f" (HTTP {status[0]})" if status else "") + (f": {', '.join(fields)}" if fields else "")
