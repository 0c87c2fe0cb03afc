"""Tools of the operator's in the place of those that a provider runs, by a real MCP server and both SDKs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from preloaded import mcp_server
from toolspeak.api.anthropic import read_request
from toolspeak.errors import UsageError
from toolspeak.gateway.config.load import parse_config
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker

Serve = Callable[..., Any]
TOOLS = '''
def look_up(query: str) -> str:
    """Searches the web."""
    if query == "nothing":
        raise ValueError("no network")
    filler = "and so on " * 5_000 if query == "long" else ""
    return f"found {query}{filler} the needle {filler}"


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


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The tool of a server over HTTP, which all tests share; one that the gateway starts is in test_call_policy."""
    tools = tmp_path_factory.mktemp("hosted") / "tools.py"
    tools.write_text(TOOLS, "utf-8")
    with mcp_server(tools) as address:
        yield f"mcp:{address}#look_up"


def talk(
    serve_models: Serve, source: str, *replies: str, say: Callable[[str], Awaitable[Any]], context: int | None = None
) -> tuple[Any, Scripted]:
    script: Any = Scripted(replies)
    script.context = context
    model = Speaker(script, "hermes")

    async def go() -> Any:
        async with serve_models(m=model, settings={"hosted": {"web_search": source}}) as running:
            return await say(running.url)

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


def test_a_search_that_comes_first_is_streamed_by_the_helper_of_the_sdk(serve_models: Serve, source: str) -> None:
    async def say(url: str) -> tuple[list[Any], Any]:
        async with (
            openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client,
            client.responses.stream(**ASKED) as stream,
        ):
            return [event async for event in stream], await stream.get_final_response()

    (events, final), _ = talk(serve_models, source, SEARCHED, "Yes, it will.", say=say)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].response.output == []
    assert [item.type for item in final.output] == ["web_search_call", "message"]


def test_what_goes_wrong_is_told_to_the_model_and_the_client(serve_models: Serve, source: str) -> None:
    """A search that fails is an error that the model reads; one beside a call of the client's is left out; a server that is
    not there costs no request."""

    async def say(url: str) -> list[Any]:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client:
            return [await client.messages.create(**ASKED_MESSAGES) for _ in range(2)]

    (failed, beside), model = talk(serve_models, source, FAILED, "I cannot look.", SEARCHED + "\n" + OWN, say=say)
    assert failed.content[-1].text == "I cannot look."
    assert "no network" in json.dumps(model.requests[1].messages)
    assert json.dumps(model.requests[1].messages).count("the tool 'look_up' failed") == 1
    assert [block.type for block in beside.content] == ["tool_use"]
    assert beside.to_dict()["toolspeak"]["notes"][0]["rule"] == "hosted-call-left-out"

    async def without(url: str) -> Any:
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
            return await client.responses.with_raw_response.create(**ASKED)

    reply, _ = talk(serve_models, "mcp:http://127.0.0.1:9/mcp", "No idea.", say=without)
    assert reply.headers["x-toolspeak-ignored"] == "tools.0.web_search"


def test_a_search_can_be_demanded(serve_models: Serve, source: str) -> None:
    """By its type, by its name or as any tool; where nobody runs it, that is refused."""

    async def say(url: str) -> list[Any]:
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
            by_type: Any = {"type": "web_search"}
            replies = [
                (await client.responses.create(**ASKED, tool_choice=choice)).output_text
                for choice in (by_type, "required")
            ]
        asked = {**ASKED_MESSAGES, "tools": ASKED_MESSAGES["tools"][:1]}
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client:
            for choice in ({"type": "tool", "name": "web_search"}, {"type": "any"}):
                message = await client.messages.create(**asked, tool_choice=choice)
                replies.append(message.content[-1].text)
        return replies

    replies, model = talk(serve_models, source, *[SEARCHED, "Yes."] * 4, say=say)
    assert replies == ["Yes."] * 4
    assert all("found rain" in json.dumps(request.messages) for request in model.requests[1::2])

    async def refused(url: str) -> None:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client:
            with pytest.raises(anthropic.BadRequestError, match="only its provider runs"):
                await client.messages.create(**ASKED_MESSAGES, tool_choice={"type": "tool", "name": "web_search"})

    talk(serve_models, "mcp:http://127.0.0.1:9/mcp", say=refused)


def test_what_was_found_is_read_in_later_turns(serve_models: Serve, source: str) -> None:
    async def say(url: str) -> Any:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client:
            first = await client.messages.create(**ASKED_MESSAGES)
            said = {"role": "assistant", "content": [block.to_dict() for block in first.content]}
            rows = [*ASKED_MESSAGES["messages"], said, {"role": "user", "content": "Sure?"}]
            return await client.messages.create(**{**ASKED_MESSAGES, "messages": rows})

    script = ["Let me look. " + SEARCHED, "Yes, it will.", "Sure."]
    last, model = talk(serve_models, source, *script, say=say)
    assert last.content[-1].text == "Sure."
    before, after = (request.messages for request in model.requests[1:])
    assert after[: len(before)] == before
    assert "found rain" in json.dumps(before)


def test_what_was_found_is_read_in_later_turns_of_the_responses_api(serve_models: Serve, source: str) -> None:
    """Where the client sends items back as they came, from a stream or not; and a result of any size page by page."""

    async def say(url: str) -> None:
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
            async with client.responses.stream(**ASKED) as stream:
                streamed = (await stream.get_final_response()).output
            whole = (await client.responses.create(**ASKED)).output
            for output in (streamed, whole):
                items: Any = [{"role": "user", "content": ASKED["input"]}, *(item.to_dict() for item in output)]
                again = {**ASKED, "input": [*items, {"role": "user", "content": "Sure?"}]}
                reply = await client.responses.with_raw_response.create(**again)
                assert "x-toolspeak-ignored" not in reply.headers
            await client.responses.create(**ASKED)

    more = '<tool_call>\n{"name": "read_more", "arguments": {"result": "r", "find": "the needle"}}\n</tool_call>'
    first = ["Let me look. " + SEARCHED, "Yes, it will."]
    script = [*first, *first, "Sure.", "Sure.", SEARCHED.replace("rain", "long"), more, "Found."]
    _, model = talk(serve_models, source, *script, say=say, context=4_000)
    asked = [request.messages for request in model.requests]
    for before, after in ((asked[1], asked[4]), (asked[3], asked[5])):
        assert after[: len(before)] == before
        assert "found rain" in json.dumps(before)
    cut, page = (str(messages[-1]["content"]) for messages in asked[7:9])
    assert "needle" not in cut
    assert "the needle" in page
    assert len(cut) + len(page) < 10_000


def test_allowed_tools_limit_what_is_searched_with(serve_models: Serve, source: str) -> None:
    note: Any = {"type": "function", "name": "note", "parameters": {"type": "object", "properties": {}}}

    async def say(url: str) -> None:
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
            for kinds, mode in (
                ([note], "auto"),
                ([{"type": "web_search"}], "auto"),
                ([{"type": "web_search"}], "required"),
            ):
                allowed: Any = {"type": "allowed_tools", "mode": mode, "tools": kinds}
                await client.responses.create(**{**ASKED, "tools": [*ASKED["tools"], note]}, tool_choice=allowed)

    _, model = talk(serve_models, source, "No.", "No.", SEARCHED, "Yes.", say=say)
    offered = [json.dumps(request.messages) for request in model.requests]
    assert ["Searches the web." in told for told in offered] == [False, True, True, True]
    assert ['\\"note\\"' in told for told in offered] == [True, False, False, False]


def test_results_from_elsewhere_are_read_as_far_as_they_can_be() -> None:
    found = {"type": "web_search_result", "title": "Rain", "url": "https://a.b", "encrypted_content": "x"}
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "It rains."}}
    fetched = {"type": "web_fetch_result", "content": document}
    blocks: list[Any] = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "rain"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [found]},
        {"type": "text", "text": "It may."},
        {"type": "server_tool_use", "id": "s2", "name": "web_fetch", "input": {"url": "https://a.b"}},
        {"type": "web_fetch_tool_result", "tool_use_id": "s2", "content": fetched},
        {"type": "server_tool_use", "id": "s3", "name": "web_search", "input": {"query": "snow"}},
        {"type": "web_search_tool_result", "tool_use_id": "s3", "content": {"error_code": "max_uses_exceeded"}},
        {"type": "server_tool_use", "id": "s4", "name": "web_search", "input": {}},
        {"type": "code_execution_tool_result", "tool_use_id": "gone", "content": {}},
    ]
    turns = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": blocks}]
    asked = read_request({"model": "m", "max_tokens": 9, "messages": turns})
    rows = asked.request.messages
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant", "tool", "tool", "assistant"]
    results = [str(row["content"]) for row in rows if row["role"] == "tool"]
    assert json.loads(results[0]) == {"title": "Rain", "url": "https://a.b"}
    assert "It rains." in results[1]
    assert json.loads(results[2]) == {"error": "max_uses_exceeded"}
    assert asked.ignored == ("code_execution_tool_result", "server_tool_use")


def test_the_configuration_names_them(tmp_path: Path) -> None:
    models = '[models.m]\nupstream = "scripted:"\n'
    assert parse_config(models + '[hosted]\nweb_search = "mcp:http://127.0.0.1:9/mcp#look"').hosted == {
        "web_search": "mcp:http://127.0.0.1:9/mcp#look"
    }
    nowhere = ('"mcp:htp://127.0.0.1:9/mcp"', '"mcp:no-such-program --now"')
    for wrong in ('"http://127.0.0.1:9/mcp"', '"mcp:http://127.0.0.1:9/mcp#a,b"', "3", *nowhere):
        with pytest.raises(UsageError, match=r"hosted\.web_search: expected"):
            parse_config(f"{models}[hosted]\nweb_search = {wrong}")
    with pytest.raises(UsageError, match="Did you mean 'web_search'"):
        parse_config(f'{models}[hosted]\nweb_serch = "mcp:http://127.0.0.1:9/mcp"')
    assert parse_config(f'{models}[hosted]\nweb_search_20990101 = "mcp:http://127.0.0.1:9/mcp"').hosted
