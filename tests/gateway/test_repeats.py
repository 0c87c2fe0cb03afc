"""An agent whose model makes the same call again and again: the model is told once, then the conversation ends in words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from toolspeak.gateway.config.load import parse_config
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.models.scripted import Scripted

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
ASKED = {"role": "user", "content": "Is it done?"}
NOTICE = "3 times in a row"


def turn(number: int, result: str = "not yet", arguments: str = '{"a": 1, "b": 2}') -> list[dict[str, Any]]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]


def turns(count: int) -> list[dict[str, Any]]:
    """So many turns that are the same, though not to the letter."""
    return [row for i in range(count) for row in turn(i, arguments='{"b":2,"a":1}' if i % 2 else '{"a": 1, "b": 2}')]


async def asked(url: str, messages: list[Any], **more: Any) -> tuple[dict[str, Any], str]:
    body = {"model": "m", "messages": messages, "tools": TOOLS, **more}
    async with aiohttp.ClientSession() as session, session.post(url + "/v1/chat/completions", json=body) as answer:
        assert answer.status == 200, await answer.text()
        return (await answer.json())["choices"][0], answer.headers.get("x-toolspeak-notes", "")


@pytest.fixture
def model() -> Scripted:
    return Scripted("Well.", capabilities=["tools"], repeat=True)


def seen(model: Scripted) -> list[Any]:
    return [message["content"] for message in model.requests[-1].messages]


def test_the_model_is_told_once_in_a_place_that_stays(serve_models: Callable[..., Any], model: Scripted) -> None:
    async def scene() -> None:
        async with serve_models(m=model) as running:
            _, notes = await asked(running.url, [ASKED, *turns(2)])
            assert not notes
            assert seen(model)[-1] == "not yet"
            _, notes = await asked(running.url, [ASKED, *turns(3)])
            assert notes == "repeats-noticed"
            before = seen(model)
            assert before[-1].startswith("not yet\n\n")
            assert NOTICE in before[-1]
            _, notes = await asked(running.url, [ASKED, *turns(4)])
            assert not notes
            assert seen(model)[: len(before)] == before
            assert seen(model)[-1] == "not yet"

    asyncio.run(scene())


OTHERS = {
    "another result": [ASKED, *turns(2), *turn(2, "it is done"), *turns(2)],
    "other arguments": [ASKED, *turns(2), *turn(2, arguments='{"a": 2}'), *turns(2)],
    "an answer between": [ASKED, *turns(2), {"role": "assistant", "content": "No."}, ASKED, *turns(2)],
}


@pytest.mark.parametrize("messages", [pytest.param(rows, id=name) for name, rows in OTHERS.items()])
def test_what_is_no_circle(serve_models: Callable[..., Any], model: Scripted, messages: list[Any]) -> None:
    async def scene() -> None:
        async with serve_models(m=model) as running:
            await asked(running.url, messages)

    asyncio.run(scene())
    assert not any(NOTICE in str(content) for content in seen(model))


def test_a_reminder_between_does_not_hide_a_circle(serve_models: Callable[..., Any], model: Scripted) -> None:
    async def scene() -> None:
        async with serve_models(m=model) as running:
            reminder = {"role": "user", "content": "Remember the list."}
            await asked(running.url, [ASKED, *turns(1), reminder, *turns(1), reminder, *turns(1)])

    asyncio.run(scene())
    assert NOTICE in seen(model)[-1]


@pytest.mark.parametrize("stream", [False, True])
def test_at_last_the_reply_says_so_and_no_model_is_asked(
    serve_models: Callable[..., Any], model: Scripted, stream: bool
) -> None:
    async def scene() -> None:
        async with serve_models(m=model) as running:
            messages = [ASKED, *turns(10)]
            if stream:
                body = {"model": "m", "messages": messages, "tools": TOOLS, "stream": True}
                async with aiohttp.ClientSession() as client:
                    async with client.post(running.url + "/v1/chat/completions", json=body) as answer:
                        text = await answer.text()
                assert "look gave the same result 10 times" in text
                assert '"finish_reason":"stop"' in text.replace(" ", "")
            else:
                choice, notes = await asked(running.url, messages)
                assert notes == "repeats-ended"
                assert choice["finish_reason"] == "stop"
                assert "look gave the same result 10 times" in choice["message"]["content"]
            assert not model.requests
            await asked(running.url, messages, tool_choice="none")  # words are wanted, and are the model's
            assert len(model.requests) == 1

    asyncio.run(scene())


def test_the_thresholds_are_the_operators(serve_models: Callable[..., Any]) -> None:
    lines = '[models.m]\nupstream = "scripted:Well."\nrepeats_noticed = 2\nrepeats_ended = 4\n'
    settings = parse_config(lines).models["m"]
    assert (settings.repeats_noticed, settings.repeats_ended) == (2, 4)
    never = ModelSettings("m", ("scripted:Well.",), repeats_noticed=0, repeats_ended=0)

    async def scene() -> None:
        async with serve_models(m=settings) as running:
            _, notes = await asked(running.url, [ASKED, *turns(2)])
            assert notes == "repeats-noticed"
            _, notes = await asked(running.url, [ASKED, *turns(4)])
            assert notes == "repeats-ended"
        async with serve_models(m=never) as running:
            choice, notes = await asked(running.url, [ASKED, *turns(30)])
            assert (choice["message"]["content"], notes) == ("Well.", "")

    asyncio.run(scene())
