"""OpenAI's own client and ours read the same calls from the same bytes of the same server."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import openai
import pytest

from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Finished, TextDelta
from toolspeak.models.http import Http
from toolspeak.types import Request, Tool

Serve = Callable[..., Any]


def chunk(finish: str | None = None, **delta: Any) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"


def piece(index: int, arguments: str, **fields: Any) -> dict[str, Any]:
    name = fields.pop("name", None)
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"index": index, "function": function, **fields}


STREAMS = {
    "one call in pieces": [
        chunk(role="assistant", content=None, tool_calls=[piece(0, "", id="a", type="function", name="weather")]),
        chunk(tool_calls=[piece(0, '{"city": ')]),
        chunk(tool_calls=[piece(0, '"厦门 \\"{"}')]),
        chunk("tool_calls"),
    ],
    "two calls with a text": [
        chunk(role="assistant", content="Let me see."),
        chunk(tool_calls=[piece(0, '{"city": "Xiamen"}', id="a", type="function", name="weather")]),
        chunk(tool_calls=[piece(1, "", id="b", type="function", name="weather")]),
        chunk(tool_calls=[piece(1, '{"city": "Fuzhou"}')]),
        chunk("tool_calls"),
    ],
    "interleaved": [
        chunk(tool_calls=[piece(0, '{"a"', id="a", name="f"), piece(1, '{"b"', id="b", name="g")]),
        chunk(tool_calls=[piece(1, ": 2}"), piece(0, ": 1}")]),
        chunk("tool_calls"),
    ],
    "text alone": [chunk(role="assistant", content=""), chunk(content="Hel"), chunk(content="lo"), chunk("stop")],
}


async def through_the_sdk(url: str) -> tuple[str, list[tuple[str, str, str]], str | None]:
    text, calls, finish = "", dict[int, list[str]](), None
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client:
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        async for part in stream:
            choice = part.choices[0]
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or ():
                assert call.function is not None
                known = calls.setdefault(call.index, ["", "", ""])
                for place, value in enumerate((call.id, call.function.name, call.function.arguments)):
                    known[place] += value or ""
    return text, [(call[0], call[1], call[2]) for _, call in sorted(calls.items())], finish


async def through_ours(url: str) -> tuple[str, list[tuple[str, str, str]], str | None]:
    text, calls, finish = "", list[list[str]](), None
    async for event in Http(f"{url}/v1", "m").stream(Request([{"role": "user", "content": "hi"}], (Tool("weather"),))):
        match event:
            case TextDelta(more):
                text += more
            case CallStart(name, key):
                calls.append([key, name, ""])
            case ArgumentsDelta(more):
                calls[-1][2] += more
            case CallEnd(whole):
                assert whole
            case Finished(reason):
                finish = reason
            case _:
                raise AssertionError(event)
    return text, [(call[0], call[1], call[2]) for call in calls], finish


@pytest.mark.parametrize("name", STREAMS)
def test_both_read_the_same(serve: Serve, name: str) -> None:
    data = ("".join(STREAMS[name]) + "data: [DONE]\n\n").encode()

    async def main() -> None:
        async with serve(data) as server:
            theirs, ours = await through_the_sdk(server.url), await through_ours(server.url)
            assert ours == theirs
            assert theirs[0] or theirs[1]
            assert server.paths == ["POST /v1/chat/completions"] * 2

    asyncio.run(main())


def test_our_request_is_one_that_the_sdk_would_send(serve: Serve) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = Tool("weather", "The weather.", schema)
    said = [{"role": "user", "content": "天气?"}]
    data = ("".join(STREAMS["text alone"]) + "data: [DONE]\n\n").encode()

    async def main() -> None:
        async with serve(data) as server:
            request = Request(
                said, (tool,), "weather", parallel=False, max_tokens=9, temperature=0.0, seed=7, stop=("END",)
            )  # type: ignore[arg-type]
            _ = [event async for event in Http(f"{server.url}/v1", "m").stream(request)]
            async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as client:
                stream = await client.chat.completions.create(
                    model="m",
                    messages=said,  # type: ignore[arg-type]
                    tools=[
                        {
                            "type": "function",
                            "function": {"name": "weather", "description": "The weather.", "parameters": schema},
                        }
                    ],
                    tool_choice={"type": "function", "function": {"name": "weather"}},
                    parallel_tool_calls=False,
                    max_tokens=9,
                    temperature=0.0,
                    seed=7,
                    stop=["END"],
                    stream=True,
                    stream_options={"include_usage": True},
                )
                _ = [part async for part in stream]
            ours, theirs = server.bodies
            assert ours == theirs

    asyncio.run(main())
