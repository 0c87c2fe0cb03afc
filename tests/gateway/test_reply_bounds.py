"""A reply without an end is ended, in the library as in the gateway: text, thought, arguments, calls, notes, likelihoods."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncGenerator, Callable
from typing import Any

import aiohttp
import pytest

import toolspeak as ts
from toolspeak.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    Finished,
    Logprobs,
    Noted,
    TextDelta,
    ThoughtDelta,
)
from toolspeak.models.base import Capability
from toolspeak.models.scripted import Scripted
from toolspeak.types import Note, Request
from toolspeak.wire.reading import reply_size_limits

SMALL = 10_000
TOOL = {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
DIALECT = '<tool_call>\n{"name": "add", "arguments": {"a": "%d"}}\n</tool_call>\n'


class Endless:
    """A model that writes one thing without end, and counts what was taken of it. If nobody ends it, it stops far
    above the limit, so that a test fails and does not hang."""

    name = "endless"

    def __init__(self, *forever: Event, first: tuple[Event, ...] = (), native: bool = True) -> None:
        self.first, self.forever = first, forever
        self.capabilities: frozenset[Capability] = frozenset({"tools"}) if native else frozenset()
        self.taken = 0
        self.closed = 0

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        try:
            for event in self.first:
                yield event
            while self.taken < 4 * SMALL:
                for event in self.forever:
                    self.taken += 1
                    yield event
                if self.taken % 100 == 0:
                    await asyncio.sleep(0)
        finally:
            self.closed += 1


KINDS: dict[str, tuple[Endless, str]] = {
    "text": (Endless(TextDelta("la ")), "characters of text"),
    "thought": (Endless(ThoughtDelta("hm ")), "characters of thought"),
    "arguments": (Endless(ArgumentsDelta("x"), first=(CallStart("add", "c"), ArgumentsDelta('{"a": "'))), "characters of arguments"),
    "names": (Endless(CallStart("f" * 500, "c"), ArgumentsDelta("{}"), CallEnd()), "characters of arguments"),
    "calls": (Endless(CallStart("add", "c"), ArgumentsDelta('{"a": "x"}'), CallEnd()), "128 calls"),
    "notes": (Endless(Noted(Note("fence", "x" * 300))), "characters of arguments"),
    "ids": (Endless(CallStart("f", "i" * 500), ArgumentsDelta("{}"), CallEnd()), "characters of arguments"),
    "long tokens": (Endless(Logprobs([{"token": "x" * 300}])), "bytes of likelihoods"),
    "alternatives": (Endless(Logprobs([{"token": "x", "top_logprobs": [{"token": "y"}] * 10}])), "bytes of likelihoods"),
    "likelihoods": (Endless(Logprobs([{"token": "x"}] * 9000)), "bytes of likelihoods"),
}  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_size_limits, "CHARACTERS", SMALL)
    monkeypatch.setattr(reply_size_limits, "LIKELIHOODS", 300 * SMALL)


@pytest.mark.parametrize("kind", [TextDelta, ThoughtDelta, ArgumentsDelta])
def test_a_reply_may_have_twelve_million_characters(kind: type[TextDelta | ThoughtDelta | ArgumentsDelta]) -> None:
    bounds = reply_size_limits.ReplyBounds()
    assert bounds.takes(kind("x" * 12_000_000))
    assert not bounds.takes(kind("x"))


@pytest.mark.parametrize(("event", "count"), [(CallStart("f", "c"), 128), (Noted(Note("fence", "x")), 10_000)])
def test_a_reply_may_have_so_many_calls_and_notes(event: Event, count: int) -> None:
    bounds = reply_size_limits.ReplyBounds()
    assert all(bounds.takes(event) for _ in range(count))
    assert not bounds.takes(event)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", KINDS)
def test_a_library_reply_ends_with_length_and_says_why(kind: str) -> None:
    model, why = KINDS[kind]
    model.taken = model.closed = 0

    async def go() -> ts.Reply:
        events = [event async for event in ts.astream("Hi", tools=[TOOL], model=model, limits={"steps": 1})]
        finished = [event for event in events if isinstance(event, Finished)]
        assert finished[0].finish == "length"
        notes = [event.note for event in events if isinstance(event, Noted) and event.note.rule == "reply-bound"]
        assert why in notes[0].detail
        ends = [event.whole for event in events if isinstance(event, CallEnd)]
        assert (False in ends) == (kind in ("arguments", "ids"))  # the note of a repeated id comes in its call
        return ts.Reply(text="")

    asyncio.run(go())
    assert model.taken < 2 * SMALL
    assert model.closed >= 1


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("native", [True, False])
def test_the_gateway_ends_it_too(serve_models: Callable[..., Any], stream: bool, native: bool) -> None:
    model = Endless(TextDelta("la "), native=native)

    async def go() -> str:
        async with serve_models(m=model) as running, aiohttp.ClientSession() as session:
            body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": stream}
            texts: list[str] = []
            for tools in ([], [{"type": "function", "function": TOOL}]):
                async with session.post(running.url + "/v1/chat/completions", json={**body, "tools": tools}) as answer:
                    assert answer.status == 200
                    texts.append(await answer.text())
            return "".join(texts)

    told = asyncio.run(go())
    assert told.count('"finish_reason":"length"') == 2
    assert model.taken < 3 * SMALL
    assert model.closed == 2


@pytest.mark.parametrize(
    "token",
    [
        {"token": "x", "logprob": -1.0, "top_logprobs": [{"token": "y", "logprob": -2.0}] * 20},
        {"token": "x", "top_logprobs": [{"token": " y", "logprob": -0.12, "bytes": [32, 121]}] * 5},
        {"token": "x", "y": [[]] * 50},
        {"token": "x" * 500},
    ],
)
def test_the_bound_of_likelihoods_is_that_of_their_memory(
    token: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_size_limits, "LIKELIHOODS", 2_000_000)
    bounds, text = reply_size_limits.ReplyBounds(), json.dumps([token])
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        taken = [json.loads(text)]
        while bounds.takes(Logprobs(taken[-1])):
            taken.append(json.loads(text))
        assert tracemalloc.get_traced_memory()[0] - before < 1.5 * reply_size_limits.LIKELIHOODS
    finally:
        tracemalloc.stop()


def test_of_three_hundred_calls_no_more_run_than_a_reply_may_hold() -> None:
    ran: list[str] = []

    def add(a: str) -> str:
        """Adds."""
        ran.append(a)
        return a

    text = "".join(DIALECT % i for i in range(300))
    reply = ts.run("go", tools=[add], model=ts.model(Scripted([text, "done"]), dialect="hermes"), limits={"steps": 2})
    assert len(ran) <= reply_size_limits.CALLS
    assert "reply-bound" in json.dumps([note.rule for step in reply.steps for note in step.reply.notes])
