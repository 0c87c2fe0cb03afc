"""Calls of a server without a name, or with other fields that no call has: the model is told, and asked again, whether the
server got the tools itself or in the prompt."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import pytest
from aiohttp import web

import toolspeak as ts
from listening import listening
from replies import answered, delta, frames
from toolspeak.drive import Done
from toolspeak.gateway.generation import answer
from toolspeak.models.speaker import Speaker
from toolspeak.plan.calls import UNNAMED
from toolspeak.plan.messages import conversation

QUESTION = "What is the weather in Xiamen?"
CITY = '{"city": "Xiamen"}'
NAMES: dict[str, Any] = {"null": None, "empty": "", "blank": " \n", "a number": 7, "a list": ["weather"]}


def weather(city: str) -> str:
    """The weather in a city, now."""
    return f"rain in {city}"


def sent(name: Any = "weather", arguments: Any = CITY, **more: Any) -> dict[str, Any]:
    return {"index": 0, "id": "a", "type": "function", "function": {"name": name, "arguments": arguments}, **more}


NAMELESS: dict[str, Any] = {
    **{f"a name that is {what}": [sent(name)] for what, name in NAMES.items()},
    "no name": [sent(function={"arguments": CITY})],
    "no arguments either": [sent(function={})],
    "no function": [{}],
    "a function that is a text": [sent(function="weather")],
    "two without a name": [sent(""), sent("", index=1, id="b")],
    "one of two, with the same id": [sent(""), sent(index=1)],
    "a text in place of a call": ["weather"],
    "nothing in place of a call": [None],
}
WRONG: dict[str, Any] = {
    "an unknown name": [sent("forecast")],
    "a name with blanks": [sent("wea ther")],
    "a name around which are blanks": [sent(" weather")],
    "a very long name": [sent("x" * 300)],
    "arguments that are null": [sent(arguments=None)],
    "arguments that are a list": [sent(arguments=["Xiamen"])],
    "arguments of two calls with one index": [sent(), sent(None, id="b")],
}
RIGHT: dict[str, Any] = {
    "two with the same id": ([sent(), sent(index=1)], 2),
    "two with the same index": ([sent(), sent(arguments='{"city": "Rome"}', id="b")], 2),
    "an id that is null": ([sent(id=None)], 1),
    "an id that is a number": ([sent(id=7)], 1),
    "an index that is a text": ([sent(index="0")], 1),
    "a type that nobody knows": ([sent(type="tool")], 1),
    "a call without a list around it": (sent(), 1),
}


class Server:
    """Answers the first request with these calls, or with one without a name in another API, and later ones with a text."""

    def __init__(self, calls: Any) -> None:
        self.calls = calls
        self.bodies: list[Any] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if not path.endswith(("/chat/completions", "/responses", "/messages", "/api/chat")):
            return web.json_response({"error": "no such page"}, status=404)
        self.bodies.append(await request.json())
        first = len(self.bodies) == 1
        if path.endswith("/responses"):
            call = {"type": "function_call", "id": "f", "call_id": "a", "name": "", "arguments": CITY}
            text = {"type": "message", "content": [{"type": "output_text", "text": "It rains."}]}
            return web.json_response({"status": "completed", "output": [call if first else text]})
        if path.endswith("/messages"):
            block = {"type": "tool_use", "id": "a", "name": None, "input": {"city": "Xiamen"}}
            said = {"type": "text", "text": "It rains."}
            return web.json_response(
                {"type": "message", "content": [block if first else said], "stop_reason": "end_turn"}
            )
        if path.endswith("/api/chat"):
            message = (
                {"tool_calls": [{"function": {"arguments": {"city": "Xiamen"}}}]} if first else {"content": "It rains."}
            )
            return web.json_response({"message": message, "done": True})
        chunks = [delta(tool_calls=self.calls)] if first else [delta(content="It rains.")]
        return web.Response(body=frames(*chunks, delta("stop"), "[DONE]"), content_type="text/event-stream")


async def asked(door: str, calls: Any, *, api: str = "openai", **how: Any) -> tuple[ts.Reply, Server]:
    """What comes of a question, by the library's verbs or as the gateway passes it on."""
    server = Server(calls)
    async with listening(server.handle) as url:
        path = "/v1" if api in ("openai", "responses") else ""
        model = ts.model(f"{url}{path}#mine", api=api, look=False, **how)
        if door == "run":
            return await ts.arun(QUESTION, tools=[weather], model=model), server
        if door == "decide":
            return await ts.adecide(QUESTION, tools=[weather], model=model), server
        request = ts.Request([{"role": "user", "content": QUESTION}], (ts.tool(weather),))
        events = [event async for event in answer(request, model)]
        return next(event.value for event in events if isinstance(event, Done)), server


WAYS: list[dict[str, Any]] = [{}, {"dialect": "qwen3-coder"}]
"""The tools go to the server itself, or into the prompt."""


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_a_call_without_a_name_is_told_and_asked_again(how: dict[str, Any]) -> None:
    cases = [*product(("run", "decide", "gateway"), NAMELESS.items()), *product(("run",), WRONG.items())]
    for door, (what, calls) in cases:
        reply, server = asyncio.run(asked(door, calls, **how))
        assert (reply.text, reply.calls, len(server.bodies)) == ("It rains.", (), 2), (what, door)
        if door == "run":
            assert answered(reply.messages), what
            assert what in WRONG or any(note.rule == "call-without-name" for note in reply.notes), what
            assert what in WRONG or "has no name of a tool" in str(reply.messages), what


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_other_fields_that_are_wrong_lose_no_call(how: dict[str, Any]) -> None:
    for what, (calls, count) in RIGHT.items():
        reply, _ = asyncio.run(asked("run", calls, **how))
        assert [result.error for result in reply.steps[0].results] == [None] * count, what
        assert answered(reply.messages), what
        reply, server = asyncio.run(asked("gateway", calls, **how))
        assert (len(reply.calls), len(server.bodies)) == (count, 1), what


@pytest.mark.parametrize("api", ["responses", "anthropic", "ollama"])
def test_so_it_is_in_every_api(api: str) -> None:
    for door, how in product(("run", "gateway"), WAYS):
        reply, server = asyncio.run(asked(door, None, api=api, **how))
        assert (reply.text, reply.calls, len(server.bodies)) == ("It rains.", (), 2), (door, how)


def test_a_server_gets_no_name_back_that_no_tool_can_have() -> None:
    names = {"": UNNAMED, " ": UNNAMED, "wea ther": "wea_ther", "x" * 300: "x" * 128, "_fs.read:1": "_fs.read:1"}
    for name, told in names.items():
        reply, server = asyncio.run(asked("run", [sent(name)]))
        (call,) = (call for message in server.bodies[1]["messages"] for call in message.get("tool_calls", ()))
        assert call["function"]["name"] == told
        again = asyncio.run(
            ts.arun([*reply.messages, {"role": "user", "content": "And?"}], model=ts.Scripted(["Dry."]))
        )
        assert again.text == "Dry."


def test_a_call_without_a_name_that_an_earlier_version_stored_is_read() -> None:
    for name in ("", " \n"):
        call = {"id": "a", "type": "function", "function": {"name": name, "arguments": "{}"}}
        history: list[ts.Message] = [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": None, "tool_calls": [call, {**sent(), "id": "b"}]},
            {"role": "tool", "tool_call_id": "a", "content": "error: no name"},
            {"role": "tool", "tool_call_id": "b", "content": "rain"},
            {"role": "user", "content": "And now?"},
        ]
        (message,) = (one for one in conversation(history, None) if one.get("tool_calls"))
        assert [one["function"]["name"] for one in message["tool_calls"]] == [UNNAMED, "weather"]
        assert call["function"]["name"] == name
        for model in (ts.Scripted(["Dry."]), Speaker(ts.Scripted(["Dry."]), "hermes")):
            assert ts.run(history, tools=[weather], model=model).text == "Dry."
