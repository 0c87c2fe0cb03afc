"""Requests with thousands of tools: the model is shown those that fit, the client is told how many."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import anthropic
import openai
import pytest
from aiohttp import web

from listening import listening
from many import DEEDS, THINGS
from toolspeak.errors import MissingExtra, UsageError
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, TextDelta
from toolspeak.gateway import registry
from toolspeak.gateway.config.load import parse_config
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.registry import Models
from toolspeak.models.base import Model
from toolspeak.models.embedded.local import Local
from toolspeak.models.scripted import Scripted
from toolspeak.search import router
from toolspeak.types import Request

NOUNS = [*THINGS, "parcel", "door"]


def offered(count: int) -> list[Any]:
    """That many tools, each of the size of a usual one."""
    rows: list[Any] = []
    for at in range(count):
        deed, noun = DEEDS[at % 10], NOUNS[at // 10 % len(NOUNS)]
        said = f"{deed.title()} the {noun} in the house {at // 180}. It needs the account and tells how things stand."
        properties = {
            "account": {"type": "string", "description": "The account, as it was told when the user came in."},
            noun: {"type": "string", "description": f"Which {noun} is meant."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many at most."},
            "language": {"type": "string", "enum": ["en", "de", "zh"]},
        }
        schema = {"type": "object", "properties": properties, "required": ["account"]}
        name = f"house{at // 180}_{deed}_{noun}"
        rows.append({"type": "function", "function": {"name": name, "description": said, "parameters": schema}})
    return rows


QUESTION: Any = [{"role": "user", "content": "Please cancel the hotel in house 7"}]
WANTED = "house7_cancel_hotel"
Scene = Callable[[openai.AsyncOpenAI], Awaitable[None]]


def called(name: str, **arguments: Any) -> list[Event]:
    return [CallStart(name, "c1"), ArgumentsDelta(json.dumps(arguments)), CallEnd(), Finished("tool_calls")]


def native(*replies: Any) -> Scripted:
    return Scripted(replies, capabilities=["tools", "required"])


def names(model: Scripted) -> list[list[str]]:
    return [[tool.name for tool in request.tools or ()] for request in model.requests]


@pytest.fixture
def play(serve_models: Callable[..., Any]) -> Callable[..., None]:
    def go(model: Model, scene: Scene) -> None:
        async def run() -> None:
            async with (
                serve_models(m=model) as running,
                openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="x", max_retries=0) as client,
            ):
                await scene(client)

        asyncio.run(run())

    return go


@pytest.mark.costly
def test_five_thousand_tools_fit_and_are_indexed_once(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    real = router.INDEXES._make

    def counted(entry: Any) -> None:
        made.append(len(entry.tools))
        real(entry)

    monkeypatch.setattr(router.INDEXES, "_make", counted)
    tools = offered(5_000)
    model = native(*[called(WANTED, account="a")] * 4)

    async def scene(client: openai.AsyncOpenAI) -> None:
        ask = client.chat.completions
        for _ in range(3):
            answer = await ask.with_raw_response.create(model="m", messages=QUESTION, tools=tools)
            assert answer.headers["x-toolspeak-tools"] == "20 of 5000"
            (call,) = answer.parse().choices[0].message.tool_calls or ()
            assert call.function.name == WANTED  # type: ignore[union-attr]
        async with ask.with_streaming_response.create(model="m", messages=QUESTION, tools=tools, stream=True) as answer:
            assert answer.headers["x-toolspeak-tools"] == "20 of 5000"
            assert WANTED in await answer.text()

    play(model, scene)
    assert made == [5_000]
    assert [len(row) for row in names(model)] == [21] * 4
    assert all(WANTED in row for row in names(model))
    assert len({json.dumps([tool.name for tool in request.tools or ()]) for request in model.requests}) == 1


def test_a_search_stays_here_and_what_it_found_stays_shown(play: Callable[..., None]) -> None:
    other = "house3_send_parcel"
    model = native(
        [TextDelta("One moment."), *called("search_tools", query="send the parcel in house 3")],
        called(other, account="a"),
        [TextDelta("Sent."), Finished()],
        [TextDelta("You are welcome."), Finished()],
    )
    tools = offered(1_000)

    async def scene(client: openai.AsyncOpenAI) -> None:
        messages = list(QUESTION)
        ask = client.chat.completions.create
        first = (await ask(model="m", messages=messages, tools=tools)).choices[0].message
        assert first.content == "One moment."
        (call,) = first.tool_calls or ()
        assert call.function.name == other  # type: ignore[union-attr]
        messages += [first.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "sent"}]
        second = (await ask(model="m", messages=messages, tools=tools)).choices[0].message
        messages += [second.model_dump(exclude_none=True), {"role": "user", "content": "Thank you"}]
        await ask(model="m", messages=messages, tools=tools)

    play(model, scene)
    before, after, again, thanked = names(model)
    assert other not in before
    assert other in after
    assert after[: len(before)] == before
    assert after == again
    assert thanked[: len(again)] == again
    sent = [list(request.messages) for request in model.requests]
    assert all(later[: len(sooner)] == sooner for sooner, later in itertools.pairwise(sent))


def test_the_notes_tell_of_it_and_the_log_does(serve_models: Callable[..., Any]) -> None:
    model = native(called("search_tools", query="parcel"), [TextDelta("Hello"), Finished()])

    async def go() -> None:
        async with serve_models(m=model) as running, aiohttp.ClientSession() as session:
            records: list[Any] = []
            end = running.gateway.observer.end
            running.gateway.observer.end = lambda record, *rest, **more: (
                records.append(record),
                end(record, *rest, **more),
            )
            body = {"model": "m", "messages": QUESTION, "tools": offered(200)}
            async with session.post(running.url + "/v1/chat/completions", json=body) as answer:
                notes = (await answer.json())["choices"][0]["toolspeak"]["notes"]
                assert answer.headers["x-toolspeak-notes"] == "tools-shown, tools-searched"
            assert [note["rule"] for note in notes] == ["tools-shown", "tools-searched"]
            assert notes[0]["detail"] == "20 of 200"
            assert (records[0].visible_tools, records[0].searches, records[0].repairs) == ("20 of 200", 1, {})

    asyncio.run(go())


def test_what_is_counted_is_what_would_be_sent(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with (
            serve_models(m=native()) as running,
            anthropic.AsyncAnthropic(base_url=running.url, api_key="x", max_retries=0) as client,
        ):
            counts: list[int] = []
            for count in (20, 1_000):
                rows = [row["function"] for row in offered(count)]
                tools: Any = [
                    {"name": row["name"], "description": row["description"], "input_schema": row["parameters"]}
                    for row in rows
                ]
                told = await client.messages.count_tokens(model="m", messages=QUESTION, tools=tools)
                counts.append(told.input_tokens)
            assert counts[1] < 2 * counts[0]

    asyncio.run(go())


def test_a_provider_that_takes_128_tools_is_sent_no_more(serve_models: Callable[..., Any]) -> None:
    bodies: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        if len(body["tools"]) > 128:
            return web.json_response({"error": {"message": "too many tools: the most is 128"}}, status=400)
        call = {"id": "c1", "type": "function", "function": {"name": WANTED, "arguments": '{"account": "a"}'}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})

    async def go() -> None:
        async with listening(answer, "/v1/chat/completions") as url:
            settings = ModelSettings("m", (f"{url}/v1#big",), mode="native", max_tools=100, pinned=("house0_*",))
            async with (
                serve_models(m=settings) as running,
                openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="x", max_retries=0) as client,
            ):
                told = await client.chat.completions.create(model="m", messages=QUESTION, tools=offered(1_500))
            (call,) = told.choices[0].message.tool_calls or ()
            assert call.function.name == WANTED  # type: ignore[union-attr]

    asyncio.run(go())
    assert len(bodies[0]["tools"]) == 128


def test_a_client_that_leaves_ends_the_search_too(play: Callable[..., None]) -> None:
    left = asyncio.Event()

    class Endless(Scripted):
        async def stream(self, request: Request) -> AsyncIterator[Event]:
            async for event in super().stream(request):
                yield event
            if len(self.requests) == 2:
                try:
                    await asyncio.Event().wait()
                finally:
                    left.set()

    model = Endless([called("search_tools", query="parcel"), [TextDelta("One moment.")]], capabilities=["tools"])

    async def scene(client: openai.AsyncOpenAI) -> None:
        stream = await client.chat.completions.create(model="m", messages=QUESTION, tools=offered(200), stream=True)
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.close()
        async with asyncio.timeout(60):
            await left.wait()

    play(model, scene)


def test_the_embedded_model_is_shown_the_right_one(play: Callable[..., None]) -> None:
    pytest.importorskip("xllamacpp")
    rooms = ["kitchen", "hall", "garage", "cellar", "attic", "office", "bathroom", "bedroom", "nursery", "library"]
    deeds = ["open the window", "close the window", "turn on the light", "turn off the light", "lock the door", "heat"]
    tools: Any = [
        {"type": "function", "function": {"name": f"{room}_{deed.replace(' ', '_')}", "description": f"To {deed} in the {room}."}}
        for room in rooms
        for deed in deeds
    ]  # fmt: skip
    question: Any = [{"role": "user", "content": "Please turn on the light in the attic"}]

    async def scene(client: openai.AsyncOpenAI) -> None:
        answer = await client.with_options(timeout=800).chat.completions.with_raw_response.create(
            model="m", messages=question, tools=tools
        )
        assert answer.headers["x-toolspeak-tools"] == "10 of 60"
        (call,) = answer.parse().choices[0].message.tool_calls or ()
        assert call.function.name == "attic_turn_on_the_light"  # type: ignore[union-attr]

    play(Local(), scene)


def test_how_many_are_shown_is_configured() -> None:
    text = '[models.m]\nupstream = "local"\nshown = 5\nshown_tokens = 1000\npinned = ["ask_user", "files_*"]\n'
    model = parse_config(text).models["m"]
    assert (model.max_tools, model.tool_tokens, model.pinned) == (5, 1_000, ("ask_user", "files_*"))
    for line, said in (
        ("shown = 200", "from 0 to 127"),
        ("shown = true", "a whole number"),
        ("shown_tokens = 0", "of at least 1"),
        ('pinned = "files_*"', "expected a list"),
        ("show = 5", "Did you mean 'shown'"),
    ):
        with pytest.raises(UsageError, match=said):
            parse_config(f'[models.m]\nupstream = "local"\n{line}\n')


def test_what_chooses_must_be_there_where_it_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> Any:
        raise MissingExtra("an index of tools needs it: pip install 'toolspeak[search]'")

    monkeypatch.setattr(registry, "ToolIndex", missing)
    parse_config('[models.m]\nupstream = "local"\nshown = 0\n')
    with pytest.raises(UsageError, match=r"models\.m: an index of tools needs it"):
        parse_config('[models.m]\nupstream = "local"\nshown = 5\n')


@pytest.mark.parametrize(
    ("settings", "count"),
    [({"max_tools": 0}, 60), ({"max_tools": 3}, 4), ({"pinned": ("house0_get_weather",)}, 12), ({}, 11)],
)
def test_the_settings_hold(settings: dict[str, Any], count: int, serve_models: Callable[..., Any]) -> None:
    model = Scripted([[TextDelta("Hello"), Finished()]], capabilities=["tools", "score"])
    served = ModelSettings("m", ("scripted:",), **settings)

    async def go() -> None:
        async with (
            serve_models(m=served) as running,
            openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="x", max_retries=0) as client,
        ):
            found: Models = running.gateway.models
            found.served["m"] = type(found.served["m"])(served, model)
            await client.chat.completions.create(model="m", messages=QUESTION, tools=offered(60))

    asyncio.run(go())
    assert len(model.requests[0].tools or ()) == count
