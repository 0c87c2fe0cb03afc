"""Checks who reaches a gateway that has no keys: this machine alone, and by its own names.

A web page can make a name of its own mean this machine (DNS rebinding), and would then ask the gateway from a person's
browser. So a gateway on loopback answers only where the `Host` header names loopback.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...errors import Refused, UsageError
from ...models.http.address import is_loopback
from ..config.settings import Settings

PORT = re.compile(r"(\[[^]]*]|[^:]*):[0-9]+")
"""A name or an address, and a port behind it: an address with colons stands in brackets."""


def check_openness(settings: Settings) -> None:
    """Raises UsageError where anybody on the network could ask, without a key and without `insecure`."""
    if not any((settings.keys, settings.insecure, is_loopback(settings.host))):
        raise UsageError(
            f"at {settings.host or 'every address'} others could reach this gateway, and there is no key. Set "
            "$TOOLSPEAK_GATEWAY_KEY or [keys.NAME] in the configuration, listen at 127.0.0.1, or say --insecure"
        )


def check_host(headers: Iterable[tuple[bytes, bytes]], settings: Settings) -> None:
    """Raises Refused for a web page that has made its own name mean this machine (DNS rebinding): without keys, a
    gateway on loopback answers only to loopback's names."""
    if any((settings.keys, settings.insecure)):
        return
    for host in (value.decode("latin-1") for name, value in headers if name == b"host"):
        if not names_loopback(host):
            said = "this gateway has no key and answers to localhost alone; the Host header names another"
            raise Refused(said, status=403, code="host_not_allowed")


def names_loopback(host: str) -> bool:
    """Whether a Host header names this very machine."""
    with_port = PORT.fullmatch(host)
    return is_loopback(with_port[1] if with_port else host)
