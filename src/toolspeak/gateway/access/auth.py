"""Authenticates requests before a route handles them: host, origin, key and rates."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ...errors import Refused
from ..limits.rates import Counter
from ..limits.shared_rates import SharedCounter
from ..routes import is_open, is_rated
from .cors import Cors
from .host_check import check_host
from .keys import CHALLENGE, KeyRing, opens

if TYPE_CHECKING:
    from ..config.settings import GatewaySettings, Key
    from ..http_exchange import HttpExchange


class Authenticator:
    """Decides whether a request is allowed, as the settings say."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._keys = KeyRing(settings.keys)
        self._cors = Cors(settings.cors)
        longest = settings.limits.deadline + settings.limits.patience
        self._counter = SharedCounter(settings.store.path, longest=longest) if settings.store else Counter()

    async def let_in(
        self, exchange: HttpExchange, answer: Callable[[], Awaitable[None]], *, rated: bool | None = None
    ) -> None:
        """Check a request, then call `answer`. `rated`: it counts against the rates of its key, None: as its route says.
        Raises Refused; nothing of the body is read before."""
        scope = exchange.scope
        headers = scope["headers"]
        exchange.headers += self._cors.headers(headers)
        preflight = self._cors.preflight(scope["method"], headers)
        if preflight is not None:
            exchange.headers += preflight
            await exchange.reply(200, b"", b"text/plain")
        elif is_open(scope["path"]):
            await answer()
        else:
            key = self._caller(exchange)
            if key and (is_rated(scope["method"], scope["path"]) if rated is None else rated):
                await self._counted(exchange, key, answer)
            else:
                await answer()

    async def let_line_in(self, exchange: HttpExchange, answer: Callable[[], Awaitable[None]], owner: str) -> None:
        """Check a line of a batch as a request with its owner's key, then call `answer`. Raises Refused."""
        exchange.background = True
        exchange.policy = self._settings.policy
        key = self._keys.named(owner)
        if key is None:
            await answer()
        else:
            self._apply_key(exchange, key)
            await self._counted(exchange, key, answer)

    def check_origin(self, exchange: HttpExchange) -> None:
        """Raises Refused for a web page whose origin is not allowed.

        For routes whose requests a page can send without a preflight. A browser sends the `Origin` header with them.
        """
        origin = exchange.header(b"origin")
        if origin and not self._cors.allows(origin):
            message = f"the origin {origin[:200]} is not allowed (see `cors` in the gateway's configuration)"
            raise Refused(message, status=403, code="origin_not_allowed")

    def knows(self, exchange: HttpExchange) -> bool:
        """Whether the client of an open route may see details: there are no keys, or it sent a valid one, which then says
        what it may see."""
        try:
            key = self._keys.caller(exchange.scope["headers"])
        except Refused:
            return False
        if key is not None:
            self._apply_key(exchange, key)
        return True

    def close(self) -> None:
        """Close the counter of rates."""
        self._counter.close()

    def _caller(self, exchange: HttpExchange) -> Key | None:
        exchange.policy = self._settings.policy
        headers = exchange.scope["headers"]
        check_host(headers, self._settings)
        try:
            key = self._keys.caller(headers)
        except Refused:
            exchange.headers.append(CHALLENGE)
            raise
        if key is not None:
            self._apply_key(exchange, key)
        return key

    def _apply_key(self, exchange: HttpExchange, key: Key) -> None:
        exchange.record.key = key.name
        exchange.visible = lambda model: opens(key, model)
        exchange.owner = key.name
        exchange.key = key
        exchange.policy = key.policy or self._settings.policy

    async def _counted(self, exchange: HttpExchange, key: Key, answer: Callable[[], Awaitable[None]]) -> None:
        async with self._counter.counted(key, exchange.headers, background=exchange.background) as spent:
            try:
                await answer()
            finally:
                spent.tokens = exchange.tokens
