"""Servers that half-read the calls of their model, behind the gateway: clients get every call once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import openai
import pytest

from half_read import CASES, ORDERS, READINGS, Case, Order, half_reading, left_in_text, served
from toolspeak.gateway.config.settings import ModelSettings

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
QUESTION: Any = [{"role": "user", "content": "Weather?"}]


async def choices(client: openai.AsyncOpenAI, tool: Any) -> list[Any]:
    """The answer to the question as a client gets it, whole and streamed."""
    asked: Any = {"model": "m", "messages": QUESTION, "tools": [tool]}
    made = await client.chat.completions.create(**asked)
    async with client.chat.completions.stream(**asked) as stream:
        streamed = await stream.get_final_completion()
    return [choice for reply in (made, streamed) for (choice,) in [reply.choices]]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_clients_get_every_call_once(serve_models: Callable[..., Any], case: Case, order: Order) -> None:
    async def main() -> None:
        async with (
            half_reading(case, order) as url,
            serve_models(m=ModelSettings("m", (f"{url}#Qwen2.5-7B-Instruct",))) as running,
            openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as client,
        ):
            for choice in await choices(client, WEATHER):
                cities = sorted(call.function.arguments for call in choice.message.tool_calls or ())
                assert cities == sorted(f'{{"city": "{city}"}}' for city in case.cities)
                assert (choice.message.content or "").strip() == case.text
                assert choice.finish_reason == ("tool_calls" if case.cities else "stop")

    asyncio.run(main())


FORECAST: Any = {
    "type": "function",
    "function": {
        "name": "forecast",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"type": "string", "default": "celsius"},
                "day": {"type": "string"},
            },
            "required": ["city"],
        },
    },
}


@pytest.mark.parametrize("order", ORDERS)
def test_clients_get_the_better_of_two_readings(serve_models: Callable[..., Any], order: Order) -> None:
    async def main() -> None:
        for kind, (text, own, counts) in READINGS.items():
            case = Case({"content": left_in_text(text), "tool_calls": [served(own)]}, "", ())
            async with (
                half_reading(case, order) as url,
                serve_models(m=ModelSettings("m", (f"{url}#Qwen2.5-7B-Instruct",))) as running,
                openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as client,
            ):
                for choice in await choices(client, FORECAST):
                    calls = choice.message.tool_calls or []
                    assert len(calls) == 1, kind
                    arguments = {k: v for k, v in json.loads(calls[0].function.arguments).items() if v != "celsius"}
                    assert (arguments, choice.finish_reason) == (counts, "tool_calls"), kind

    asyncio.run(main())


def test_a_call_that_was_streamed_while_it_was_written_is_not_taken_back_silently(
    serve_models: Callable[..., Any],
) -> None:
    """A client would run both calls of `arguments = "live"`, or the half of one."""

    async def main() -> None:
        for text, own, _ in READINGS.values():
            case = Case({"content": left_in_text(text), "tool_calls": [served(own)]}, "", ())
            for order in ORDERS:
                async with (
                    half_reading(case, order) as url,
                    serve_models(m=ModelSettings("m", (f"{url}#Qwen2.5-7B-Instruct",), arguments="live")) as running,
                    openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as client,
                ):
                    asked: Any = {"model": "m", "messages": QUESTION, "tools": [FORECAST], "stream": True}
                    started, failed = 0, ""
                    try:
                        chunk: Any
                        async for chunk in await client.chat.completions.create(**asked):
                            calls = [call for choice in chunk.choices for call in choice.delta.tool_calls or ()]
                            started += sum(bool(call.id) for call in calls)
                    except openai.APIError as error:
                        failed = error.message
                    assert started == 1 or "already being streamed" in failed, (text, own, order)

    asyncio.run(main())
