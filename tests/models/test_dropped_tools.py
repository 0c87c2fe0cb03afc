"""A server of one's own that takes tools and does not give them to its model: its count of tokens shows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import pytest
from aiohttp import web

import toolspeak as ts
from toolspeak.events import Event, Finished, Noted, TextDelta
from toolspeak.gateway.generation import answer
from toolspeak.models.calls_in_text import Listener
from toolspeak.models.fallback import Adaptive
from toolspeak.models.http import Http
from toolspeak.models.pool import Pool
from toolspeak.models.strategy import Preferences
from toolspeak.types import Usage


def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Weather in a city."""
    return "sunny"


TOOLS = (ts.tool(weather),)
QUESTION = "Weather in Xiamen?"


def reply(tokens: int, **delta: Any) -> bytes:
    rows: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 5}},
    ]
    return "".join(f"data: {json.dumps(row)}\n\n" for row in rows).encode() + b"data: [DONE]\n\n"


CALL: dict[str, Any] = {
    "tool_calls": [{"index": 0, "id": "c", "function": {"name": "weather", "arguments": '{"city": "Xiamen"}'}}]
}


def decided(serve: Callable[..., Any], answer: bytes, **options: Any) -> ts.Reply:
    async def ask() -> ts.Reply:
        async with serve(answer) as server:
            return await ts.adecide(QUESTION, tools=TOOLS, model=ts.model(f"{server.url}/v1#m"), **options)

    return asyncio.run(ask())


def test_a_count_without_the_tools_leaves_a_note(serve: Callable[..., Any]) -> None:
    (note,) = decided(serve, reply(17, content="I cannot look that up.")).notes
    assert note.rule == "tools-dropped"
    assert "counted 17 tokens in the whole prompt; the tools alone are about 57" in note.detail
    assert "toolspeak doctor" in note.detail


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply(60, content="No."), id="the tools were read"),
        pytest.param(reply(0, content="No."), id="nothing was counted"),
        pytest.param(reply(17, **CALL), id="a call shows that they were read"),
        pytest.param(
            reply(17, content='<tool_call>\n{"name": "weather", "arguments": {"city": "Xiamen"}}\n</tool_call>'),
            id="a call in the text shows it",
        ),
    ],
)
def test_other_counts_leave_none(serve: Callable[..., Any], answer: bytes) -> None:
    assert "tools-dropped" not in [note.rule for note in decided(serve, answer).notes]


def test_tools_that_must_not_be_called_may_be_left_out(serve: Callable[..., Any]) -> None:
    assert decided(serve, reply(17, content="No."), choice="none").notes == ()


@pytest.mark.parametrize(
    ("own_server", "usage", "noted"),
    [(True, Usage(17, 5), True), (False, Usage(17, 5), False), (True, Usage(17, 5, estimated=True), False)],
)
def test_only_a_count_of_ones_own_server_is_believed(own_server: bool, usage: Usage, noted: bool) -> None:
    """A hosted API may count otherwise, such as without what it had cached, and an estimate knows nothing."""
    request = ts.Request([{"role": "user", "content": QUESTION}], TOOLS)
    events: list[Event] = Listener(request, None, own_server=own_server).hear(Finished("stop", usage))
    assert any(isinstance(event, Noted) and event.note.rule == "tools-dropped" for event in events) is noted


async def counts_words(request: web.Request) -> web.Response:
    """A server that takes tools, drops them, and counts the words that its model reads."""
    if not request.path.endswith("/chat/completions"):
        return web.Response(status=404)
    messages = json.dumps((await request.json())["messages"])
    written = '{"tool": "weather", "tool_input": {"city": "Xiamen"}, "message": null}'
    text = "Sunny." if "sunny" in messages else written if "weather" in messages else "No."
    return web.Response(body=reply(len(messages.split()), content=text), content_type="text/event-stream")


def chats(bodies: list[Any]) -> list[str]:
    """How the tools came in each conversation; "compared" for a request of one token."""
    rows = [body for body in bodies if body and "messages" in body]
    return ["compared" if one.get("max_tokens") == 1 else "native" if "tools" in one else "prompted" for one in rows]


def test_a_server_whose_counts_show_it_is_asked_with_the_tools_in_the_prompt(serve: Callable[..., Any]) -> None:
    """The request is asked again, and the model object stays with that."""

    async def ask() -> None:
        async with serve(counts_words) as server:
            model = ts.model(f"{server.url}/v1#m")
            first = await ts.arun(QUESTION, tools=TOOLS, model=model)
            assert [step.results[0].text for step in first.steps[:1]] == ["sunny"]
            assert first.text == "Sunny."
            assert [note.rule for note in first.notes] == ["tools-in-prompt", "re-asked"]
            assert chats(server.bodies) == ["native", *["compared"] * 3, "prompted", "prompted"]
            server.bodies.clear()
            second = await ts.arun(QUESTION, tools=TOOLS, model=model)
            assert (second.text, second.notes) == ("Sunny.", ())
            assert chats(server.bodies) == ["prompted", "prompted"]

    asyncio.run(ask())


def test_the_text_that_was_streamed_stays_and_the_call_follows(serve: Callable[..., Any]) -> None:
    async def ask() -> None:
        async with serve(counts_words) as server:
            model = ts.model(f"{server.url}/v1#m")
            events = [event async for event in ts.astream(QUESTION, tools=TOOLS, model=model)]
            assert [event.text for event in events if isinstance(event, TextDelta)] == ["No.", "Sunny."]

    asyncio.run(ask())


async def speaks_twice(request: web.Request) -> web.Response:
    """As `counts_words`, but its model calls nothing, wherever the tools are."""
    if not request.path.endswith("/chat/completions"):
        return web.Response(status=404)
    messages = json.dumps((await request.json())["messages"])
    text = "I am well, thank you." if "weather" in messages else "I am well."
    return web.Response(body=reply(len(messages.split()), content=text), content_type="text/event-stream")


def streamed(model: ts.Model) -> AsyncIterator[Any]:
    return ts.astream("How are you?", tools=TOOLS, model=model)


def passed_on(model: ts.Model) -> AsyncIterator[Any]:
    return answer(ts.Request([{"role": "user", "content": "How are you?"}], TOOLS), model)


@pytest.mark.parametrize("stream", [streamed, passed_on], ids=["library", "gateway"])
@pytest.mark.parametrize("pooled", [False, True], ids=["one server", "a pool"])
def test_an_answer_in_words_is_streamed_once(
    serve: Callable[..., Any], stream: Callable[[ts.Model], AsyncIterator[Any]], pooled: bool
) -> None:
    """The answer was passed on before the count came, so it stays unless the next reply has a call: the stream has the text
    of the run."""

    async def ask() -> None:
        async with serve(speaks_twice) as server:
            url = f"{server.url}/v1#m"
            run = await ts.arun("How are you?", tools=TOOLS, model=ts.model(url))
            assert run.text == "I am well."
            assert [note.rule for note in run.notes] == ["tools-in-prompt"]
            assert run.messages[-1] == {"role": "assistant", "content": "I am well."}
            assert chats(server.bodies) == ["native", *["compared"] * 3, "prompted"]
            model: ts.Model = Pool([ts.model(url)]) if pooled else ts.model(url)
            events = [event async for event in stream(model)]
            assert [event.text for event in events if isinstance(event, TextDelta)] == [run.text]
            spent = [event.usage for event in events if isinstance(event, Finished)]
            assert sum(usage.prompt_tokens for usage in spent) == run.usage.prompt_tokens
            assert sum(usage.completion_tokens for usage in spent) == 10
            later = [event async for event in stream(model)]
            assert [event.text for event in later if isinstance(event, TextDelta)] == ["I am well, thank you."]

    asyncio.run(ask())


COUNTS: dict[str, Callable[[int, int], int]] = {
    "the tools too": lambda words, tools: words + tools,
    "the same for all": lambda words, tools: 7,
    "only a part": lambda words, tools: 7 + (words > 40),
    "nothing": lambda words, tools: 0,
}


@pytest.mark.parametrize("how", COUNTS)
def test_a_server_that_counts_otherwise_stays_native(serve: Callable[..., Any], how: str) -> None:
    """A count is low, as from a cache, and the model answers in words; but the comparison does not show that it gets no tools."""

    async def answer(request: web.Request) -> web.Response:
        if not request.path.endswith("/chat/completions"):
            return web.Response(status=404)
        body = await request.json()
        words, tools = (len(json.dumps(body.get(name, "")).split()) for name in ("messages", "tools"))
        tokens = COUNTS[how](words, tools) if body.get("max_tokens") == 1 else 7
        return web.Response(body=reply(tokens, content="No."), content_type="text/event-stream")

    async def ask() -> None:
        async with serve(answer) as server:
            model = ts.model(f"{server.url}/v1#m")
            for _ in range(2):
                await ts.arun(QUESTION, tools=TOOLS, model=model)
            assert chats(server.bodies) == ["native", *["compared"] * 3, "native"]

    asyncio.run(ask())


def test_a_server_whose_model_called_a_tool_is_not_compared(serve: Callable[..., Any]) -> None:
    async def ask() -> None:
        async with serve(reply(17, **CALL), reply(17, content="Sunny.")) as server:
            model = ts.model(f"{server.url}/v1#m")
            assert (await ts.arun(QUESTION, tools=TOOLS, model=model)).text == "Sunny."
            await ts.arun(QUESTION, tools=TOOLS, model=model)
            assert chats(server.bodies) == ["native"] * 3

    asyncio.run(ask())


def test_a_way_that_was_chosen_stays(serve: Callable[..., Any]) -> None:
    async def ask() -> None:
        async with serve(counts_words) as server:
            model = Adaptive(Http(f"{server.url}/v1", "m"), Preferences("native"))
            reply = await ts.arun(QUESTION, tools=TOOLS, model=model)
            assert [note.rule for note in reply.notes] == ["tools-dropped"]
            assert chats(server.bodies) == ["native"]

    asyncio.run(ask())
