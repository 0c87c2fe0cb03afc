"""Addresses of servers, and the part of them that may be shown: no credentials, no keys."""

from __future__ import annotations

import base64
import ipaddress
import re
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote, urlsplit

from ...errors import UsageError

USERINFO = re.compile(r"//[^/?#]*@")
LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
"""The usual names of this machine."""


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """A server's base address. `public` is without user, password and query, which may be secret."""

    public: str
    query: str = ""
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Address({self.public!r})"

    def url(self, path: str) -> str:
        return self.public + path + (f"?{self.query}" if self.query else "")

    @property
    def root(self) -> Address:
        """The server's address without the API's path, such as `/v1`."""
        return replace(self, public=self.public.removesuffix("/v1"))

    @property
    def basic(self) -> str:
        """The `Authorization` header for user and password, "" without them."""
        if not (self.user or self.password):
            return ""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    @property
    def secrets(self) -> list[str]:
        """Return everything that must not be shown, in each form in which a server may echo it."""
        parts = [self.user, self.password, quote(self.password, safe=""), self.basic.removeprefix("Basic "), self.query]
        return [part for part in [*parts, *(pair.partition("=")[2] for pair in self.query.split("&"))] if part]


def parse_address(url: str, *, default_path: str = "", endpoint: str = "") -> Address:
    """Return the address in a URL, with `default_path` if it has none, and without `endpoint` if it has that."""
    safe = USERINFO.sub("//", url).partition("?")[0]
    expected = f"expected an address such as http://localhost:8000/v1, got {safe!r}"
    try:
        parts = urlsplit(url.strip())
        port = parts.port
        (parts.hostname or "").encode("idna")  # encoded as the resolver does, which refuses empty and too long labels
    except UnicodeError:
        raise UsageError(f"{expected}: its host name is invalid") from None
    except ValueError as error:
        raise UsageError(f"{expected}: {USERINFO.sub('//', str(error))}") from None
    if any((parts.scheme not in ("http", "https"), not parts.hostname, port == 0)):
        raise UsageError(expected)
    if re.search(r"[\s\x00-\x1f]", parts.netloc + parts.path):
        raise UsageError(f"{expected}: it contains a blank")
    path = parts.path.rstrip("/").removesuffix(endpoint).rstrip("/") or default_path
    host = parts.netloc.rpartition("@")[2]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Address(f"{parts.scheme}://{host}{path}", parts.query, user, password)


def is_loopback(host: str) -> bool:
    """Whether an address or name is of this machine. False if that is unknown."""
    bare = host.strip("[]").lower()
    if bare in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False
