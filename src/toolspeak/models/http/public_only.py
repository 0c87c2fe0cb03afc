"""Restricts requests to public addresses, excluding this machine and its private networks.

The check applies to the address of the actual connection, because a name may resolve to another one at each lookup.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

_EMBEDDING = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))
"""IPv6 networks whose addresses end in an IPv4 address, besides those that `ipaddress` knows."""
_LOCAL = ipaddress.ip_network("64:ff9b:1::/48")

NOT_PUBLIC = "is not a public address"


class PrivateAddress(OSError):
    """A connection to an address that is not public was refused."""


def is_public(host: str) -> bool:
    """Whether an IP address is public: not private, loopback, link-local, shared or multicast, nor an IPv6 form of such
    an address. Raises ValueError for anything else."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if not _plain(address):
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return True
    inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in _EMBEDDING):
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return address not in _LOCAL and not address.is_site_local and all(_plain(one) for one in inner if one is not None)


def _plain(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped is not None or (address.is_global and not address.is_multicast)


def public_socket(info: Any) -> socket.socket:
    """Return a socket for an entry of `getaddrinfo`. Raises PrivateAddress if its address is not public."""
    family, kind, protocol, _, target = info
    if not is_public(str(target[0])):
        raise PrivateAddress(f"{target[0]} {NOT_PUBLIC}")
    return socket.socket(family, kind, protocol)
