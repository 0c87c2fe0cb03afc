"""A run on a real server over loopback, tools offered natively."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import toolspeak as ts
from models.conftest import serving
from replies import answered


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def sse(*deltas: dict[str, Any], finish: str) -> bytes:
    rows: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    rows += [{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}]
    rows += [{"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}]
    return "".join(f"data: {json.dumps(row)}\n\n" for row in rows).encode() + b"data: [DONE]\n\n"


def calling(*arguments: str) -> bytes:
    calls = [
        {"index": i, "id": f"c{i}", "type": "function", "function": {"name": "add", "arguments": text}}
        for i, text in enumerate(arguments)
    ]
    return sse({"tool_calls": calls}, finish="tool_calls")


def test_a_whole_run() -> None:
    async def main() -> None:
        said = sse({"content": "3 and "}, {"content": "7."}, finish="stop")
        async with serving(calling('{"a": 1, "b": 2}', '{"a": 3, "b": 4}'), said) as server:
            reply = await ts.arun("1 + 2 and 3 + 4?", tools=[add], model=f"{server.url}/v1#m")
            assert reply.text == "3 and 7."
            assert reply.usage == ts.Usage(20, 10)
            sent = server.bodies[1]["messages"]
            assert [m["content"] for m in sent if m["role"] == "tool"] == ["3", "7"]
            assert answered(sent)
            assert sent == reply.messages[:-1]
            assert server.connections == 1

    asyncio.run(main())


def test_wrong_arguments_are_given_back() -> None:
    async def main() -> None:
        async with serving(calling('{"a": 1}'), calling('{"a": 1, "b": 2}')) as server:
            call = await ts.acall("1 + 2?", tools=[add], model=f"{server.url}/v1#m")
            assert call.arguments == {"a": 1, "b": 2}
            assert "'b'" in server.bodies[1]["messages"][-1]["content"]

    asyncio.run(main())


def test_without_awaiting() -> None:
    async def main() -> None:
        async with serving(calling('{"a": 1, "b": 2}'), sse({"content": "3"}, finish="stop")) as server:
            reply = await asyncio.to_thread(ts.run, "1 + 2?", tools=[add], model=f"{server.url}/v1#m")
            assert reply.text == "3"

    asyncio.run(main())
