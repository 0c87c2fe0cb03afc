"""Restricts a gateway without keys to clients on this machine that use a loopback name.

A web page can make its own name resolve to this machine (DNS rebinding), and would then send requests from a user's
browser. So a gateway on loopback answers only if the `Host` header names loopback.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...errors import Refused, UsageError
from ...models.http.address import is_loopback
from ..config.settings import GatewaySettings

PORT = re.compile(r"(\[[^]]*]|[^:]*):[0-9]+")
"""A name or an address, and a port behind it: an address with colons stands in brackets."""


def check_openness(settings: GatewaySettings) -> None:
    """Raises UsageError if other machines could use the gateway without a key, unless `insecure` is set."""
    if not any((settings.keys, settings.insecure, is_loopback(settings.host))):
        raise UsageError(
            f"at {settings.host or 'every address'} others could reach this gateway without a key. Set "
            "$TOOLSPEAK_GATEWAY_KEY or [keys.NAME] in the configuration, listen at 127.0.0.1, or use --insecure"
        )


def check_host(headers: Iterable[tuple[bytes, bytes]], settings: GatewaySettings) -> None:
    """Raises Refused if the gateway has no keys and listens on loopback, but the `Host` header names another host."""
    if settings.keys or settings.insecure:
        return
    for host in (value.decode("latin-1") for name, value in headers if name == b"host"):
        if not names_loopback(host):
            message = "this gateway has no key, so it accepts only requests whose Host header names localhost"
            raise Refused(message, status=403, code="host_not_allowed")


def names_loopback(host: str) -> bool:
    """Whether a Host header names this machine."""
    with_port = PORT.fullmatch(host)
    return is_loopback(with_port[1] if with_port else host)
