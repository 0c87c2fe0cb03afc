"""The addresses of an OpenAPI document's operations: servers, their variables, and relative addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urljoin

from ...errors import UsageError
from ...models.http.address import parse_address
from ...schema.suggestions import did_you_mean, listed as names_of, near
from .document import Document
from .fetching import Origin, origin
from .operations import NamedOperation


class Servers:
    """The base address of each operation. `user_base` replaces everything that the document says; `variables` fill the
    placeholders in its addresses."""

    def __init__(self, document: Document, address: str | None, variables: Mapping[str, str] | None) -> None:
        self.document = document
        self.user_base = _base(address, "server") if address else None
        self.variables = dict(variables or {})
        if unknown := [name for name in self.variables if name not in (known := self._variables())]:
            raise UsageError(
                f"{document.name} has no server variable {unknown[0]!r}.{did_you_mean(near(unknown[0], known))}"
            )

    @property
    def private(self) -> frozenset[Origin]:
        """Return the origins that the configuration names: they may be anywhere, also on this machine."""
        return frozenset(origin(url) for url in (self.user_base, self.document.url) if url)

    def base(self, named: NamedOperation | None = None) -> str:
        """Return the base address of an operation, or of the whole document, without a trailing slash."""
        if self.user_base:
            return self.user_base
        owners = (named.node, named.item, self.document.data) if named else (self.document.data,)
        listed: Any = next((owner["servers"] for owner in owners if owner.get("servers")), [{"url": "/"}])
        if not isinstance(listed, list):
            raise UsageError(f"{self.document.name}: servers must be a list")
        first = self.document.follow(cast("list[Any]", listed)[0], "#/servers/0")
        url = self._filled(first)
        if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", url):
            if not self.document.url:
                raise UsageError(
                    f"{self.document.name} names no server (its address is {url!r}, relative to where "
                    'the document is from): pass it with server="https://…"'
                )
            url = urljoin(self.document.url, url)
        return _base(url, f"{self.document.name}: its server")

    def _filled(self, server: Mapping[str, Any]) -> str:
        url = server.get("url", "/")
        if not isinstance(url, str):
            raise UsageError(f"{self.document.name}: the address of a server must be a text")
        declared: Any = server.get("variables")
        variables = cast("Mapping[str, Any]", declared if isinstance(declared, Mapping) else {})

        def value(match: re.Match[str]) -> str:
            name = match[1]
            about = self.document.follow(variables.get(name, {}), f"#/servers/0/variables/{name}")
            chosen = self.variables.get(name, about.get("default"))
            if not isinstance(chosen, str):
                raise UsageError(
                    f"{self.document.name}: the server {url!r} needs a value for {name}: variables={{{name!r}: …}}"
                )
            listed: Any = about.get("enum")
            if isinstance(listed, list) and chosen not in cast("list[Any]", listed):
                raise UsageError(
                    f"the server variable {name!r} is one of {names_of([str(one) for one in cast('list[Any]', listed)])}, not {chosen!r}"
                )
            return chosen

        return re.sub(r"\{([^{}]+)\}", value, url)

    def _variables(self) -> set[str]:
        listed: Any = self.document.data.get("servers")
        names: set[str] = set()
        for one in cast("list[Any]", listed if isinstance(listed, list) else []):
            if isinstance(one, Mapping) and isinstance(cast("Any", one).get("variables"), Mapping):
                names |= cast("Any", one)["variables"].keys()
        return names


def _base(url: str, what: str) -> str:
    try:
        address = parse_address(url)
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from None
    if address.user or address.password:
        raise UsageError(f"{what}: an address must not contain a password; pass it with auth=…")
    return address.public
