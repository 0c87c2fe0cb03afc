"""Asks a server for the number of tokens of a request, if it can count. `plan.token_estimate` is for all others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ...api import anthropic, openai_chat
from ...api.json_stream import Payload
from ...errors import ModelError, Refused
from ...types import Request

Ask = Callable[[str, Payload], Awaitable[Payload]]
"""Posts a body to a path of the server and returns the JSON object of the response. Raises ModelError."""


async def count_messages(ask: Ask, path: str, request: Request, model: str) -> int | None:
    """Return the count from a server with the Messages API."""
    return anthropic.read_count(await ask(path, anthropic.write_count(request, model)))


async def count_chat(ask: Ask, request: Request, model: str) -> int | None:
    """Return the count from a server whose `/tokenize` takes messages (vLLM) or text (llama.cpp); None if it has
    neither."""
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
    """Return the count for the exact text that the server continues."""
    try:
        answer = await ask("/tokenize", {"model": model, "prompt": prompt, "content": prompt, "add_special": True})
        return _length(answer)
    except (ModelError, LookupError, TypeError):
        return None


async def _by_messages(ask: Ask, body: Payload) -> int:
    return _length(await ask("/tokenize", {**body, "add_generation_prompt": True}))


async def _by_template(ask: Ask, body: Payload) -> int:
    prompt = (await ask("/apply-template", body))["prompt"]
    return _length(await ask("/tokenize", {"content": prompt, "add_special": True, "parse_special": True}))


def _length(answer: Payload) -> int:
    """Return the tokens from `/tokenize`: vLLM counts them, llama.cpp lists them. Raises LookupError for an empty list,
    which is llama.cpp's response to a body without text."""
    count: Any = answer.get("count")
    return count if isinstance(count, int) else len(answer["tokens"]) or answer["count"]
