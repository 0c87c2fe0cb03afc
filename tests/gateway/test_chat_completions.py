"""Chat completions through the gateway, by the SDK that people use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import openai
import pytest

from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Xiamen"}}\n</tool_call>'
QUESTION = [{"role": "user", "content": "Weather in Xiamen?"}]


def hermes(*replies: str) -> Speaker:
    return Speaker(Scripted(replies), "hermes")


def test_a_call_comes_whole(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=hermes("Let me look. " + CALL)) as running:
            async with openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="none") as client:
                reply = await client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER])
        choice = reply.choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.tool_calls[0].function.arguments == '{"city": "Xiamen"}'
        assert choice.message.content == "Let me look. "

    asyncio.run(go())


def test_text_streams_and_the_call_follows(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=hermes("Let me look. " + CALL)) as running:
            async with openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="none") as client:
                async with client.chat.completions.stream(model="m", messages=QUESTION, tools=[WEATHER]) as stream:
                    final = await stream.get_final_completion()
        choice = final.choices[0]
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Let me look. ")
        assert choice.message.tool_calls[0].function.name == "weather"

    asyncio.run(go())


def test_a_model_that_is_not_there_is_told(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=hermes("Hi")) as running:
            async with openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="none") as client:
                with pytest.raises(openai.NotFoundError, match="no model 'n' here"):
                    await client.chat.completions.create(model="n", messages=QUESTION)

    asyncio.run(go())


def test_what_was_repaired_or_ignored_is_told_in_headers(serve_models: Callable[..., Any]) -> None:
    broken = CALL.replace("\n</tool_call>", "")

    async def go() -> None:
        async with serve_models(m=hermes(broken)) as running:
            async with openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="none") as client:
                raw = await client.chat.completions.with_raw_response.create(
                    model="m", messages=QUESTION, tools=[WEATHER], extra_body={"mirostat\r\nx: y": 1}
                )
        assert raw.headers["x-toolspeak-notes"]
        assert raw.headers["x-toolspeak-ignored"] == "mirostat??x??y"
        assert raw.parse().choices[0].toolspeak["notes"]  # type: ignore[attr-defined]

    asyncio.run(go())


def test_a_model_that_never_calls_rightly_is_an_error_not_to_be_retried(serve_models: Callable[..., Any]) -> None:
    wrong = CALL.replace("city", "town")

    async def go() -> None:
        async with serve_models(m=hermes(wrong, wrong, wrong)) as running:
            async with openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="none") as client:
                with pytest.raises(openai.InternalServerError) as caught:
                    await client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER])
        assert caught.value.status_code == 502
        assert caught.value.response.headers["x-should-retry"] == "false"
        assert caught.value.code == "no_valid_reply"

    asyncio.run(go())
