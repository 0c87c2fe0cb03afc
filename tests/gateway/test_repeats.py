"""An agent whose model makes the same call again and again: the model is told once, then the conversation ends in words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from cost import LINEAR, growth
from toolspeak.gateway.config.load import parse_config
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.models.scripted import Scripted
from toolspeak.plan import repeats

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
ASKED = {"role": "user", "content": "Is it done?"}
NOTICE = "3 times in a row"


def turn(number: int, result: Any = "not yet", arguments: str = '{"a": 1, "b": 2}') -> list[dict[str, Any]]:
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


def numbered(count: int) -> list[dict[str, Any]]:
    """Turns with results that differ in an id, a time and a counter, as Codex reports each command."""
    result = "Chunk ID: {:06x}\nWall time: 0.{:04} seconds\nProcess exited with code 0\nOutput: {} files"
    return [row for i in range(count) for row in turn(i, result.format(i * 7_919, i, i))]


def test_numbers_and_ids_in_results_do_not_hide_a_circle(serve_models: Callable[..., Any], model: Scripted) -> None:
    async def scene() -> None:
        async with serve_models(m=model) as running:
            assert (await asked(running.url, [ASKED, *numbered(2)]))[1] == ""
            assert (await asked(running.url, [ASKED, *numbered(3)]))[1] == "repeats-noticed"
            before = seen(model)
            assert "3 times in a row, and the results differ only in numbers and ids" in before[-1]
            assert (await asked(running.url, [ASKED, *numbered(49)]))[1] == ""  # it may wait for progress
            assert seen(model)[: len(before)] == before
            choice, notes = await asked(running.url, [ASKED, *numbered(50)])
            assert notes == "repeats-ended"
            assert "look gave results that differ only in numbers and ids 50 times" in choice["message"]["content"]

    asyncio.run(scene())


def test_equal_results_after_similar_ones_end_as_early_as_ever(
    serve_models: Callable[..., Any], model: Scripted
) -> None:
    async def scene() -> None:
        async with serve_models(m=model) as running:
            assert (await asked(running.url, [ASKED, *numbered(5), *numbered(1) * 9]))[1] == ""
            assert (await asked(running.url, [ASKED, *numbered(5), *numbered(1) * 10]))[1] == "repeats-ended"

    asyncio.run(scene())


PARTS = [{"type": "text", "text": "at 12:01"}], [{"type": "text", "text": "at 12:02"}]
IMAGES = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}} for data in ("iVB1", "iVB2")]


@pytest.mark.parametrize(
    ("first", "second", "similar"),
    [
        ("id 550e8400-e29b-41d4-a716-446655440000", "id 550e8400-e29b-41d4-beef-446655440001", True),
        ("took 5 s", "took 12.5 s", True),
        ('{"done":false,"at":"2026-11-24T19:00:01Z"}', '{"done":false,"at":"2026-11-24T19:00:02Z"}', True),
        ('{"done":false,"n":1}', '{"done":true,"n":2}', False),
        ("step 1: compile", "step 2: link", False),
        ("1 file", "1 file more", False),
        (*PARTS, True),
        ([IMAGES[0]], [IMAGES[1]], False),
    ],
)
def test_similar_results_differ_only_in_words_with_a_digit(first: Any, second: Any, similar: bool) -> None:
    last = repeats.counted_turns([*turn(0, first), *turn(1, second)])[-1]
    assert (last.equal, last.similar) == (1, 2 if similar else 1)


def test_results_of_different_calls_are_not_similar() -> None:
    rows = [*turn(0, "took 1 s", '{"a": 1}'), *turn(1, "took 2 s", '{"a": 2}')]
    assert repeats.counted_turns(rows)[-1].similar == 1


@pytest.mark.parametrize("text", ["a", "a.", "1", "a1 ", "- ", "ü", "\n"])
def test_comparing_long_results_takes_linear_time(text: str) -> None:
    def work(size: int) -> Callable[[], Any]:
        rows = [*turn(0, text * size + "1"), *turn(1, text * size + "2")]
        return lambda: repeats.counted_turns(rows)

    assert growth(work) <= LINEAR


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
