"""Authenticates requests before any route handles them: keys, allowed origins and rates."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ...errors import Refused
from ..limits.rates import Counter
from ..limits.shared_rates import SharedCounter
from ..routes import is_open
from .cors import Cors
from .host_check import check_host
from .keys import CHALLENGE, Keys, opens

if TYPE_CHECKING:
    from ..config.settings import Key, Settings
    from ..context import RequestContext


class Door:
    """Lets requests in, as the settings say."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._keys = Keys(settings.keys)
        self._cors = Cors(settings.cors)
        longest = settings.limits.deadline + settings.limits.patience
        self._counter = SharedCounter(settings.store.path, longest=longest) if settings.store else Counter()

    async def let_in(self, exchange: RequestContext, answer: Callable[[], Awaitable[None]]) -> None:
        """Has a request answered. Raises Refused where it may not come in: before it, nobody looks at what it asks."""
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
            if key is None:
                await answer()
            else:
                await self._counted(exchange, key, answer)

    async def let_line_in(self, exchange: RequestContext, answer: Callable[[], Awaitable[None]], owner: str) -> None:
        """Has a line of this owner's batch answered, as a request with its key would be. Raises Refused."""
        exchange.background = True
        exchange.policy = self._settings.policy
        key = self._keys.named(owner)
        if key is None:
            await answer()
        else:
            self._open_for(exchange, key)
            await self._counted(exchange, key, answer)

    def check_origin(self, exchange: RequestContext) -> None:
        """Raises Refused for a web page of an origin that is not among those configured. For what a page can send without
        asking first; a browser names the page's origin then."""
        origin = exchange.header(b"origin")
        if origin and not self._cors.allows(origin):
            said = f"a page of {origin[:200]} may not send this: its origin is not among those configured (cors)"
            raise Refused(said, status=403, code="origin_not_allowed")

    def knows(self, exchange: RequestContext) -> bool:
        """Whether who asks at an open route may be told details as well: there are no keys, or a good one came."""
        try:
            self._keys.caller(exchange.scope["headers"])
        except Refused:
            return False
        return True

    def close(self) -> None:
        """Lets go of what was opened."""
        self._counter.close()

    def _caller(self, exchange: RequestContext) -> Key | None:
        exchange.policy = self._settings.policy
        headers = exchange.scope["headers"]
        check_host(headers, self._settings)
        try:
            key = self._keys.caller(headers)
        except Refused:
            exchange.headers.append(CHALLENGE)
            raise
        if key is not None:
            self._open_for(exchange, key)
        return key

    def _open_for(self, exchange: RequestContext, key: Key) -> None:
        exchange.record.key = key.name
        exchange.visible = lambda model: opens(key, model)
        exchange.owner = key.name
        exchange.key = key
        exchange.policy = key.policy or self._settings.policy

    async def _counted(self, exchange: RequestContext, key: Key, answer: Callable[[], Awaitable[None]]) -> None:
        async with self._counter.counted(key, exchange.headers, background=exchange.background) as spent:
            try:
                await answer()
            finally:
                spent.tokens = exchange.tokens
