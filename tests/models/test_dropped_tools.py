"""A server of one's own that takes tools and does not give them to its model: its count of tokens shows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Literal

import pytest
from aiohttp import web

import toolspeak as ts
from toolspeak.events import Event, Finished, Noted
from toolspeak.models.calls_in_text import Listener
from toolspeak.models.http import Http
from toolspeak.models.servers.probe import server_capabilities
from toolspeak.types import Usage


def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Weather in a city."""
    return "sunny"


TOOLS = (ts.tool(weather),)
QUESTION = "Weather in Xiamen?"


def reply(tokens: int, **delta: Any) -> bytes:
    rows = [
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


def test_what_the_probe_finds_decides_from_then_on(serve: Callable[..., Any]) -> None:
    """The note changes nothing by itself; the probe compares, and the tools go into the prompt."""

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/v1/models":
            return web.json_response({"data": [{"id": "m"}]})
        if not request.path.endswith("/chat/completions"):
            return web.Response(status=404)
        words = sum(len(message["content"].split()) for message in (await request.json())["messages"])
        return web.Response(body=reply(words, content="No."), content_type="text/event-stream")

    async def ask() -> None:
        async with serve(answer) as server:
            url = f"{server.url}/v1"
            first = await ts.adecide(QUESTION, tools=TOOLS, model=ts.model(f"{url}#m"))
            assert [note.rule for note in first.notes] == ["tools-dropped"]
            await server_capabilities(Http(url, "m"))
            await ts.adecide(QUESTION, tools=TOOLS, model=ts.model(f"{url}#m"))
            assert "tools" not in server.bodies[-1]
            assert "weather" in json.dumps(server.bodies[-1]["messages"])

    asyncio.run(ask())
