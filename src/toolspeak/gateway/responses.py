"""Responses that are kept: a conversation that goes on from one, and `/v1/responses/{id}`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl

from ..api import openai_responses
from ..api.asked import Asked
from ..errors import Refused
from .exchange import Exchange
from .store import Kept

if TYPE_CHECKING:
    from .app import Gateway

MANY = 10_000
"""Items that a conversation may hold, as many as a body."""


class Session:
    """One request to /v1/responses, before its model is asked and after."""

    def __init__(self, gateway: Gateway, exchange: Exchange) -> None:
        self._store = gateway.store
        self._owner = exchange.owner
        self._longest = gateway.settings.limits.body
        self._exchange = exchange
        self._input: Any = None
        self._beside = 0
        self._keeps = False

    async def read(self, body: dict[str, Any]) -> Asked:
        """What is asked for, the earlier conversation included. Raises Refused."""
        if previous := body.get("previous_response_id"):
            body = {**body, "input": await self._joined(previous, body["input"])}
        if isinstance(given := body["input"], list):
            body = {**body, "input": await self._items(cast("list[dict[str, Any]]", given))}
        self._input = body["input"]
        asked = await self._exchange.understand(openai_responses.read_request, body, beside=self._beside)
        self._keeps = asked.store and self._store is not None
        ignored = ("store",) if body.get("store") is True and not self._keeps else ()
        echo = {**asked.echo, "store": self._keeps}
        return replace(asked, store=self._keeps, echo=echo, ignored=(*asked.ignored, *ignored))

    async def keep(self, response: dict[str, Any]) -> None:
        """Keeps a response that is over, if it is to be kept. Raises Refused where it cannot be."""
        if self._store is not None and self._keeps:
            stamp = str(response["id"]).removeprefix("resp_")
            await self._store.keep(self._owner, response, lambda: openai_responses.kept(self._input, stamp))

    async def _items(self, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The items, those that are named by an id alone in full: the id holds that of the response that they are from."""
        kept: dict[str, dict[str, dict[str, Any]]] = {}
        made, size = list[dict[str, Any]](), 0
        for at, item in enumerate(items):
            if not _names(item):
                made.append(item)
                continue
            name, where = str(item["id"])[:200], f"input.{at}"
            stamp = name.rpartition("_")[0].rpartition("_")[2]
            if stamp not in kept:
                kept[stamp], more = await self._of(stamp, where)
                size += more
            if name not in kept[stamp] or size > self._longest:
                raise Refused(f"{where}.id: there is no item {name!r} here", code="item_not_found", param=f"{where}.id")
            made.append(kept[stamp][name])
        return made

    async def _of(self, stamp: str, where: str) -> tuple[dict[str, dict[str, Any]], int]:
        """The items of a response that is kept, by their ids, and its size."""
        if self._store is None:
            said = (
                f"{where}: no items are kept here, so that none can be named by its id: send the item itself (with "
                "`store: false` most clients do), or have the gateway's operator turn the store on"
            )
            raise Refused(said, code="unsupported_value", param=where)
        found = await self._store.find(self._owner, f"resp_{stamp}")
        rows = [*found.input, *found.body["output"]] if found else []
        return {str(row.get("id")): row for row in rows}, found.size if found else 0

    async def _joined(self, previous: str, given: Any) -> list[Any]:
        if self._store is None:
            said = (
                "previous_response_id: no responses are kept here. Send the whole conversation as input, or have the "
                "gateway's operator turn the store on ([store] with path and responses = true in its configuration)"
            )
            raise Refused(said, code="unsupported_parameter", param="previous_response_id")
        kept = await self._store.find(self._owner, previous)
        if kept is None:
            said = f"previous_response_id: there is no response {previous[:100]!r} here"
            raise Refused(said, code="previous_response_not_found", param="previous_response_id")
        self._beside = kept.size
        new = [{"role": "user", "content": given}] if isinstance(given, str) else given
        items = [*kept.input, *kept.body["output"], *new]
        if len(items) > MANY or kept.size > self._longest:
            said = "previous_response_id: the conversation has grown too long; begin another"
            raise Refused(said, code="conversation_too_long", param="previous_response_id")
        return items


def _names(item: dict[str, Any]) -> bool:
    """Whether an item of an input only names one."""
    return "id" in item and (item.get("type") == "item_reference" or item.keys() == {"id"})


async def create(gateway: Gateway, exchange: Exchange, _: str) -> None:
    """Answers `POST /v1/responses`."""
    await gateway.generate(exchange, openai_responses, Session(gateway, exchange))


async def show(gateway: Gateway, exchange: Exchange, key: str) -> None:
    """Answers `GET /v1/responses/{id}`. Raises Refused (404)."""
    if _query(exchange).get("stream") == "true":
        raise Refused("stream: a response that is over is shown whole", code="unsupported_parameter", param="stream")
    await exchange.reply_json(200, (await _found(gateway, exchange, key)).body)


async def show_input(gateway: Gateway, exchange: Exchange, key: str) -> None:
    """Answers `GET /v1/responses/{id}/input_items`. Raises Refused (404)."""
    kept = await _found(gateway, exchange, key)
    await exchange.reply_json(200, _page(kept.input, _query(exchange)))


def _query(exchange: Exchange) -> dict[str, str]:
    return dict(parse_qsl(exchange.scope.get("query_string", b"").decode("latin-1")))


async def drop(gateway: Gateway, exchange: Exchange, rest: str) -> None:
    """Answers `DELETE /v1/responses/{id}`. Raises Refused (404)."""
    if gateway.store is None or not await gateway.store.drop(exchange.owner, rest):
        raise _missing(rest)
    await exchange.reply_json(200, {"id": rest, "object": "response", "deleted": True})


async def _found(gateway: Gateway, exchange: Exchange, key: str) -> Kept:
    kept = await gateway.store.find(exchange.owner, key) if gateway.store else None
    if kept is None:
        raise _missing(key)
    return kept


def _missing(key: str) -> Refused:
    return Refused(f"there is no response {key[:100]!r} here", status=404, code="not_found")


def _page(items: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
    """A page of items, the last first unless `order` says otherwise."""
    limit = query.get("limit", "20")
    if not re.fullmatch("[1-9][0-9]?|100", limit):
        raise Refused("limit: expected a number from 1 to 100", code="invalid_value", param="limit")
    if query.get("order", "desc") not in ("asc", "desc"):
        raise Refused("order: expected asc or desc", code="invalid_value", param="order")
    rows = items if query.get("order") == "asc" else items[::-1]
    if after := query.get("after"):
        place = next((at for at, item in enumerate(rows) if item.get("id") == after), None)
        if place is None:
            raise Refused(f"after: there is no item {after[:100]!r}", code="invalid_value", param="after")
        rows = rows[place + 1 :]
    page = rows[: int(limit)]
    first, last = (page[0]["id"], page[-1]["id"]) if page else ("", "")
    return {"object": "list", "data": page, "first_id": first, "last_id": last, "has_more": len(rows) > len(page)}
