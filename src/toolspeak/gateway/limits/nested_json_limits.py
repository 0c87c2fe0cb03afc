"""Limits how many JSON values the strings of a conversation may contain: arguments of calls, and results.

The limit of a body's values does not count what its strings contain. But arguments are parsed again, for prompts and for
other APIs, and so are results. Clients also send both back encoded (`encrypted_content`). So they are counted together when
the conversation has been read, whatever its API.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...api.json_stream import record, records
from ...errors import Refused
from ...models.offload import offloaded
from ...schema.value_count import values_in
from ...types import Message
from ..config.settings import GatewayLimits


async def check_history(messages: Sequence[Message], limits: GatewayLimits) -> None:
    """Raises Refused if the arguments and results in a conversation contain more values than a body may."""
    texts = [text for message in messages for text in _json_texts(message)]
    size = sum(map(len, texts))
    if size > limits.values and await offloaded(size, _values, texts) > limits.values:
        message = f"the arguments and results of earlier calls contain more than {limits.values:,} values"
        raise Refused(message, code="invalid_value", param="messages")


def _values(texts: Sequence[str]) -> int:
    return sum(map(values_in, texts))


def _json_texts(message: Message) -> Iterator[str]:
    """Yield the texts of a message that may be parsed as JSON."""
    for call in records(message.get("tool_calls")):
        if isinstance(text := record(call.get("function")).get("arguments"), str):
            yield text
    if message.get("role") == "tool":
        content = message.get("content")
        parts = [content] if isinstance(content, str) else [part.get("text") for part in records(content)]
        yield from (part for part in parts if isinstance(part, str) and part.lstrip()[:1] in ("{", "["))
