"""`/v1/batches`: creates, lists, shows and cancels batches. `gateway.batches` processes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...api import batches as api
from ...errors import Refused
from ..http_exchange import HttpExchange
from .files import store_of
from .pagination import page, query

if TYPE_CHECKING:
    from ..app import Gateway

MOST, USUAL = 100, 20
"""The most batches on one page."""


async def create(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answers `POST /v1/batches`."""
    store = store_of(gateway)
    body = await gateway.read(exchange, api.BODY)
    exchange.record.model = ""  # none is asked
    exchange.tell_ignored([name for name in body if name not in api.BODY["properties"]])
    batch = await store.run(store.add_batch, exchange.owner, body)
    _wake(gateway)
    await exchange.reply_json(200, batch)


async def list_batches(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answers `GET /v1/batches`."""
    store = store_of(gateway)
    rows = await store.run(store.batches, exchange.owner)
    wanted = {name: value for name, value in query(exchange).items() if name != "order"}
    await exchange.reply_json(200, page(rows, wanted, most=MOST, usual=USUAL))


async def show(gateway: Gateway, exchange: HttpExchange, key: str) -> None:
    """Answers `GET /v1/batches/{batch}`. Raises Refused (404)."""
    store = store_of(gateway)
    batch = await store.run(store.batch, exchange.owner, key)
    if batch is None:
        raise _missing(key)
    await exchange.reply_json(200, batch)


async def cancel(gateway: Gateway, exchange: HttpExchange, key: str) -> None:
    """Answers `POST /v1/batches/{batch}/cancel`. Raises Refused (400, 404)."""
    store = store_of(gateway)
    gateway.auth.check_origin(exchange)
    batch = await store.run(store.cancel, exchange.owner, key)
    if batch is None:
        raise _missing(key)
    _wake(gateway)
    await exchange.reply_json(200, batch)


def _wake(gateway: Gateway) -> None:
    if gateway.worker:
        gateway.worker.wake()


def _missing(key: str) -> Refused:
    return Refused(f"there is no batch {key[:100]!r} here", status=404, code="not_found")
