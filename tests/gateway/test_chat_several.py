"""Replies side by side, toolsets made once: the parts behind `n` and behind the tools of a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from toolspeak.errors import InvalidTool, Refused
from toolspeak.gateway.merge import WAITING, side_by_side
from toolspeak.gateway.tool_cache import Toolsets


class Counting:
    """Streams that count what they made, and whether they were closed."""

    def __init__(self) -> None:
        self.made = 0
        self.closed = 0

    async def stream(self, items: int, *, fails: bool = False) -> AsyncGenerator[int, None]:
        try:
            for item in range(items):
                self.made += 1
                yield item
                await asyncio.sleep(0)
            if fails:
                raise ValueError("it burns")
        finally:
            self.closed += 1


async def left() -> int:
    """How many other tasks there are."""
    await asyncio.sleep(0)
    return len(asyncio.all_tasks()) - 1


@pytest.mark.parametrize("count", [1, 2, 5])
def test_all_items_come_in_the_order_of_their_stream(count: int) -> None:
    async def go() -> None:
        streams = Counting()
        found: dict[int, list[int]] = {}
        async for number, item in side_by_side([streams.stream(40) for _ in range(count)]):
            found.setdefault(number, []).append(item)
        assert found == {number: list(range(40)) for number in range(count)}
        assert (streams.closed, await left()) == (count, 0)

    asyncio.run(go())


@pytest.mark.parametrize("count", [0, 2])
def test_an_error_ends_all(count: int) -> None:
    async def go() -> None:
        streams = Counting()
        with pytest.raises(ValueError, match="it burns"):
            async for _ in side_by_side(
                [streams.stream(3, fails=True), *[streams.stream(10**9) for _ in range(count)]]
            ):
                pass
        assert (streams.closed, await left()) == (count + 1, 0)

    asyncio.run(go())


def test_leaving_early_closes_all_and_nobody_runs_ahead() -> None:
    async def go() -> None:
        streams = Counting()
        events = side_by_side([streams.stream(10**9) for _ in range(3)])
        async for _ in events:
            await asyncio.sleep(0.02)  # a slow reader
            break
        assert streams.made <= WAITING + 3 * 2
        await events.aclose()
        assert (streams.closed, await left()) == (3, 0)

    asyncio.run(go())


def test_a_cancelled_reader_closes_all() -> None:
    async def go() -> None:
        streams = Counting()

        async def read() -> None:
            async with aclosing(side_by_side([streams.stream(10**9) for _ in range(3)])) as events:
                async for _ in events:
                    await asyncio.sleep(0.001)

        task = asyncio.create_task(read())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (streams.closed, await left()) == (3, 0)

    asyncio.run(go())


def described(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "parameters": {"type": "object", "properties": {}}} for name in names]


def test_the_same_tools_are_the_same() -> None:
    toolsets = Toolsets()
    assert toolsets(described("a", "b")) is toolsets(described("a", "b"))
    assert toolsets(described("a")) is not toolsets(described("b"))


def test_what_was_used_last_is_kept_within_a_size() -> None:
    small = Toolsets(size=8_000)
    kept = small(described("a"))
    small(described("b"))
    assert small(described("a")) is kept
    for i in range(20):
        small(described(f"t{i}"))
    assert small(described("a")) is not kept
    large = described(*[f"t{i}" for i in range(50)])
    assert small(large) is not small(large)
    assert small._toolsets.size <= 8_000


def test_what_is_no_tool_is_not_kept() -> None:
    toolsets = Toolsets()
    for _ in range(2):
        with pytest.raises(InvalidTool):
            toolsets([{"name": "no name"}])
        with pytest.raises(Refused, match=r"tools\.1: two tools are named 'a'"):
            toolsets(described("a", "a"))
