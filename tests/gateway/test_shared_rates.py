"""Rates of keys that several processes share: never more than the limit together, and few transactions."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from clock import Clock
from toolspeak.errors import Refused
from toolspeak.gateway.config.settings import Key, Rates
from toolspeak.gateway.limits import shared_rates
from toolspeak.gateway.limits.rates import Counter
from toolspeak.gateway.limits.shared_rates import SharedCounter
from toolspeak.gateway.storage.sqlite import Database


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "shared.sqlite")


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many transactions were made: its only item."""
    count, real = [0], Database.transaction

    def counted(self: Database) -> Any:
        count[0] += 1
        return real(self)

    monkeypatch.setattr(Database, "transaction", counted)
    return count


def key(**rates: int) -> Key:
    return Key("alice", b"", None, Rates(**rates))


async def exhausted(counter: Any, one: Key) -> int:
    """How many requests are let in until one is refused."""
    through = 0
    while True:
        try:
            await takes(counter, one)
        except Refused:
            return through
        through += 1


async def takes(counter: Any, one: Key, tokens: int = 0) -> dict[str, str]:
    headers: list[tuple[bytes, bytes]] = []
    async with counter.counted(one, headers) as spent:
        spent.tokens = tokens
    return {name.decode(): value.decode() for name, value in headers}


def run(path: str, work: Callable[[SharedCounter, Clock], Any]) -> None:
    async def go() -> None:
        clock = Clock()
        counter = SharedCounter(path, clock=clock)
        await work(counter, clock)
        counter.close()

    asyncio.run(go())


def test_a_thousand_requests_cost_few_transactions(path: str, transactions: list[int]) -> None:
    async def work(counter: SharedCounter, _: Clock) -> None:
        alice = key(requests=60_000, tokens=6_000_000, running=32)
        for number in range(1000):
            told = await takes(counter, alice, tokens=100)
            assert told["x-ratelimit-remaining-requests"] == str(59_999 - number)
            assert told["x-ratelimit-remaining-tokens"] == str(6_000_000 - 100 * number)

    run(path, work)
    assert transactions[0] < 20


def test_without_a_file_there_is_none(transactions: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Database, "submit", None)  # nor a thread

    async def go() -> None:
        counter = Counter()
        for _ in range(100):
            await takes(counter, key(requests=1000, running=4))
        counter.close()

    asyncio.run(go())
    assert transactions == [0]


def test_who_is_refused_is_not_looked_up_each_time(path: str, transactions: list[int]) -> None:
    async def work(counter: SharedCounter, clock: Clock) -> None:
        alice = key(requests=1)
        await takes(counter, alice)
        for _ in range(100):
            with pytest.raises(Refused):
                await takes(counter, alice)
        clock.now += 60
        await takes(counter, alice)

    run(path, work)
    assert transactions[0] < 6


def test_many_at_once_share_a_draw(path: str, transactions: list[int]) -> None:
    async def work(counter: SharedCounter, _: Clock) -> None:
        await asyncio.gather(*(takes(counter, key(requests=64_000)) for _ in range(1000)))

    run(path, work)
    assert transactions[0] <= 3


@pytest.mark.parametrize("limit", [1, 7, 100, 1000])
def test_two_counters_let_in_what_one_would(path: str, limit: int) -> None:
    """What one process has drawn and not used is refused by the other, and let in by the one."""

    async def go() -> None:
        clock = Clock()
        both = [SharedCounter(path, clock=clock) for _ in range(2)]
        through = 0
        for turn in range(4 * limit + 8):
            try:
                await takes(both[turn % 2], key(requests=limit))
                through += 1
            except Refused:
                continue
        assert through == limit
        for counter in both:
            counter.close()
        clock.now += 3600
        fresh = SharedCounter(path, clock=clock)  # a bucket is not deeper than a minute
        told = await takes(fresh, key(requests=limit))
        assert told["x-ratelimit-remaining-requests"] == str(limit - 1)
        fresh.close()

    asyncio.run(go())


@pytest.mark.parametrize("seconds", [1.9, 100])
def test_what_is_drawn_counts_while_a_bucket_fills_up(path: str, seconds: float) -> None:
    """However long a process waits with what it has drawn, no minute's worth and a share on top can be used at once."""

    async def go() -> None:
        clock = Clock()
        both = [SharedCounter(path, clock=clock) for _ in range(2)]
        await takes(both[0], key(requests=3200))  # draws a hundred and uses one
        clock.now += seconds
        through = [await exhausted(counter, key(requests=3200)) for counter in both]
        assert 3000 < sum(through) <= 3200
        for counter in both:
            counter.close()

    asyncio.run(go())


def test_what_is_not_used_comes_back(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_rates, "HOLD", 0.01)

    async def go() -> None:
        clock = Clock()
        idle, other = (SharedCounter(path, clock=clock) for _ in range(2))
        await takes(idle, key(requests=3200))
        while idle._leases["alice"].credits:  # until the timer gives back
            await asyncio.sleep(0.01)
        await asyncio.wrap_future(idle._database.submit(lambda: None))  # its thread has written it
        assert (await takes(other, key(requests=3200)))["x-ratelimit-remaining-requests"] == "3198"
        idle.close()
        other.close()

    asyncio.run(go())


def test_a_debt_of_tokens_holds_for_all(path: str) -> None:
    async def go() -> None:
        clock = Clock()
        one, other = (SharedCounter(path, clock=clock) for _ in range(2))
        alice = key(tokens=600)
        await takes(one, alice, tokens=1200)
        one.close()  # what is written is not waited for
        with pytest.raises(Refused) as caught:
            await takes(other, alice)
        assert caught.value.retry_after == 61
        clock.now += 62
        await takes(other, alice)
        other.close()

    asyncio.run(go())


def test_a_client_that_leaves_while_it_draws_takes_nothing_along(path: str) -> None:
    async def work(counter: SharedCounter, _: Clock) -> None:
        alice = key(requests=2, running=1)
        gate = threading.Event()
        counter._database.submit(gate.wait)
        for _ in range(20):
            leaving = asyncio.create_task(takes(counter, alice))
            await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
        gate.set()
        for left in "10":
            assert (await takes(counter, alice))["x-ratelimit-remaining-requests"] == left

    run(path, work)


def test_requests_at_once_are_shared_too(path: str) -> None:
    async def go() -> None:
        both = [SharedCounter(path) for _ in range(2)]
        alice = key(running=40)
        async with AsyncExitStack() as open_:
            through = 0
            for turn in range(120):
                try:
                    await open_.enter_async_context(both[turn % 2].counted(alice, []))
                    through += 1
                except Refused:
                    continue
            assert through == 40
        for counter in both:
            async with counter.counted(alice, []):
                pass
            counter.close()

    asyncio.run(go())


# ------------------------------------------------------------------ real processes

TAKER = """
import asyncio, sys
from toolspeak.errors import Refused
from toolspeak.gateway.config.settings import Key, Rates
from toolspeak.gateway.limits.shared_rates import SharedCounter
counter = SharedCounter(sys.argv[1], clock=lambda: 1_000_000.0)
async def go():
    key = Key("alice", b"", None, Rates(requests=500, tokens=1_000_000, running=8))
    through = 0
    async def one():
        nonlocal through
        try:
            async with counter.counted(key, []) as spent:
                await asyncio.sleep(0)
                spent.tokens = 10
                through += 1
        except Refused as error:
            if "at once" in str(error):
                await asyncio.sleep(0.001)
                return False
            return True
        return False
    async def some():
        while not await one():
            pass
    await asyncio.gather(*(some() for _ in range(3)))
    print(through)
asyncio.run(go())
counter.close()
"""


def test_two_processes_together_never_exceed_a_limit(path: str) -> None:
    takers = [subprocess.Popen([sys.executable, "-c", TAKER, path], stdout=subprocess.PIPE) for _ in range(2)]
    through = [int(taker.communicate()[0]) for taker in takers]
    assert sum(through) == 500
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT * FROM key_lease").fetchall() == []
        levels = dict(database.execute("SELECT what, level FROM key_use").fetchall())
    database.close()
    assert levels == {"requests": 0, "tokens": 1_000_000 - 5000}


HOLDER = """
import asyncio, os, sys
from toolspeak.gateway.config.settings import Key, Rates
from toolspeak.gateway.limits.shared_rates import SharedCounter
async def go():
    async with SharedCounter(sys.argv[1]).counted(Key("alice", b"", None, Rates(requests=3, running=1)), []):
        print("in", flush=True); sys.stdin.read(1); os._exit(9)
asyncio.run(go())
"""


def test_the_dead_give_back(path: str) -> None:
    alice = key(requests=3, running=1)
    other = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdin
    assert other.stdout
    assert other.stdout.readline() == b"in\n"

    async def go() -> None:
        counter = SharedCounter(path)
        with pytest.raises(Refused, match="at once"):
            await takes(counter, alice)
        other.stdin.write(b"x")
        other.stdin.flush()
        other.wait(60)
        assert (await takes(counter, alice))["x-ratelimit-remaining-requests"] == "1"
        counter.close()

    asyncio.run(go())
    other.stdin.close()
    other.stdout.close()


def test_places_of_other_machines_run_out(path: str) -> None:
    async def work(counter: SharedCounter, clock: Clock) -> None:
        alice = key(running=1)
        await takes(counter, alice)
        with sqlite3.connect(path) as database:
            row = ("alice", "running", "p", "elsewhere", 1, 1.0, clock.now + 100)
            database.execute("INSERT INTO key_lease VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        database.close()
        with pytest.raises(Refused):
            await takes(counter, alice)
        clock.now += 101
        await takes(counter, alice)

    run(path, work)


def test_a_file_that_cannot_be_used_refuses_rather_than_lets_in(tmp_path: Path) -> None:
    async def go() -> None:
        counter = SharedCounter(str(tmp_path))  # a folder
        with pytest.raises(Refused) as caught:
            await takes(counter, key(requests=1))
        assert caught.value.status == 503
        assert str(tmp_path) not in str(caught.value)
        await takes(counter, key())  # a key without rates does not need it
        counter.close()

    asyncio.run(go())
    assert os.listdir(tmp_path) == []
