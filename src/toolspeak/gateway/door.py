"""The way in: who may ask, from which pages, how often. It stands before every route."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ..errors import Refused
from .cors import Cors
from .keys import CHALLENGE, Keys, check_host, opens
from .rates import Counter
from .routes import is_open
from .shared_rates import SharedCounter

if TYPE_CHECKING:
    from .exchange import Exchange
    from .settings import Key, Settings


class Door:
    """Lets requests in, as the settings say."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._keys = Keys(settings.keys)
        self._cors = Cors(settings.cors)
        longest = settings.limits.deadline + settings.limits.patience
        self._counter = SharedCounter(settings.store.path, longest=longest) if settings.store else Counter()

    async def let_in(self, exchange: Exchange, answer: Callable[[], Awaitable[None]]) -> None:
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
            if key is None or not key.rates:
                await answer()
            else:
                await self._counted(exchange, key, answer)

    def knows(self, exchange: Exchange) -> bool:
        """Whether who asks at an open route may be told details as well: there are no keys, or a good one came."""
        try:
            self._keys.caller(exchange.scope["headers"])
        except Refused:
            return False
        return True

    def close(self) -> None:
        """Lets go of what was opened."""
        self._counter.close()

    def _caller(self, exchange: Exchange) -> Key | None:
        headers = exchange.scope["headers"]
        check_host(headers, self._settings)
        try:
            key = self._keys.caller(headers)
        except Refused:
            exchange.headers.append(CHALLENGE)
            raise
        if key is not None:
            exchange.record.key = key.name
            exchange.visible = lambda model: opens(key, model)
            exchange.owner = key.name
        return key

    async def _counted(self, exchange: Exchange, key: Key, answer: Callable[[], Awaitable[None]]) -> None:
        async with self._counter.counted(key, exchange.headers) as spent:
            try:
                await answer()
            finally:
                spent.tokens = exchange.tokens
