"""A model whose calls never fit: the client of each API gets the reason, and no call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import aiohttp
import anthropic
import openai
import pytest
from aiohttp import web

from listening import listening
from replies import delta, frames
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker

WRONG = '<tool_call>\n{"name": "weather", "arguments": {"town": "Xiamen"}}\n</tool_call>'
UNKNOWN = '<tool_call>\n{"name": "launch", "arguments": {"target": "moon"}}\n</tool_call>'
BROKEN = '<tool_call>\n{"name": "weather", "arguments": {"city": }}\n</tool_call>'
SCHEMA: Any = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL: Any = {"name": "weather", "description": "The weather in a city.", "parameters": SCHEMA}
QUESTION: Any = [{"role": "user", "content": "Weather in Xiamen?"}]
SAYS = {
    WRONG: r"no valid reply in \d tries.*unknown argument: \"town\"",
    UNKNOWN: r"no valid reply in \d tries.*launch",
    BROKEN: r"no valid reply in \d tries",
}


async def chat(url: str, stream: bool) -> list[str]:
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0) as client:
        body: Any = {"model": "m", "messages": QUESTION, "tools": [{"type": "function", "function": TOOL}]}
        if not stream:
            return [(await client.chat.completions.create(**body)).to_json()]
        return [chunk.to_json() async for chunk in await client.chat.completions.create(**body, stream=True)]


async def responses(url: str, stream: bool) -> list[str]:
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0) as client:
        body: Any = {"model": "m", "input": QUESTION, "tools": [{"type": "function", **TOOL}]}
        if not stream:
            return [(await client.responses.create(**body)).to_json()]
        return [event.to_json() async for event in await client.responses.create(**body, stream=True)]


async def messages(url: str, stream: bool) -> list[str]:
    async with anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0) as client:
        tool = {"name": TOOL["name"], "description": TOOL["description"], "input_schema": SCHEMA}
        body: Any = {"model": "m", "max_tokens": 99, "messages": QUESTION, "tools": [tool]}
        if not stream:
            return [(await client.messages.create(**body)).to_json()]
        return [event.to_json() async for event in await client.messages.create(**body, stream=True)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("written", SAYS, ids=["wrong argument", "unknown tool", "broken JSON"])
@pytest.mark.parametrize("ask", [chat, responses, messages])
def test_calls_that_never_fit_fail_with_the_reason(
    serve_models: Callable[..., Any], ask: Callable[[str, bool], Any], written: str, stream: bool
) -> None:
    model = Scripted([written] * 9)

    async def go() -> Any:
        async with serve_models(m=Speaker(model, "hermes")) as running:
            with pytest.raises(
                (openai.InternalServerError, anthropic.InternalServerError), match=SAYS[written]
            ) as caught:
                await ask(running.url, stream)
            return caught.value

    error = asyncio.run(go())
    assert error.status_code == 502
    assert error.response.headers["x-should-retry"] == "false"
    assert 2 <= len(model.requests) <= 3


@pytest.mark.parametrize("ask", [chat, responses, messages])
def test_after_a_sentence_was_streamed_the_stream_ends_with_the_reason(
    serve_models: Callable[..., Any], ask: Callable[[str, bool], Any]
) -> None:
    async def go() -> None:
        async with serve_models(m=Speaker(Scripted([f"Let me look.\n{WRONG}"] * 9), "hermes")) as running:
            with pytest.raises((openai.APIError, anthropic.APIError), match="no valid reply"):
                await ask(running.url, True)

    asyncio.run(go())


def test_the_rest_of_a_broken_call_is_not_streamed(serve_models: Callable[..., Any]) -> None:
    """It is text for the decoder, but the model is asked again, and the call then comes whole."""
    right = WRONG.replace("town", "city")

    async def go() -> list[str]:
        async with serve_models(m=Speaker(Scripted([f"Let me look.\n{BROKEN}", right]), "hermes")) as running:
            return await chat(running.url, True)

    deltas = [json.loads(chunk)["choices"][0]["delta"] for chunk in asyncio.run(go())]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Let me look."
    calls = [call["function"] for delta in deltas for call in delta.get("tool_calls") or ()]
    assert "".join(call["arguments"] for call in calls) == '{"city": "Xiamen"}'


def test_the_texts_of_two_attempts_are_apart_in_a_stream(serve_models: Callable[..., Any]) -> None:
    """The whole reply has only the text of the last attempt; what was streamed cannot be taken back."""
    replies = [f"<think>Hm.</think>Let me look.\n{WRONG}", "<think>Oh.</think>It is sunny."]

    async def go(stream: bool) -> list[str]:
        async with serve_models(m=Speaker(Scripted(replies), "hermes")) as running:
            return await chat(running.url, stream)

    deltas = [json.loads(chunk)["choices"][0]["delta"] for chunk in asyncio.run(go(True))]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Let me look.\n\nIt is sunny."
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == "Hm.\n\nOh."
    (whole,) = asyncio.run(go(False))
    assert json.loads(whole)["choices"][0]["message"]["content"] == "It is sunny."


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_call_of_the_server_without_a_name_is_asked_again(serve_models: Callable[..., Any], stream: bool) -> None:
    """The tools are in the prompt, and the server reads a call of its own all the same."""
    named = {"name": "weather", "arguments": '{"city": "Xiamen"}'}
    functions = iter([{**named, "name": None}, named])

    async def upstream(request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/chat/completions"):
            return web.json_response({"error": "no such page"}, status=404)
        calls = [{"index": 0, "id": "a", "type": "function", "function": next(functions)}]
        return web.Response(
            body=frames(delta(tool_calls=calls), delta("tool_calls"), "[DONE]"), content_type="text/event-stream"
        )

    async def go() -> list[str]:
        async with listening(upstream) as url:
            settings = ModelSettings("m", (f"{url}/v1#up",), mode="chat", dialect="hermes")
            async with serve_models(m=settings) as running:
                return await chat(running.url, stream)

    text = "".join(asyncio.run(go()))
    assert ("weather" in text, "unnamed" in text, next(functions, None)) == (True, False, None)


def test_a_clients_call_without_a_name_is_refused_with_its_place(serve_models: Callable[..., Any]) -> None:
    user: Any = {"role": "user", "content": "Weather?"}

    def bodies(**name: Any) -> dict[str, tuple[Any, str]]:
        called = {"function": {"arguments": "{}", **name}, "id": "a", "type": "function"}
        chat_body = {"messages": [user, {"role": "assistant", "content": "", "tool_calls": [called]}]}
        item = {"type": "function_call", "call_id": "a", "arguments": "{}", **name}
        block: dict[str, Any] = {"type": "tool_use", "id": "a", "input": {}, **name}
        return {
            "/v1/chat/completions": (chat_body, "messages.1.tool_calls.0.function.name"),
            "/api/chat": ({**chat_body, "stream": False}, "messages.1.tool_calls.0.function.name"),
            "/v1/responses": ({"input": [user, item]}, "input.1.name"),
            "/v1/messages": (
                {"max_tokens": 9, "messages": [user, {"role": "assistant", "content": [block]}, user]},
                "messages.1.content.0.name",
            ),
        }

    async def go() -> None:
        async with serve_models(m=Scripted(["Dry."], repeat=True)) as running, aiohttp.ClientSession() as session:
            for name in ({}, {"name": None}, {"name": ""}, {"name": " "}, {"name": 7}):
                for path, (body, place) in bodies(**name).items():
                    async with session.post(running.url + path, json={"model": "m", **body}) as response:
                        assert (response.status, place in await response.text()) == (400, True), (path, name)

    asyncio.run(go())
