"""Chat completions in front of the embedded model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import openai
import pytest

from toolspeak.models.embedded.local import Local

pytest.importorskip("xllamacpp")

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
QUESTION: Any = [{"role": "user", "content": "What is the weather in Paris?"}]


def test_the_embedded_model(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        sdk = openai.AsyncOpenAI
        async with (
            serve_models(m=Local()) as running,
            sdk(base_url=running.url + "/v1", api_key="x", timeout=800) as client,
        ):
            create: Any = client.chat.completions.create
            called = await create(model="m", messages=QUESTION, tools=[WEATHER], tool_choice="required")
            call = called.choices[0].message.tool_calls[0]
            assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Paris"})
            assert called.usage.total_tokens > 0

            schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
            form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
            chunks = [
                chunk
                async for chunk in await create(
                    model="m", messages=QUESTION, response_format=form, stream=True, max_tokens=40, top_p=0.9
                )
            ]
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
            assert isinstance(json.loads(text)["n"], int)

            for most in (None, 0, 1, 2):
                how = {} if most is None else {"top_logprobs": most}
                told = await create(model="m", messages=QUESTION, logprobs=True, **how, max_tokens=4, n=2)
                for choice in told.choices:
                    tokens = choice.logprobs.content
                    assert "".join(token.token for token in tokens) == choice.message.content
                    assert {len(token.top_logprobs) for token in tokens} == {most or 0}
                    assert choice.finish_reason == "length"

            wished = await create(model="m", messages=QUESTION, verbosity="low", max_tokens=4)
            assert [note["rule"] for note in wished.choices[0].toolspeak["notes"]] == ["ignored"]

    asyncio.run(go())
