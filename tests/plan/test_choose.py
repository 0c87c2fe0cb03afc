"""Which tool a request wants: the one that makes it likeliest; words where that is no tool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from toolspeak import drive
from toolspeak.events import Event, Finished
from toolspeak.models.base import Capability
from toolspeak.plan.choose import choose
from toolspeak.types import Request, Tool

WEATHER = Tool("weather", "Weather in a city.")
TIMER = Tool("timer", "Start a timer.")


class Channel:
    """Finds a request as likely as the tool shown last before it tells."""

    name = "channel"
    capabilities: frozenset[Capability] = frozenset({"score"})

    def __init__(self, **likely: float):
        self.likely = likely

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        yield Finished()

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        shown = prompt.rpartition("def ")[2].partition("(")[0]
        return [self.likely[shown] for _ in continuations]


def chosen(tools: list[Tool[..., Any]], model: Channel, *, may_reply: bool) -> Tool[..., Any] | None:
    return asyncio.run(drive.arun(choose(tools, "?", may_reply=may_reply), model))


@pytest.mark.parametrize(
    ("likely", "best"),
    [
        ({"weather": -5.0, "timer": -9.0, "reply": -12.0}, WEATHER),
        ({"weather": -9.0, "timer": -5.0, "reply": -12.0}, TIMER),
        ({"weather": -9.0, "timer": -9.5, "reply": -5.0}, None),
    ],
)
def test_the_likeliest_channel_wins(likely: dict[str, float], best: Tool[..., Any] | None) -> None:
    assert chosen([WEATHER, TIMER], Channel(**likely), may_reply=True) is best


def test_words_win_a_close_call() -> None:
    model = Channel(weather=-5.0, reply=-5.5)
    assert chosen([WEATHER], model, may_reply=True) is None


def test_a_tool_is_chosen_where_one_must_be() -> None:
    model = Channel(weather=-9.0, timer=-8.0, reply=0.0)
    assert chosen([WEATHER, TIMER], model, may_reply=False) is TIMER


def test_the_only_tool_that_must_be_called_is_not_scored() -> None:
    assert chosen([WEATHER], Channel(), may_reply=False) is WEATHER
