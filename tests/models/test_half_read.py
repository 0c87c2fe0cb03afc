"""Servers that half-read the calls of their model, through the library: every call once, and nothing of one in the text."""

from __future__ import annotations

import asyncio
import json

import pytest

import toolspeak as ts
from half_read import CASES, ORDERS, Case, Order, half_reading
from toolspeak.events import ArgumentsDelta, CallStart, TextDelta

KNOWN, UNKNOWN = "Qwen2.5-7B-Instruct", "mine"
NAMED = [
    pytest.param(case, name, id=f"{kind}, {name}")
    for kind, case in CASES.items()
    for name in ((KNOWN, UNKNOWN) if case.unknown else (KNOWN,))
]


def weather(city: str) -> str:
    """The weather in a city, now."""
    return f"rain in {city}"


TOOLS = (ts.tool(weather),)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("case", "name"), NAMED)
def test_every_call_is_read_once(case: Case, name: str, order: Order) -> None:
    async def main() -> None:
        async with half_reading(case, order) as url:
            model = ts.model(f"{url}#{name}")
            events = [
                event async for event in model.stream(ts.Request([{"role": "user", "content": "Weather?"}], TOOLS))
            ]
            reply = ts.collect(events)
            assert sorted(call.arguments["city"] for call in reply.calls) == sorted(case.cities)
            assert (reply.text.strip(), reply.finish) == (case.text, "tool_calls" if case.cities else "stop")
            assert len({call.id for call in reply.calls}) == len(case.cities)
            assert sum(isinstance(event, CallStart) for event in events) == len(case.cities)
            assert "".join(event.text for event in events if isinstance(event, TextDelta)) == reply.text
            for event in events:
                assert not isinstance(event, ArgumentsDelta) or json.loads(event.json)["city"] in case.cities

    asyncio.run(main())


def test_a_note_says_that_a_call_was_told_twice() -> None:
    async def main() -> None:
        async with half_reading(CASES["a call is read and left"], "content first") as url:
            reply = await ts.adecide("Weather?", tools=[weather], model=f"{url}#{KNOWN}")
            (note,) = [note.detail for note in reply.notes if note.rule == "call-in-text"]
            assert note.startswith(
                "the server left a call in the text (1 sent as a call as well, counted once); read as"
            )

    asyncio.run(main())
