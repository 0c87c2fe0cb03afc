"""A field that is null is absent, in every API and at every place; what a tool's schema says is none of our fields."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import pytest

from toolspeak.api import anthropic, openai_chat, openai_responses
from toolspeak.events import Finished, TextDelta
from toolspeak.models.scripted import Scripted

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": ["string", "null"], "default": None, "enum": ["Rome", None]}},
}
IMAGE = "data:image/png;base64,iVBORw0KGgo="
CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Let me look."}], "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": null}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "Rain"},
        {"role": "user", "content": "And now?"},
    ],
    "tools": [{"type": "function", "function": {"name": "weather", "description": "W", "parameters": SCHEMA}}],
}  # fmt: skip
MESSAGES: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": None}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "Rain"}]},
    ],
    "tools": [{"name": "weather", "description": "W", "input_schema": SCHEMA}],
    "tool_choice": {"type": "auto"},
}
RESPONSES: dict[str, Any] = {
    "model": "m",
    "store": False,
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": null}'},
        {"type": "function_call_output", "call_id": "c1", "output": "Rain"},
    ],
    "tools": [{"type": "function", "name": "weather", "description": "W", "parameters": SCHEMA}],
}
APIS = [
    pytest.param("/v1/chat/completions", CHAT, openai_chat.BODY, id="chat"),
    pytest.param("/v1/messages", MESSAGES, anthropic.BODY, id="messages"),
    pytest.param("/v1/responses", RESPONSES, openai_responses.BODY, id="responses"),
]
THEIRS = ("parameters", "input_schema", "input")
"""Where a tool's own values stand."""


def described(schema: Any) -> Iterator[str]:
    """The names of all the fields that a schema knows, at any depth."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for inner in schema.values():
            yield from described(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from described(inner)


def with_nulls(value: Any, names: set[str]) -> Any:
    """The same with every field that is not there as null, and one that nobody knows."""
    if isinstance(value, list):
        return [with_nulls(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    theirs = [name for name in THEIRS if isinstance(value.get(name), dict)]
    full = {name: value[name] if name in theirs else with_nulls(value[name], names) for name in value}
    return {**dict.fromkeys((*names, "zz_new"), None), **full}


@pytest.mark.parametrize(("path", "body", "schema"), APIS)
def test_null_is_absent_at_every_place(serve_models: Callable[..., Any], path: str, body: Any, schema: Any) -> None:
    model = Scripted([[TextDelta("Hello"), Finished()]], repeat=True, capabilities=["tools"])

    async def go() -> None:
        async with serve_models(m=model) as running, aiohttp.ClientSession() as session:
            for sent in (body, with_nulls(copy.deepcopy(body), set(described(schema)))):
                async with session.post(running.url + path, json=sent) as answer:
                    assert answer.status == 200, await answer.text()

    asyncio.run(go())
    plain, full = model.requests
    assert full.messages == plain.messages
    assert full.tools == plain.tools
    assert (full.choice, full.parallel, full.sampling) == (plain.choice, plain.parallel, plain.sampling)
    assert full.tools is not None
    assert full.tools[0].parameters["properties"]["city"]["enum"] == ["Rome", None]
    assert "null" in str(full.messages)


@pytest.mark.parametrize(
    "part", [{"type": "text", "text": "Hi", "refusal": None}, {"type": "refusal", "refusal": "No", "text": None}]
)
def test_a_part_says_null_for_what_it_is_not(serve_models: Callable[..., Any], part: dict[str, Any]) -> None:
    model = Scripted([[TextDelta("Hello"), Finished()]], capabilities=["tools"])

    async def go() -> None:
        async with serve_models(m=model) as running, aiohttp.ClientSession() as session:
            said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [part]}, CHAT["messages"][-1]]
            sent = {"model": "m", "messages": said}
            async with session.post(running.url + "/v1/chat/completions", json=sent) as answer:
                assert answer.status == 200, await answer.text()

    asyncio.run(go())
