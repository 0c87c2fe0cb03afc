"""A result that is too large for the model is shown in part, and read on here, in every API, by a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import aiohttp
import anthropic
import openai
import pytest

from replies import hermes_call
from toolspeak.errors import UsageError
from toolspeak.gateway.config.load import parse_config
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.registry import Served
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.plan.result_pages import PageSize, ResultPages
from toolspeak.types import Message

Serve = Callable[..., Any]
RULE = ModelSettings("m", ("scripted:",), context=4_000)
LOG = "".join(f"line {i}: nothing\n" for i in range(2_000)) + "line 2000: the needle\n" + "line: nothing\n" * 2_000
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def name_of(text: str) -> str:
    pages = ResultPages(PageSize(1_000), "read_more")
    pages.cut([{"role": "tool", "content": text}])
    return next(iter(pages.texts))


READ = hermes_call("read_more", result=name_of(LOG), find="needle")
REPLIES = ["I look further. " + READ, "The needle is in line 2000."]

CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is the needle?"},
    {
        "role": "assistant", "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "cat", "arguments": '{"path": "log"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": LOG},
]  # fmt: skip
CHAT_TOOLS = [{"type": "function", "function": {"name": "cat", "parameters": SCHEMA}}]
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is the needle?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "cat", "input": {"path": "log"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": LOG}]},
]
MESSAGES_TOOLS = [{"name": "cat", "input_schema": SCHEMA}]
ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is the needle?"},
    {"type": "function_call", "call_id": "c1", "name": "cat", "arguments": '{"path": "log"}'},
    {"type": "function_call_output", "call_id": "c1", "output": LOG},
]
ITEMS_TOOLS = [{"type": "function", "name": "cat", "parameters": SCHEMA}]


def talk(
    serve_models: Serve, rule: ModelSettings, replies: list[Any], say: Callable[[str], Awaitable[Any]], **options: Any
) -> tuple[Any, list[Any]]:
    """What was answered, and the requests that the model was sent."""
    model = Scripted(replies, **options)

    async def go() -> Any:
        async with serve_models(m=model if options.get("capabilities") else Speaker(model, "hermes")) as running:
            served = running.gateway.models.served
            served["m"] = Served(rule, served["m"].model)
            return await say(running.url)

    return asyncio.run(go()), model.requests


def said(request: Any) -> list[str]:
    return [f"{row['role']}: {row['content']}" for row in request.messages]


async def chat(url: str, stream: bool) -> str:
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
        asked: Any = {"model": "m", "messages": CHAT, "tools": CHAT_TOOLS}
        if not stream:
            reply = await client.chat.completions.create(**asked)
            assert reply.choices[0].finish_reason == "stop"
            assert not reply.choices[0].message.tool_calls
            return reply.choices[0].message.content or ""
        chunks = [chunk async for chunk in await client.chat.completions.create(**asked, stream=True)]
        assert not any(chunk.choices and chunk.choices[0].delta.tool_calls for chunk in chunks)
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


async def messages(url: str, stream: bool) -> str:
    async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client:
        asked: Any = {"model": "m", "max_tokens": 99, "messages": MESSAGES, "tools": MESSAGES_TOOLS}
        if stream:
            async with client.messages.stream(**asked) as events:
                reply: Any = await events.get_final_message()
        else:
            reply = await client.messages.create(**asked)
        assert (reply.stop_reason, {block.type for block in reply.content}) == ("end_turn", {"text"})
        return "".join(block.text for block in reply.content)


async def responses(url: str, stream: bool) -> str:
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
        asked: Any = {"model": "m", "input": ITEMS, "tools": ITEMS_TOOLS, "store": False}
        if stream:
            reply: Any = [event async for event in await client.responses.create(**asked, stream=True)][-1].response
        else:
            reply = await client.responses.create(**asked)
        assert {item.type for item in reply.output} == {"message"}
        return reply.output_text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", [chat, messages, responses])
def test_the_model_reads_on_and_the_client_sees_the_answer(
    serve_models: Serve, api: Callable[[str, bool], Awaitable[str]], stream: bool
) -> None:
    text, requests = talk(serve_models, RULE, REPLIES, lambda url: api(url, stream))
    assert text.startswith("I look further.")
    assert text.endswith("The needle is in line 2000.")
    first, second = map(said, requests)
    assert "2000: the needle" not in "".join(first)
    assert "line 2000: the needle" in second[-1]
    assert second[: len(first)] == first
    assert len("".join(second)) < 4 * RULE.context  # type: ignore[operator]


def test_what_was_read_stays_where_it_was_read(serve_models: Serve) -> None:
    """The prompt's beginning is the same from turn to turn; a call of the client's beside a read goes out alone."""
    replies = [REPLIES[0], REPLIES[1], READ + "\n" + hermes_call("cat", path="other"), "Well."]

    async def say(url: str) -> list[Any]:
        rows, replied = list(CHAT), list[Any]()
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
            for new in ("", "And the other?", ""):
                rows += [{"role": "user", "content": new}] if new else []
                asked: Any = {"model": "m", "messages": rows, "tools": CHAT_TOOLS}
                message = (await client.chat.completions.create(**asked)).choices[0].message
                replied.append(message)
                rows.append(message.model_dump(exclude_none=True))
                rows += [
                    {"role": "tool", "tool_call_id": call.id, "content": "empty"} for call in message.tool_calls or ()
                ]
        return replied

    replied, requests = talk(serve_models, RULE, replies, say)
    assert [[call.function.name for call in one.tool_calls or ()] for one in replied] == [[], ["cat"], []]
    prompts = list(map(said, requests))
    for before, after in pairwise(prompts):
        assert after[: len(before)] == before
    assert sum("line 2000: the needle" in row for row in prompts[-1]) == 2


def test_another_process_reads_on(serve_models: Serve) -> None:
    """Nothing but the request is needed: a gateway that never saw the conversation answers the same."""
    for _ in range(2):
        _, requests = talk(serve_models, RULE, REPLIES, lambda url: chat(url, False))
        assert "the needle" in said(requests[1])[-1]


def test_reading_on_ends_where_there_is_no_room_and_after_so_many_times(serve_models: Serve) -> None:
    turns = [hermes_call("read_more", result=name_of(LOG), start=i * 4_000) for i in range(9)]
    text, requests = talk(serve_models, RULE, [*turns, "That is all I know."], lambda url: chat(url, False))
    assert len(requests) == 10
    assert text == "That is all I know.", "one who reads on for ever is asked once more, for words"
    assert len("".join(said(requests[-1]))) < 4 * RULE.context  # type: ignore[operator]
    assert "There is no room to read more of it." in said(requests[-1])[-1]


def test_a_native_model_is_offered_the_tool_once_there_is_something_to_read(serve_models: Serve) -> None:
    async def say(url: str) -> list[str]:
        notes: list[str] = []
        async with aiohttp.ClientSession() as session:
            for rows, choice in ((CHAT[:1], "auto"), (CHAT, "auto"), (CHAT, "none")):
                body = {"model": "m", "messages": rows, "tools": CHAT_TOOLS, "tool_choice": choice}
                async with session.post(url + "/v1/chat/completions", json=body) as answer:
                    assert answer.status == 200
                    notes.append(answer.headers.get("x-toolspeak-notes", ""))
        return notes

    notes, requests = talk(serve_models, RULE, ["Well."], say, capabilities=["tools"], repeat=True)
    assert notes == ["", "results-cut", "results-cut"]
    assert [[tool.name for tool in request.tools] for request in requests][:2] == [["cat"], ["cat", "read_more"]]


def test_the_operator_says_how_much_is_shown(serve_models: Serve) -> None:
    lines = '[models.m]\nupstream = "scripted:Well."\nresult_tokens = 100\n'
    settings = parse_config(lines).models["m"]
    assert settings.result_tokens == 100
    with pytest.raises(UsageError, match="result_tokens"):
        parse_config(lines.replace("100", "-1"))
    for rule, shorter in (
        (settings, True),
        (replace(RULE, result_tokens=0), False),
        (replace(RULE, context=None), False),
    ):
        _, requests = talk(serve_models, rule, ["Well."], lambda url: chat(url, False))
        assert (len(said(requests[0])[-1]) < len(LOG)) == shorter


def test_a_result_that_was_cleared_can_be_read_again(serve_models: Serve) -> None:
    rule = replace(RULE, context=None, clear_results=500, keep_results=1)
    small = [f"{i}: " + "words " * 100 for i in range(6)]
    rows: list[Any] = CHAT[:1]
    for i, text in enumerate(small):
        call = {"id": f"c{i}", "type": "function", "function": {"name": "cat", "arguments": "{}"}}
        rows = [*rows, {"role": "assistant", "content": None, "tool_calls": [call]}]
        rows.append({"role": "tool", "tool_call_id": f"c{i}", "content": text})
    message: Message = {"role": "tool", "content": small[0]}
    pages = ResultPages(PageSize(1), "read_more")
    pages.cut([message])

    async def say(url: str) -> str:
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
            asked: Any = {"model": "m", "messages": rows, "tools": CHAT_TOOLS}
            return (await client.chat.completions.create(**asked)).choices[0].message.content or ""

    text, requests = talk(serve_models, rule, [hermes_call("read_more", result=next(iter(pages.texts))), "Done."], say)
    assert text == "Done."
    assert small[0] not in "".join(said(requests[0]))
    assert small[0] in said(requests[1])[-1]
