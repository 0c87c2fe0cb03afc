"""A tool's error on its way to a server whose API has a field that says so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import toolspeak as ts
from toolspeak.models.http import Http

CALL = (
    {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t1", "name": "weather", "input": {}}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"city": "Rome"}'}},
    {"type": "content_block_stop", "index": 0},
)  # fmt: skip
WORDS = (
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I cannot tell."}},
    {"type": "content_block_stop", "index": 0},
)


def said(events: tuple[dict[str, Any], ...], reason: str) -> bytes:
    """A streamed reply of the Messages API."""
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 0}}}
    end = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}
    rows = (start, *events, end, {"type": "message_stop"})
    return b"".join(f"event: {row['type']}\ndata: {json.dumps(row)}\n\n".encode() for row in rows)


def weather(city: str) -> str:
    """The weather in a city, now."""
    raise ts.ToolError(f"no station in {city}")


def test_the_messages_api_is_told_that_a_result_is_an_error(serve: Callable[..., Any]) -> None:
    async def main() -> None:
        async with serve(said(CALL, "tool_use"), said(WORDS, "end_turn")) as server:
            model = Http(server.url, "m", api="anthropic", key="sk-none-at-all-0123")
            reply = await ts.arun("What is the weather in Rome?", tools=[weather], model=model)
            assert reply.text == "I cannot tell."
            (result,) = server.bodies[1]["messages"][-1]["content"]
            assert (result["type"], result["tool_use_id"], result["is_error"]) == ("tool_result", "t1", True)
            assert json.loads(result["content"])["error"] == {"type": "ToolError", "message": "no station in Rome"}

    asyncio.run(main())
