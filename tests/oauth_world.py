"""A real MCP server that asks for a login, and its authorization server, by the SDK; what goes wrong is set on it."""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

PATH = "/mcp"


class World:
    """The state of both servers. `url` is the MCP server's; the rest is what happened, and what is to go wrong."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}{PATH}"
        self.origin = f"http://127.0.0.1:{port}"
        self.reset()

    def reset(self) -> None:
        """Both servers as they are at first."""
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refreshing: dict[str, RefreshToken] = {}
        self.given: list[OAuthToken] = []
        self.grants: list[str] = []
        self.used_codes: list[str] = []
        self.resources: list[str | None] = []
        self.revoked: list[str] = []
        self.expires_in: int | None = 3600
        self.denies = self.refuses_codes = self.repeats_codes = False
        self.answers: dict[str, tuple[int, Any]] = {}
        """What is answered at paths in place of what the servers would; a path that ends in * is the beginning of many."""

    def forget_tokens(self) -> None:
        """As a server does that was restarted: what was given out is no longer accepted."""
        self.access.clear()

    # the provider that the SDK asks

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        back = str(params.redirect_uri)
        if self.denies:
            return construct_redirect_uri(
                back, error="access_denied", error_description="Not\x1b[31m today", state=params.state
            )
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [],
            expires_at=time.time() + 300,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(back, code=code.code, state=params.state)

    async def load_authorization_code(self, _: Any, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        self.used_codes.append(self.codes.pop(authorization_code.code).code)
        if self.repeats_codes:
            raise TokenError("invalid_grant", f"no {authorization_code.code}")
        self.resources.append(authorization_code.resource)
        if self.refuses_codes:
            raise TokenError("invalid_grant", "the code is worn out")
        return self._tokens("authorization_code", client.client_id, authorization_code.resource)

    async def load_refresh_token(self, _: Any, refresh_token: str) -> RefreshToken | None:
        return self.refreshing.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: Any) -> OAuthToken:
        del self.refreshing[refresh_token.token]  # it is good for once
        return self._tokens("refresh_token", client.client_id, self.resources[-1])

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: Any) -> None:
        self.revoked.append(token.token)

    def _tokens(self, grant: str, client: str, resource: str | None) -> OAuthToken:
        access, renewing = "access-" + secrets.token_urlsafe(24), "refresh-" + secrets.token_urlsafe(24)
        self.access[access] = AccessToken(token=access, client_id=client, scopes=[], resource=resource)
        self.refreshing[renewing] = RefreshToken(token=renewing, client_id=client, scopes=[])
        self.grants.append(grant)
        self.given.append(OAuthToken(access_token=access, refresh_token=renewing, expires_in=self.expires_in))
        return self.given[-1]

    @property
    def secrets(self) -> list[str]:
        """Every token that was given out."""
        return [text for one in self.given for text in (one.access_token, str(one.refresh_token))]

    # what no provider of the SDK does

    def __call__(self, app: Any) -> Any:
        """The servers' application, with what is to go wrong before it."""

        async def with_faults(scope: Any, receive: Any, send: Any) -> None:
            path = str(scope.get("path", ""))
            fitting = [answer for pattern, answer in self.answers.items() if fnmatchcase(path, pattern)]
            if not fitting:
                await app(scope, receive, send)
                return
            status, value = fitting[0]
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": json.dumps(value).encode()})

        return with_faults


@contextmanager
def oauth_world() -> Iterator[World]:
    """Both servers, on one port of this machine."""
    listening = socket.create_server(("127.0.0.1", 0))
    world = World(listening.getsockname()[1])
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(world.origin),
        resource_server_url=AnyHttpUrl(world.url),
        client_registration_options=ClientRegistrationOptions(enabled=True),
        revocation_options=RevocationOptions(enabled=True),
        validate_token_resource=True,
    )
    server = MCPServer("guarded", auth_server_provider=world, auth=settings)

    @server.tool()
    def echo(text: str) -> str:
        """Says it again."""
        return text

    @server.tool()
    def leak() -> str:
        """Says the token that is used."""
        return world.given[-1].access_token

    app = world(server.streamable_http_app(streamable_http_path=PATH))
    running = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield world
    finally:
        running.should_exit = True
        thread.join()


def browse(url: str, **changed: str) -> None:
    """A browser without a screen: it follows redirects, with other fields in the one that leads back where asked."""
    opener = urllib.request.build_opener(_Back(changed))
    try:
        with opener.open(url) as response:
            response.read()
    except urllib.error.HTTPError as error:
        error.close()


class _Back(urllib.request.HTTPRedirectHandler):
    def __init__(self, changed: dict[str, str]) -> None:
        self.changed = changed

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str) -> Any:
        parts = urlsplit(newurl)
        if parts.path == "/callback":
            fields = {name: values[0] for name, values in parse_qs(parts.query).items()} | self.changed
            newurl = urlunsplit(parts._replace(query=urlencode(fields)))
        return super().redirect_request(req, fp, code, msg, headers, newurl)
