"""Servers that half-read the calls of their model: what they send, and what it means."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from aiohttp import web

from listening import listening

Order = Literal["whole", "content first", "calls first"]
ORDERS: tuple[Order, ...] = ("whole", "content first", "calls first")
"""How a reply comes: in one piece, or streamed in one of two orders."""


def call(city: str, arguments: Any = None) -> dict[str, Any]:
    """A call as the server's own field has it."""
    function = {"name": "weather", "arguments": arguments or json.dumps({"city": city})}
    return {"index": 0, "id": f"call_{city}", "type": "function", "function": function}


def left(city: str) -> str:
    """A call of hermes as it stands in a text."""
    return f"<tool_call>\n{json.dumps({'name': 'weather', 'arguments': {'city': city}})}\n</tool_call>"


@dataclass(frozen=True)
class Case:
    """The message of a server; the text and the cities of the calls that it means, and whether it is one for a model by
    whose name nothing is known."""

    message: dict[str, Any]
    text: str
    cities: tuple[str, ...]
    finish: str = "tool_calls"
    unknown: bool = True


OBJECT = '{"name": "weather", "arguments": {"city": "Rome"}}'
BARE = {"function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
CASES = {
    "the second of two calls is left": Case({"content": f"\n{left('Oslo')}", "tool_calls": [call("Rome")]}, "", ("Oslo", "Rome")),
    "the same, behind words": Case(
        {"content": f"I look.\n{left('Oslo')}", "tool_calls": [call("Rome")]}, "I look.", ("Oslo", "Rome"), unknown=False
    ),
    "a call is read and left": Case({"content": left("Rome"), "tool_calls": [call("Rome")]}, "", ("Rome",)),
    "a call is read and left as JSON": Case({"content": OBJECT, "tool_calls": [call("Rome")]}, "", ("Rome",)),
    "two calls are left, one of them read": Case(
        {"content": left("Rome") + left("Oslo"), "tool_calls": [call("Rome")]}, "", ("Oslo", "Rome")
    ),
    "two equal calls of the server's own": Case({"content": None, "tool_calls": [BARE, BARE]}, "", ("Rome", "Rome")),
    "an empty list and null": Case({"content": None, "tool_calls": []}, "", (), "stop"),
    "null twice": Case({"content": None, "tool_calls": None}, "", (), "stop"),
    "an empty list, and a call in the text": Case({"content": left("Rome"), "tool_calls": []}, "", ("Rome",), "stop"),
    "an empty list, and words": Case({"content": "It rains.", "tool_calls": []}, "It rains.", (), "stop"),
    "arguments as an object": Case({"content": None, "tool_calls": [call("Rome", {"city": "Rome"})]}, "", ("Rome",)),
    "neither index nor id nor type": Case({"content": "", "tool_calls": [BARE]}, "", ("Rome",), "stop"),
    "the older field": Case({"content": None, "function_call": BARE["function"]}, "", ("Rome",), "function_call"),
    "both fields": Case(
        {"content": None, "function_call": BARE["function"], "tool_calls": [call("Rome")]}, "", ("Rome",)
    ),
}  # fmt: skip


ROME = '{"city": "Rome"}'
READINGS: dict[str, tuple[str, str, dict[str, str]]] = {
    "the server adds a default": (ROME, '{"city": "Rome", "unit": "celsius"}', {"city": "Rome"}),
    "the server leaves a default out": ('{"city": "Rome", "unit": "celsius"}', ROME, {"city": "Rome"}),
    "the server has an argument more": (ROME, '{"city": "Rome", "day": "today"}', {"city": "Rome", "day": "today"}),
    "the server loses an argument": ('{"city": "Rome", "day": "today"}', ROME, {"city": "Rome", "day": "today"}),
    "the server loses all arguments": (ROME, "null", {"city": "Rome"}),
    "the server removes white space": ('{"city": " Rome\\n"}', ROME, {"city": " Rome\n"}),
    "the server adds white space": (ROME, '{"city": " Rome\\n"}', {"city": "Rome"}),
    "the text is cut in a value": ('{"city": "Ro', ROME, {"city": "Rome"}),
    "the text is cut between arguments": ('{"city": "Rome", "da', '{"city": "Rome", "day": "today"}', {"city": "Rome", "day": "today"}),
    "the server cuts a value": (ROME, '{"city": "Ro', {"city": "Rome"}),
    "the server cuts the end": (ROME, '{"city": "Rome"', {"city": "Rome"}),
}  # fmt: skip
"""The arguments in the text, those of the server's own call, and those that count, without defaults."""


def left_in_text(arguments: str) -> str:
    """A call of hermes with these arguments, as it stands in a text; one that was cut has no end."""
    end = "}\n</tool_call>" if arguments.endswith("}") else ""
    return f'<tool_call>\n{{"name": "forecast", "arguments": {arguments}{end}'


def served(arguments: str) -> dict[str, Any]:
    """The same call as the server's own field has it."""
    return {"index": 0, "id": "call_own", "type": "function", "function": {"name": "forecast", "arguments": arguments}}


def _deltas(message: dict[str, Any], order: Order) -> list[dict[str, Any]]:
    content: str | None = message.get("content")
    pieces = [content[i : i + 4] for i in range(0, len(content), 4)] if content else [content]
    calls = {name: value for name, value in message.items() if name != "content"}
    words = [{"content": piece} for piece in pieces]
    return [*words, calls] if order == "content first" else [calls, *words]


def _reply(case: Case, order: Order) -> web.Response:
    if order == "whole":
        message = {"role": "assistant", **case.message}
        return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": case.finish}]})
    rows = [{"index": 0, "delta": delta, "finish_reason": None} for delta in _deltas(case.message, order)]
    rows.append({"index": 0, "delta": {}, "finish_reason": case.finish})
    frames = [json.dumps({"choices": [row]}) for row in rows] + ["[DONE]"]
    return web.Response(text="".join(f"data: {frame}\n\n" for frame in frames), content_type="text/event-stream")


@asynccontextmanager
async def half_reading(case: Case, order: Order) -> AsyncIterator[str]:
    """The address of such a server."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        chats = request.path.endswith("/chat/completions")
        return _reply(case, order) if chats else web.json_response({}, status=404)

    async with listening(answer) as root:
        yield f"{root}/v1"
