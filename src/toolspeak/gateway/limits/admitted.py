"""Holds one of the places for concurrent requests, from the body of a request to its response."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType

from ..http_exchange import HttpExchange
from .admission import Admission
from .batch_slots import BatchSlots


class Admitted:
    """A context that waits for a place, holds it, and ends the request early if the client leaves, or after `seconds`.
    Raises Refused (429, 503) if there is no place."""

    def __init__(self, exchange: HttpExchange, places: Admission | BatchSlots, seconds: float) -> None:
        self._exchange = exchange
        self._places = places
        self._seconds = seconds

    async def __aenter__(self) -> None:
        exchange = self._exchange
        exchange.attend()
        came = time.perf_counter()
        await self._places.enter(exchange.owner)
        self._began = time.perf_counter()
        exchange.record.waited = self._began - came
        self._deadline = asyncio.timeout(self._seconds)
        await self._deadline.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._deadline.__aexit__(kind, error, trace)
        finally:
            self._places.leave(time.perf_counter() - self._began, self._exchange.owner)
