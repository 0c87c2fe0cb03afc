"""Cross-origin requests (CORS): a web page of another origin is refused unless the configuration names its origin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..http_exchange import Headers

EXPOSED = (
    b"x-request-id, x-toolspeak-model, x-toolspeak-notes, x-toolspeak-ignored, x-toolspeak-hint, retry-after, "
    b"x-ratelimit-limit-requests, "
    b"x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-ratelimit-limit-tokens, "
    b"x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens"
)
PREFLIGHT: Headers = [
    (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
    (b"access-control-allow-headers", b"authorization, *"),
    (b"access-control-max-age", b"600"),
]


class Cors:
    """The CORS headers for web pages of the configured origins. Other origins get none."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._any = "*" in origins
        self._origins = frozenset(origin.encode() for origin in origins)

    def allows(self, origin: str) -> bool:
        """Whether pages of this origin may send requests."""
        return self._any or origin.encode("latin-1") in self._origins

    def headers(self, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
        """Return the headers that let the page read the response."""
        if not self._origins:
            return []
        if self._any:
            return [(b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", EXPOSED)]
        origin = next((value for name, value in headers if name == b"origin"), b"")
        allowed = [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", EXPOSED)]
        return [*(allowed if origin in self._origins else []), (b"vary", b"Origin")]

    def preflight(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> Headers | None:
        """Return the headers for a preflight request, which carries no key; None for any other request."""
        if method != "OPTIONS" or not self._origins:
            return None
        names = {name for name, _ in headers}
        return PREFLIGHT if {b"origin", b"access-control-request-method"} <= names else None
