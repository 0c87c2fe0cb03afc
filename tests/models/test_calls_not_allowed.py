"""A call in the text of a reply that may have none: every verb and the gateway have the same answer, and nothing runs."""

from __future__ import annotations

import asyncio

import pytest

import toolspeak as ts
from toolspeak.drive import Done
from toolspeak.gateway.generation import answer
from toolspeak.models.http import Http
from toolspeak.models.native import Native
from toolspeak.models.scripted import Scripted

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
KNOWN, UNKNOWN = "Qwen3-8B", "mine"


def answers(name: str, text: str, choice: str, *, offered: bool) -> list[str]:
    """The answer of `decide`, of `run` and of the gateway; the tool does not run."""
    ran: list[str] = []

    def weather(city: str) -> str:
        """The weather in a city."""
        ran.append(city)
        return "sunny"

    model = Native(
        Http("http://127.0.0.1:9/v1", name, key=""), model=Scripted([text], repeat=True, capabilities=["tools"])
    )
    tools = (ts.tool(weather),) if offered else ()
    request = ts.Request([{"role": "user", "content": "Weather?"}], tools, choice=choice)

    async def passed_on() -> str:
        (reply,) = [event.value async for event in answer(request, model) if isinstance(event, Done)]
        return reply.text

    decided = ts.decide("Weather?", tools=tools, model=model, choice=choice)
    run = ts.run("Weather?", tools=tools, model=model, choice=choice)
    assert not ran
    return [decided.text, run.text, asyncio.run(passed_on())]


@pytest.mark.parametrize(
    ("name", "offered", "text", "expected"),
    [
        (KNOWN, True, CALL, ""),
        (KNOWN, True, f"I look.\n{CALL}", "I look."),
        (KNOWN, False, CALL, CALL),
        (UNKNOWN, True, CALL, CALL),
        (UNKNOWN, True, f"I look.\n{CALL}", f"I look.\n{CALL}"),
        (UNKNOWN, False, CALL, CALL),
    ],
)
def test_library_and_gateway_have_the_same_answer(name: str, offered: bool, text: str, expected: str) -> None:
    assert answers(name, text, "none", offered=offered) == [expected] * 3
    if not offered:
        assert answers(name, text, "auto", offered=False) == [expected] * 3
