"""Asks a server for the number of tokens of a request, where it can tell. `plan.token_estimate` serves all others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ...api import anthropic, openai_chat
from ...api.json_stream import Payload
from ...errors import ModelError, Refused
from ...types import Request

Ask = Callable[[str, Payload], Awaitable[Payload]]
"""Posts a body to a path of the server, and gives the JSON object it answers with. Raises ModelError."""


async def count_messages(ask: Ask, path: str, request: Request, model: str) -> int | None:
    """As a server tells that speaks the Messages API."""
    return anthropic.read_count(await ask(path, anthropic.write_count(request, model)))


async def count_chat(ask: Ask, request: Request, model: str) -> int | None:
    """As a server tells whose `/tokenize` takes messages (vLLM) or a text (llama.cpp); None where none does."""
    messages = openai_chat.write_messages(request.messages)
    body: Payload = {"model": model, "messages": messages}
    if request.tools:
        body["tools"] = [openai_chat.write_tool(tool) for tool in request.tools]
    for way in (_by_messages, _by_template):
        try:
            return await way(ask, body)
        except (ModelError, Refused, LookupError, TypeError):
            continue
    return None


async def count_text(ask: Ask, prompt: str, model: str) -> int | None:
    """As a server tells of the exact text that it continues."""
    try:
        told = await ask("/tokenize", {"model": model, "prompt": prompt, "content": prompt, "add_special": True})
        return _length(told)
    except (ModelError, LookupError, TypeError):
        return None


async def _by_messages(ask: Ask, body: Payload) -> int:
    return _length(await ask("/tokenize", {**body, "add_generation_prompt": True}))


async def _by_template(ask: Ask, body: Payload) -> int:
    prompt = (await ask("/apply-template", body))["prompt"]
    return _length(await ask("/tokenize", {"content": prompt, "add_special": True, "parse_special": True}))


def _length(told: Payload) -> int:
    """The tokens that `/tokenize` tells: counted by vLLM, listed by llama.cpp. Raises LookupError for an empty list,
    which is what llama.cpp makes of a body without a text."""
    count: Any = told.get("count")
    return count if isinstance(count, int) else len(told["tokens"]) or told["count"]
