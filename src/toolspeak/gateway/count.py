"""How many tokens a request has: `POST /v1/messages/count_tokens`.

Counted by the model's own tokenizer where that can be asked; otherwise estimated, and the header
`x-toolspeak-estimate` says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..api import anthropic
from ..api.payloads import record, records
from ..models.base import Counter, Model
from ..models.counting import about
from ..models.offload import offloaded, request_size
from ..search.kept import size
from ..types import Reply, Request, Usage
from .exchange import Exchange

if TYPE_CHECKING:
    from .app import Gateway

IMAGE = 1_000
"""Tokens of an image, about."""
AROUND = 4
"""Tokens that a template puts around a message, about."""


async def count_tokens(gateway: Gateway, exchange: Exchange, _: str) -> None:
    """Answers with `input_tokens`; nothing is generated."""
    body = await gateway.read(exchange, anthropic.COUNT_BODY)
    asked = await exchange.understand(anthropic.read_request, body)
    served = gateway.models.find(asked.model, exchange.visible)
    exchange.tell_ignored(asked.ignored)
    exchange.record.model = served.settings.name
    async with gateway.admitted(exchange):
        request = await served.narrowed(asked.request)
        count = await counted(served.model, request)
        if count is None:
            count = await offloaded(request_size(request), estimated, request)
            exchange.headers.append((b"x-toolspeak-estimate", b"true"))
        await exchange.reply_json(200, anthropic.write_counted(count))


async def counted(model: Model, request: Request) -> int | None:
    """The tokens by the model's own tokenizer; None where that cannot be asked."""
    return await model.count(request) if isinstance(model, Counter) else None


def estimated(request: Request) -> int:
    """About how many tokens a request has, whatever the model: from its text alone, never less than one."""
    total = sum(map(size, request.tools or ())) + about(request.prompt or "")
    for message in request.messages:
        total += AROUND + _content(message.get("content")) + about(message.get("reasoning_content") or "")
        for call in records(message.get("tool_calls")):
            function = record(call.get("function"))
            total += about(f"{function.get('name', '')}{function.get('arguments', '')}")
    return max(1, total)


def with_estimate(reply: Reply, request: Request) -> Usage:
    """What a reply cost, estimated where its model does not tell: clients make room by it."""
    usage = reply.usage
    if usage.prompt_tokens and (usage.completion_tokens or not (reply.text or reply.thought or reply.calls)):
        return usage
    said = f"{reply.text}{reply.thought}" + "".join(f"{call.name}{call.json}" for call in reply.calls)
    return replace(
        usage,
        prompt_tokens=usage.prompt_tokens or estimated(request),
        completion_tokens=usage.completion_tokens or about(said),
        estimated=True,
    )


def _content(content: Any) -> int:
    if isinstance(content, str):
        return about(content)
    return sum(about(part["text"]) if isinstance(part.get("text"), str) else IMAGE for part in records(content))
