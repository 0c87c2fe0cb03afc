"""The logins at MCP servers, in a file that only its user can read.

`toolspeak mcp login` writes the file. Every connection to a server over HTTP reads it (`session`): those of a program,
of the command line and of the gateway.

A login contains the tokens and everything needed to renew them. The SDK's provider keeps the expiry time and the
renewal address only in the process that logged in.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Any, cast

from ...errors import UsageError
from ...files import replacing, state_folder, take_lock, user_path
from .config import McpAddress
from .server_identity import plain_url

VARIABLE = "TOOLSPEAK_LOGINS"
FORM = 1
"""The version of the file's format."""
ABOUT = "Logins at MCP servers, which are secret. `toolspeak mcp login` and `toolspeak mcp logout` change them."
MARGIN = 10.0
"""Seconds before its expiry at which a token is renewed, because a request takes time to arrive."""
PAUSE = 0.05
"""Seconds between two attempts to get a lock that another process holds."""


@dataclass(frozen=True, slots=True)
class Login:
    """The tokens of one server, and what is needed to renew them. `expires_at` is in seconds since 1970."""

    access_token: str = field(repr=False)
    token_endpoint: str
    client_id: str
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    client_secret: str | None = field(default=None, repr=False)
    auth_method: str | None = None
    resource: str | None = None
    scope: str | None = None
    revocation_endpoint: str | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """The tokens and secrets, which must not be shown."""
        return tuple(filter(None, (self.access_token, self.refresh_token, self.client_secret)))

    def is_stale(self, now: float) -> bool:
        """Whether the token must be renewed before use."""
        return self.expires_at is not None and now > self.expires_at - MARGIN


def default_path() -> Path | None:
    """Return the user's file of logins: $TOOLSPEAK_LOGINS, else in the state folder; None if it is `off`."""
    return user_path(VARIABLE, state_folder, "mcp-logins.json")


def login_hint(address: McpAddress) -> str:
    """Return advice for a server that requires a login."""
    return f'run `toolspeak mcp login {address.description}`, or give it a key: headers={{"Authorization": "Bearer …"}}'


class Logins:
    """The logins in a file, by address. Each method raises UsageError if the file cannot be read or written."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def read(self, url: str) -> Login | None:
        """Return the login at a server, None if there is none."""
        row = self._read().get(plain_url(url))
        if row is None:
            return None
        known = {one.name for one in fields(Login)}
        try:
            return Login(**{name: value for name, value in row.items() if name in known})
        except TypeError:
            raise self._unreadable("it lacks a field of a login") from None

    def addresses(self) -> list[str]:
        """Return the servers with a login."""
        return [*self._read()]

    def put(self, url: str, login: Login | None) -> None:
        """Store a login, or delete it (None). The caller must hold the lock."""
        logins = self._read()
        logins.pop(plain_url(url), None)
        if login is not None:
            logins[plain_url(url)] = {name: value for name, value in asdict(login).items() if value is not None}
        text = json.dumps({"about": ABOUT, "form": FORM, "logins": logins}, indent=1)
        try:
            with replacing(self._place(), mode=0o600) as file:
                file.write(f"{text}\n".encode())
        except OSError as error:
            raise UsageError(f"the login cannot be kept in {self.path}: {error.strerror or error}") from None

    @contextlib.asynccontextmanager
    async def locked(self) -> AsyncGenerator[None]:
        """Allow one writer at a time, across processes if the platform has file locks: a refresh token that is valid
        once must not be used twice."""
        with self._lock_file() as lock:
            while not take_lock(lock, wait=False):
                await asyncio.sleep(PAUSE)
            yield

    @contextlib.contextmanager
    def _lock_file(self) -> Generator[IO[str]]:
        path = self._place()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = path.with_name(path.name + ".lock").open("a")
        except OSError as error:
            raise UsageError(f"logins cannot be kept in {path}: {error.strerror or error}") from None
        with lock:
            yield lock

    def _place(self) -> Path:
        if self.path is None:
            raise UsageError(f"logins are switched off by ${VARIABLE}: name a file in it, or unset it")
        return self.path

    def _read(self) -> dict[str, Mapping[str, Any]]:
        if self.path is None:
            return {}
        try:
            content: Any = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from None
        except ValueError:
            raise self._unreadable("it is not JSON") from None
        rows: Any = cast("dict[str, Any]", content).get("logins") if isinstance(content, dict) else None
        if not isinstance(rows, dict) or cast("dict[str, Any]", content).get("form") != FORM:
            raise self._unreadable(f"expected an object with form {FORM} and logins")
        logins = cast("dict[str, Any]", rows)
        if not all(isinstance(one, dict) for one in logins.values()):
            raise self._unreadable("expected an object for each login")
        return logins

    def _unreadable(self, why: str) -> UsageError:
        return UsageError(f"the logins in {self.path} cannot be read: {why}. Remove the file, and log in again")
