"""Refuses every connection but loopback, in the tests and in every Python process that they start.

Python imports a module of this name by itself at start, when its folder is on PYTHONPATH: the conftest
puts it there. Unix sockets pass. A name under `.invalid` fails to resolve, as it does everywhere.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any


class NetworkBlocked(RuntimeError):
    """A test reached for the network. Not an OSError, so that no retry or fallback hides it."""


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host.rstrip(".").lower() == "localhost" or host.rstrip(".").lower().endswith(".localhost")
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_loopback or mapped.is_unspecified


def _check(what: str, host: object) -> None:
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name.rstrip(".").lower().endswith(".invalid"):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    if not _is_loopback(name):
        raise NetworkBlocked(f"tests may only talk to loopback, and this {what} wants {name!r}")


def _guard_method(name: str, address_at: int) -> None:
    original = getattr(socket.socket, name)

    def guarded(self: socket.socket, *args: Any, **kwargs: Any) -> Any:
        address = args[address_at] if len(args) > address_at else None
        if isinstance(address, tuple) and self.family in (socket.AF_INET, socket.AF_INET6):
            _check(name, address[0])
        return original(self, *args, **kwargs)

    setattr(socket.socket, name, guarded)


def _guard_lookup(name: str) -> None:
    original = getattr(socket, name)

    def guarded(host: Any, *args: Any, **kwargs: Any) -> Any:
        # A number is no question to the network; connecting to it is judged when that is tried.
        if host and not _is_number(host):
            _check(name, host)
        return original(host, *args, **kwargs)

    setattr(socket, name, guarded)


def _is_number(host: str | bytes) -> bool:
    try:
        ipaddress.ip_address((host.decode() if isinstance(host, bytes) else host).partition("%")[0])
    except ValueError:
        return False
    return True


def install() -> None:
    """Puts the guard in place, once a process."""
    if getattr(socket, "_only_loopback", False):
        return
    for method in ("connect", "connect_ex"):
        _guard_method(method, 0)
    _guard_method("sendto", -1)
    _guard_method("sendmsg", 3)
    for lookup in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        _guard_lookup(lookup)
    socket._only_loopback = True  # type: ignore[attr-defined]


install()
