"""What it costs to read the text of a server in all dialects: counted in calls of functions, and in threads, never in seconds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from typing import Any

import pytest

import toolspeak as ts
from cost import calls
from properties import rotated
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted, TextDelta
from toolspeak.models import unread_calls
from toolspeak.models.calls_in_text import Listener
from toolspeak.models.http import Http
from toolspeak.models.native import Native
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.plan.doubled_calls import DoubledCalls
from toolspeak.schema import nonblocking_json
from toolspeak.types import Request

LENGTH = 20_000
MOST = 1_000_000
"""Calls of functions for a reply: 2,000 openers of some 150 calls each, and as much for what looks like a call at its end. Fences with
a language take the most, about 14 calls each in 32 dialects: one may be inside of another."""
UNITS = (
    "[TOOL_CALLS]add[ARGS]{", "<function=add>", "\n```\n", "functools[", '[add(s="', '{"name":"add","parameters":{"s":"a"}}', "```json\n",
    '{"name":"f"}',
)  # fmt: skip


def add(s: str) -> str:
    """Adds."""
    return s


REQUEST = Request([{"role": "user", "content": "Hi"}], tools=(ts.tool(add),))


def cost(text: str, piece: int) -> int:
    """How many functions are called, generators woken among them, to read a reply."""

    def read() -> None:
        listener = Listener(REQUEST, None)
        for at in range(0, len(text), piece):
            listener.hear(TextDelta(text[at : at + piece]))
        listener.hear(Finished("stop"))

    read()  # what is made once and kept is no cost of the text
    return calls(read)


@pytest.mark.parametrize("unit", rotated(UNITS, 2))
def test_no_text_is_tried_in_all_dialects_without_end(unit: str) -> None:
    for before in ("", "Look:\n"):
        assert cost((before + unit * LENGTH)[:LENGTH], 4_096) < MOST


class Says(Scripted):
    """A server whose reply arrives in pieces of a size."""

    size = 1

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        for _ in range(2):
            yield TextDelta("words " * self.size)
        yield Finished("stop")


@pytest.mark.parametrize(("size", "apart"), [(1, False), (1_000, True)])
def test_long_pieces_are_read_in_a_thread(monkeypatch: pytest.MonkeyPatch, size: int, apart: bool) -> None:
    here, seen, real = threading.get_ident(), list[bool](), Listener.hear
    Listener(REQUEST, None).hear(TextDelta("words"))  # the first text of all is read in a thread, however short

    def hear(self: Listener, event: Event) -> list[Event]:
        seen.append(threading.get_ident() != here)
        return real(self, event)

    monkeypatch.setattr(Listener, "hear", hear)
    model = Says([""])
    model.size = size
    server = Native(Http("http://127.0.0.1:9/v1", "mine", key=""), model=model)

    async def go() -> str:
        return "".join([event.text async for event in server.stream(REQUEST) if isinstance(event, TextDelta)])

    assert asyncio.run(go()) == "words " * 2 * size
    assert seen == [apart] * 3


@pytest.mark.parametrize(("count", "apart"), [(1, False), (128, True)])
def test_a_hint_at_calls_in_another_dialect_is_looked_for_in_a_thread(
    monkeypatch: pytest.MonkeyPatch, count: int, apart: bool
) -> None:
    """A reply of 128 calls in another dialect than the named one kept the event loop for 0.2 s at its end."""
    here, seen, real = threading.get_ident(), list[bool](), unread_calls.like_a_call
    Listener(REQUEST, None).hear(TextDelta("words"))  # the first text of all is read in a thread, however short

    def noted(*arguments: Any) -> Any:
        seen.append(threading.get_ident() != here)
        return real(*arguments)

    monkeypatch.setattr(unread_calls, "like_a_call", noted)
    call = "<function=add><parameter=s>a</parameter></function>"
    model = Speaker(Scripted([call * count]), "hermes")

    async def go() -> list[str]:
        return [event.note.rule async for event in model.stream(REQUEST) if isinstance(event, Noted)]

    assert asyncio.run(go()) == ["like-a-call"]
    assert seen == [apart]


def test_arguments_are_parsed_only_to_be_compared_and_their_size_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's own calls need no parsing here: 6 MB of arguments of one kept the event loop for two seconds."""
    parsed: list[str] = []
    real = nonblocking_json.loads

    def noted(text: str, **options: Any) -> Any:
        parsed.append(text)
        return real(text, **options)

    monkeypatch.setattr(nonblocking_json, "loads", noted)
    doubled, long = DoubledCalls(), '{"s": "' + "a" * 1_000 + '"}'
    for number, name in enumerate(("add", "other", "add")):
        events = [CallStart(name, f"{number}"), ArgumentsDelta(long), CallEnd()]
        assert doubled.feed(events, in_text=False) == events
    assert (parsed, doubled.cost) == ([], 0)
    assert doubled.feed([CallStart("add", "t"), ArgumentsDelta(long)], in_text=True) == []
    assert doubled.cost == 3 * len(long)
    assert doubled.feed([CallEnd()], in_text=True) == []
    assert (parsed, doubled.cost, doubled.count) == ([long] * 2, 0, 1)
    alone = [CallStart("third", "t"), ArgumentsDelta(long), CallEnd()]
    assert doubled.feed(alone, in_text=True) == alone
    assert len(parsed) == 2
