"""`/v1/responses` with stored responses: a request may continue from one, and `/v1/responses/{id}` shows or deletes it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ...api import openai_responses
from ...api.incoming import IncomingRequest
from ...api.openai_responses import is_reference
from ...errors import Refused
from ..http_exchange import HttpExchange
from ..storage.response_store import MANY, StoredItems, too_long
from .pagination import page, query

if TYPE_CHECKING:
    from ..app import Gateway
    from ..routes import Codec, Handle


class Session:
    """One request to /v1/responses, before and after the model answers. `codec` reads its body."""

    def __init__(self, gateway: Gateway, exchange: HttpExchange, codec: Codec) -> None:
        self._read_request = codec.read_request
        self._store = gateway.store
        self._owner = exchange.owner
        self._longest = gateway.settings.limits.body
        self._exchange = exchange
        self._input: Any = None
        self._earlier = StoredItems()
        self._saves = False

    async def read(self, body: dict[str, Any]) -> IncomingRequest:
        """Return the request, including the earlier conversation. Raises Refused."""
        new_input: Any = [] if body.get("input") is None else body["input"]
        self._input = new_input  # only the new items are stored
        previous = body.get("previous_response_id") or ""
        items = cast("list[dict[str, Any]]", new_input) if isinstance(new_input, list) else []
        places = {str(item["id"])[:200]: f"input.{at}" for at, item in enumerate(items) if is_reference(item)}
        if previous or places:
            body = {**body, "input": await self._whole(previous, new_input, places)}
        incoming = await self._exchange.understand(self._read_request, body, beside=self._earlier.size)
        self._saves = incoming.store and self._store is not None
        ignored = ("store",) if body.get("store") is True and not self._saves else ()
        echo = {**incoming.echo, "store": self._saves} if "store" in incoming.echo else incoming.echo
        return replace(incoming, store=self._saves, echo=echo, ignored=(*incoming.ignored, *ignored))

    async def save(self, response: dict[str, Any]) -> None:
        """Store a finished response, if the request asks for it. Raises Refused if that fails."""
        if self._store is not None and self._saves:
            stamp = str(response["id"]).removeprefix("resp_")
            new = partial(openai_responses.stored_items, self._input, stamp)
            await self._store.save(self._owner, response, new, self._earlier)

    async def _whole(self, previous: str, current: Any, places: dict[str, str]) -> list[Any]:
        """Return the items of a conversation: the earlier ones, then the given ones, with references replaced by the
        items. `places` says where each reference is in the body."""
        if self._store is None:
            raise _not_stored(next(iter(places.values()), "") if not previous else "")
        earlier = await self._store.conversation(self._owner, previous, tuple(places), self._longest)
        for name, where in places.items():
            if name not in earlier.named:
                raise Refused(f"{where}.id: there is no item {name!r} here", code="item_not_found", param=f"{where}.id")
        self._earlier = replace(earlier, items=[], named={})
        self._exchange.stored = earlier.size
        new = [{"role": "user", "content": current}] if isinstance(current, str) else current
        items = [*earlier.items, *(earlier.named[str(one["id"])[:200]] if is_reference(one) else one for one in new)]
        if len(items) > MANY:
            raise too_long()
        return items


def _not_stored(where: str) -> Refused:
    if where:
        message = (
            f"{where}: this gateway stores no items, so none can be referred to by its id: send the item itself (set "
            "`store: false` in the client, such as providerOptions.openai.store), or ask the gateway's operator to turn the store on"
        )
        return Refused(message, code="unsupported_value", param=where)
    message = (
        "previous_response_id: this gateway stores no responses. Send the whole conversation as input, or ask the "
        "gateway's operator to turn the store on ([store] with path and responses = true in its configuration)"
    )
    return Refused(message, code="unsupported_parameter", param="previous_response_id")


def creates(codec: Codec) -> Handle:
    """Return the handler of `POST /v1/responses`, or of one of its forms, in which a model generates the response."""

    async def handle(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
        await gateway.generate(exchange, codec, Session(gateway, exchange, codec))

    return handle


async def show(gateway: Gateway, exchange: HttpExchange, key: str) -> None:
    """Answers `GET /v1/responses/{id}`. Raises Refused (404)."""
    if query(exchange).get("stream") == "true":
        raise Refused("stream: a finished response cannot be streamed", code="unsupported_parameter", param="stream")
    body = await gateway.store.body(exchange.owner, key) if gateway.store else None
    if body is None:
        raise _missing(key)
    await exchange.reply(200, body)


async def show_input(gateway: Gateway, exchange: HttpExchange, key: str) -> None:
    """Answers `GET /v1/responses/{id}/input_items`. Raises Refused (404)."""
    inputs = await gateway.store.inputs(exchange.owner, key) if gateway.store else None
    if inputs is None:
        raise _missing(key)
    exchange.stored = inputs.size
    await exchange.reply_json(200, page(inputs.items[::-1], query(exchange), most=100, usual=20, unknown=400))


async def drop(gateway: Gateway, exchange: HttpExchange, rest: str) -> None:
    """Answers `DELETE /v1/responses/{id}`. Raises Refused (404)."""
    dropped = await gateway.store.drop(exchange.owner, rest) if gateway.store else False
    if not dropped:
        raise _missing(rest)
    await exchange.reply_json(200, {"id": rest, "object": "response", "deleted": True})


def _missing(key: str) -> Refused:
    return Refused(f"there is no response {key[:100]!r} here", status=404, code="not_found")
