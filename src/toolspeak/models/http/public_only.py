"""Restricts requests to addresses of the public network, excluding this machine and its neighbors.

Asked of the very address that a connection is made to, since a name may stand for another one each time it is looked
up.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

_EMBEDDING = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))
"""IPv6 networks whose addresses end in an IPv4 address, beside those that `ipaddress` knows."""
_LOCAL = ipaddress.ip_network("64:ff9b:1::/48")

NOT_PUBLIC = "is not an address of the public network"


class PrivateAddress(OSError):
    """A connection to an address that is not public was about to be made."""


def is_public(host: str) -> bool:
    """Whether an IP address is one of the public network: no private, loopback, link-local, shared or multicast one,
    nor an IPv6 form of such. Raises ValueError for what is no IP address."""
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
    """A socket for one entry of `getaddrinfo`. Raises PrivateAddress where the entry's address is not public."""
    family, kind, protocol, _, target = info
    if not is_public(str(target[0])):
        raise PrivateAddress(f"{target[0]} {NOT_PUBLIC}")
    return socket.socket(family, kind, protocol)
