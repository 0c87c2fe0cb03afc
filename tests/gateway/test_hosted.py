"""Tools of the operator's in the place of those that a provider runs, by a real MCP server and both SDKs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from toolspeak.errors import UsageError
from toolspeak.gateway.config import parse_config
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker

Serve = Callable[..., Any]
TOOLS = '''
def look_up(query: str) -> str:
    """Searches the web."""
    if query == "nothing":
        raise ValueError("no network")
    return f"found {query}"


def other(x: int) -> int:
    """Is not asked for."""
    return x
'''
SEARCHED = '<tool_call>\n{"name": "web_search", "arguments": {"query": "rain"}}\n</tool_call>'
FAILED = SEARCHED.replace("rain", "nothing")
OWN = '<tool_call>\n{"name": "note", "arguments": {}}\n</tool_call>'
ASKED: dict[str, Any] = {"model": "m", "input": "Will it rain?", "tools": [{"type": "web_search"}]}
ASKED_MESSAGES: dict[str, Any] = {
    "model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Will it rain?"}],
    "tools": [{"type": "web_search_20250305", "name": "web_search"}, {"name": "note", "input_schema": {"type": "object"}}],
}  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> str:
    (tmp_path / "tools.py").write_text(TOOLS, "utf-8")
    return f"mcp:{sys.executable} -m toolspeak mcp --tools {tmp_path / 'tools.py'}#look_up"


def talk(serve_models: Serve, source: str, *replies: str, say: Callable[[str], Awaitable[Any]]) -> tuple[Any, Scripted]:
    model = Speaker(Scripted(replies), "hermes")

    async def go() -> Any:
        async with serve_models(m=model, settings={"hosted": {"web_search": source}}) as running:
            try:
                return await say(running.url)
            finally:
                for box in running.gateway.hosted._boxes.values():
                    await box.aclose()

    return asyncio.run(go()), model.model


def test_a_search_runs_here_and_is_told_in_both_apis(serve_models: Serve, source: str) -> None:
    async def say(url: str) -> list[Any]:
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
            whole = await client.responses.create(**ASKED)
            stream = [event async for event in await client.responses.create(**ASKED, stream=True)]
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client:
            message = await client.messages.create(**ASKED_MESSAGES)
            async with client.messages.stream(**ASKED_MESSAGES) as events:
                streamed = await events.get_final_message()
        return [whole, stream, message, streamed]

    script = ["Let me look. " + SEARCHED, "Yes, it will."] * 4
    (whole, stream, message, streamed), model = talk(serve_models, source, *script, say=say)
    assert [item.type for item in whole.output] == ["message", "web_search_call", "message"]
    assert whole.output[1].action.query == "rain"
    assert stream[-1].response.output_text == whole.output_text
    assert [item.type for item in stream[-1].response.output] == [item.type for item in whole.output]
    assert "response.web_search_call.completed" in [event.type for event in stream]
    kinds = ["text", "server_tool_use", "web_search_tool_result", "text"]
    assert [block.type for block in message.content] == [block.type for block in streamed.content] == kinds
    assert message.content[2].tool_use_id == message.content[1].id
    assert (message.stop_reason, streamed.stop_reason) == ("end_turn", "end_turn")
    assert all("found rain" in json.dumps(request.messages) for request in model.requests[1::2])
    assert all("Searches the web." in json.dumps(request.messages) for request in model.requests)


def test_what_goes_wrong_is_told_to_the_model_and_the_client(serve_models: Serve, source: str) -> None:
    """A search that fails is an error that the model reads; one beside a call of the client's is left out; a server that is
    not there costs no request."""

    async def say(url: str) -> list[Any]:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client:
            return [await client.messages.create(**ASKED_MESSAGES) for _ in range(2)]

    (failed, beside), model = talk(serve_models, source, FAILED, "I cannot look.", SEARCHED + "\n" + OWN, say=say)
    assert failed.content[-1].text == "I cannot look."
    assert "no network" in json.dumps(model.requests[1].messages)
    assert [block.type for block in beside.content] == ["tool_use"]
    assert beside.to_dict()["toolspeak"]["notes"][0]["rule"] == "hosted-call-left-out"

    async def without(url: str) -> Any:
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
            return await client.responses.with_raw_response.create(**ASKED)

    reply, _ = talk(serve_models, "mcp:http://127.0.0.1:9/mcp", "No idea.", say=without)
    assert reply.headers["x-toolspeak-ignored"] == "tools.0.web_search"


def test_the_configuration_names_them(tmp_path: Path) -> None:
    models = '[models.m]\nupstream = "scripted:"\n'
    assert parse_config(models + '[hosted]\nweb_search = "mcp:http://127.0.0.1:9/mcp#look"').hosted == {
        "web_search": "mcp:http://127.0.0.1:9/mcp#look"
    }
    for wrong in ('"http://127.0.0.1:9/mcp"', '"mcp:http://127.0.0.1:9/mcp#a,b"', "3"):
        with pytest.raises(UsageError, match=r"hosted\.web_search"):
            parse_config(f"{models}[hosted]\nweb_search = {wrong}")
