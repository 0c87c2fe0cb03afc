"""`POST /v1/messages/count_tokens`: counts the tokens of a request.

The model's own tokenizer counts them, if it is available. Otherwise they are estimated, and the header
`x-toolspeak-estimate` says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...api import anthropic
from ...models.offload import offloaded, request_size
from ...models.wrapper import count
from ...plan.token_estimate import about_request
from ..http_exchange import HttpExchange
from ..limits.nested_json_limits import check_history

if TYPE_CHECKING:
    from ..app import Gateway


async def count_tokens(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answer with `input_tokens`. Nothing is generated."""
    body = await gateway.read(exchange, anthropic.COUNT_BODY)
    incoming = await exchange.understand(anthropic.read_request, body)
    await check_history(incoming.request.messages, gateway.settings.limits)
    served = gateway.find(incoming.model, exchange)
    exchange.tell_ignored(incoming.ignored)
    async with gateway.admitted(exchange):
        request = await served.narrowed(incoming.request)
        tokens = await count(served.model, request)
        if tokens is None:
            tokens = await offloaded(request_size(request), about_request, request)
            exchange.headers.append((b"x-toolspeak-estimate", b"true"))
        await exchange.reply_json(200, anthropic.write_counted(tokens))
