"""Compares a server's counts of tokens, to see whether the tools of a request reach its model.

Some servers count only what they had not cached, and some the same for every request. So no text is repeated, and nothing
counts unless a longer text has a higher count.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import aclosing
from typing import Any

from ...errors import ModelError, UsageError
from ...events import Finished
from ...types import Request, Tool
from ..http import Http

WORDS = 60
"""Words of the long text, and of the tool's description."""
MORE = 8
"""A count is higher if it has more tokens than this above another; ids differ in their tokens."""


async def drops_tools(model: Http) -> bool:
    """Whether the server takes tools and counts no more tokens with than without, though it counts a longer text. Three
    requests of one token show it; False if any fails."""
    tool: Tool[..., Any] = Tool("look_up", _words(WORDS), {"type": "object", "properties": {}})
    requests = (_request(_words(1)), _request(_words(WORDS)), _request(_words(1), tool))
    try:
        short, long, offered = await asyncio.gather(*(_prompt_tokens(model, request) for request in requests))
    except (ModelError, UsageError):
        return False
    return all((short, offered, long - short > MORE, offered - short <= MORE))


def _request(text: str, *tools: Tool[..., Any]) -> Request:
    return Request([{"role": "user", "content": f"{text} Hello."}], tools, max_tokens=1)


def _words(count: int) -> str:
    """So many words, which no other text begins with."""
    return " ".join([secrets.token_hex(4), *["word"] * (count - 1)])


async def _prompt_tokens(model: Http, request: Request) -> int:
    """The tokens of the prompt as the server counts them, 0 if it does not."""
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            if isinstance(event, Finished):
                return 0 if event.usage.estimated else event.usage.prompt_tokens
    return 0
