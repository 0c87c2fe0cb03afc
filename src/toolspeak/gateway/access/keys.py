"""API keys of callers, known by their hashes alone, and the permissions of each."""

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
"""Characters of a key: more is none of ours, and is not hashed."""


class Keys:
    """Knows a caller by a key. Without keys anybody may ask."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = {key.digest: key for key in keys}
        self._names = {key.name: key for key in keys}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def named(self, owner: str) -> Key | None:
        """The key of that name; None where there are no keys, and "" is the name of everybody. Raises Refused (401)."""
        if not self._keys and not owner:
            return None
        if owner not in self._names:
            raise Refused("the key of this batch is no more", status=401, code="invalid_api_key")
        return self._names[owner]

    def caller(self, headers: Iterable[tuple[bytes, bytes]]) -> Key | None:
        """The key that a request came with, as `Authorization: Bearer` or `x-api-key`; None where there are no keys.

        Raises Refused (401). A key is looked up by its digest, however many there are: what time tells of a lookup, it
        tells of a SHA-256 that nobody can choose. What is found is compared in constant time.
        """
        if not self._keys:
            return None
        given = list(_given(headers))
        found: Key | None = None
        for digest in (hashlib.sha256(key).digest() for key in given):
            known = self._keys.get(digest)
            if known is not None and hmac.compare_digest(digest, known.digest):
                found = known
        if found is None:
            said = "this key is not known here" if given else "a key is needed"
            advice = "send it as Authorization: Bearer KEY or as x-api-key: KEY"
            raise Refused(f"{said}: {advice}", status=401, code="invalid_api_key")
        return found


def _given(headers: Iterable[tuple[bytes, bytes]]) -> Iterable[bytes]:
    """The keys that a request holds. One header given twice is none: who stands between may have read the other."""
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
    """Whether a caller may use a model; without a key there is nothing that is closed."""
    return key is None or key.models is None or model in key.models


def digest(key: str) -> bytes:
    """What is kept of a key. Raises UsageError for a text that no header can carry."""
    if not key or len(key) > LONGEST or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"expected a key of 1 to {LONGEST} letters, digits and signs, without blanks")
    return hashlib.sha256(key.encode()).digest()


def new_key() -> str:
    """A key that nobody guesses: 256 random bits."""
    return "ts-" + secrets.token_urlsafe(32)


def hashed(key: str) -> str:
    """A key's hash as the configuration has it."""
    return PREFIX + digest(key).hex()
