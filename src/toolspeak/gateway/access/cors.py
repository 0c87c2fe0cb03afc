"""Cross-origin requests (CORS): web pages of other origins may do nothing unless the operator names their origin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..context import Headers

EXPOSED = (
    b"x-request-id, x-toolspeak-notes, x-toolspeak-ignored, retry-after, x-ratelimit-limit-requests, "
    b"x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-ratelimit-limit-tokens, "
    b"x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens"
)
PREFLIGHT: Headers = [
    (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
    (b"access-control-allow-headers", b"authorization, *"),
    (b"access-control-max-age", b"600"),
]


class Cors:
    """What web pages of other origins are told: nothing, unless their origin is among those configured."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._any = "*" in origins
        self._origins = frozenset(origin.encode() for origin in origins)

    def allows(self, origin: str) -> bool:
        """Whether pages of an origin may ask."""
        return self._any or origin.encode("latin-1") in self._origins

    def headers(self, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
        """What goes with an answer, so that the page may read it."""
        if not self._origins:
            return []
        if self._any:
            return [(b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", EXPOSED)]
        origin = next((value for name, value in headers if name == b"origin"), b"")
        allowed = [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", EXPOSED)]
        return [*(allowed if origin in self._origins else []), (b"vary", b"Origin")]

    def preflight(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> Headers | None:
        """The answer to a browser that asks whether a page may ask; it sends no key. None for any other request."""
        if method != "OPTIONS" or not self._origins:
            return None
        names = {name for name, _ in headers}
        return PREFLIGHT if {b"origin", b"access-control-request-method"} <= names else None
