"""API keys of clients, stored as hashes, and what each key permits."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence

from ...errors import Refused, UsageError
from ..config.settings import Key

CHALLENGE = (b"www-authenticate", b'Bearer realm="toolspeak"')
PREFIX = "sha256:"
LONGEST = 512
"""The most characters of a key. A longer text is not a key, and is not hashed."""


class KeyRing:
    """Finds the key of a request. Without configured keys every request is allowed."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = {key.digest: key for key in keys}
        self._names = {key.name: key for key in keys}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def named(self, owner: str) -> Key | None:
        """Return the key of that name; None if there are no keys, for which the owner is "". Raises Refused (401)."""
        if not self._keys and not owner:
            return None
        if owner not in self._names:
            raise Refused("the key of this batch no longer exists", status=401, code="invalid_api_key")
        return self._names[owner]

    def caller(self, headers: Iterable[tuple[bytes, bytes]]) -> Key | None:
        """Return the key in a request's `Authorization: Bearer` or `x-api-key` header; None if there are no keys.

        Raises Refused (401). Keys are looked up by digest, so the time of a lookup reveals only something about a
        SHA-256 that nobody can choose. The key that is found is compared in constant time.
        """
        if not self._keys:
            return None
        keys = list(_keys_in(headers))
        owner: Key | None = None
        for digest in (hashlib.sha256(key).digest() for key in keys):
            known = self._keys.get(digest)
            if known is not None and hmac.compare_digest(digest, known.digest):
                owner = known
        if owner is None:
            message = "unknown API key" if keys else "an API key is required"
            advice = "send it as Authorization: Bearer KEY or as x-api-key: KEY"
            raise Refused(f"{message}: {advice}", status=401, code="invalid_api_key")
        return owner


def _keys_in(headers: Iterable[tuple[bytes, bytes]]) -> Iterable[bytes]:
    """Yield the keys in a request. A header that occurs twice counts as absent: a proxy may have read the other one."""
    named: dict[bytes, list[bytes]] = {b"authorization": [], b"x-api-key": []}
    for name, value in headers:
        if name in named:
            named[name].append(value.strip())
    for name, values in named.items():
        if len(values) != 1:
            continue
        kind, _, rest = values[0].partition(b" ")
        key = values[0] if name == b"x-api-key" else rest.strip() if kind.lower() == b"bearer" else b""
        if key and len(key) <= LONGEST:
            yield key


def opens(key: Key | None, model: str) -> bool:
    """Whether a client may use a model. Without a key all models are allowed."""
    return key is None or key.models is None or model in key.models


def digest(key: str) -> bytes:
    """Return what is stored of a key. Raises UsageError for a text that an HTTP header cannot carry."""
    if not key or len(key) > LONGEST or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"expected a key of 1 to {LONGEST} letters, digits and signs, without blanks")
    return hashlib.sha256(key.encode()).digest()


def new_key() -> str:
    """Return a new random key of 256 bits."""
    return "ts-" + secrets.token_urlsafe(32)


def hashed(key: str) -> str:
    """Return a key's hash in the format of the configuration."""
    return PREFIX + digest(key).hex()
