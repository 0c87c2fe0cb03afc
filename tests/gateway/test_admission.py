"""How many at once, who waits, who is sent away; and what becomes of them when the process ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from clock import held_time
from toolspeak.errors import Refused
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.gateway.config.settings import GatewayLimits
from toolspeak.gateway.limits.admission import Admission
from toolspeak.gateway.limits.batch_slots import BatchSlots
from toolspeak.gateway.serve.server import drain
from toolspeak.models.base import Capability
from toolspeak.types import Request

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
MESSAGE = {**CHAT, "max_tokens": 10}


class Held:
    """A model that says a word, and no more until it is let go."""

    name = "held"
    capabilities: frozenset[Capability] = frozenset({"tools"})

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.free = asyncio.Event()

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.asked.append(str(request.messages[-1]["content"]))
        yield TextDelta("Well, ")
        await self.free.wait()
        yield TextDelta("hello.")
        yield Finished()


class Answer:
    def __init__(self, status: int, headers: Any, body: str) -> None:
        self.status, self.headers, self.body = status, headers, body


async def post(client: aiohttp.ClientSession, url: str, body: dict[str, Any] = CHAT) -> Answer:
    path = "/v1/messages" if "max_tokens" in body else "/v1/chat/completions"
    async with client.post(url + path, json=body) as reply:
        return Answer(reply.status, reply.headers, await reply.text())


async def until(true: Callable[[], bool], seconds: float = 600) -> None:
    due = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < due
        await asyncio.sleep(0.005)


def session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))


def test_at_ten_times_the_load_some_are_answered_and_all_others_are_told_at_once(
    serve_models: Callable[..., Any],
) -> None:
    async def go() -> None:
        model = Held()
        limits = GatewayLimits(running=4, waiting=4)
        async with serve_models(settings={"limits": limits}, m=model) as running, session() as client:
            asked = [asyncio.create_task(post(client, running.url)) for _ in range(80)]
            # Nobody has been answered yet, and everybody for whom there is no place knows it.
            await until(lambda: sum(task.done() for task in asked) == 72)
            refused = [task.result() for task in asked if task.done()]
            assert {answer.status for answer in refused} == {429}
            assert all(1 <= int(answer.headers["retry-after"]) <= 30 for answer in refused)
            assert all('"overloaded"' in answer.body for answer in refused)
            assert len(model.asked) == 4
            model.free.set()
            answers = await asyncio.gather(*asked)
            assert sorted(answer.status for answer in answers) == [200] * 8 + [429] * 72
            assert len(model.asked) == 8
            assert running.gateway.admission.running == 0

    asyncio.run(go())


def test_who_waits_is_answered_in_the_order_of_coming(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        model = Held()
        async with (
            serve_models(settings={"limits": GatewayLimits(running=1, waiting=10)}, m=model) as running,
            session() as client,
        ):
            tasks = []
            for i in range(6):
                body = {"model": "m", "messages": [{"role": "user", "content": str(i)}]}
                tasks.append(asyncio.create_task(post(client, running.url, body)))
                await until(lambda i=i: running.gateway.admission.waiting == i)
                if not i:
                    await until(lambda: bool(model.asked))
            model.free.set()
            await asyncio.gather(*tasks)
            assert model.asked == [str(i) for i in range(6)]

    asyncio.run(go())


@pytest.mark.parametrize("stream", [False, True])
def test_patience_ends_in_the_form_of_the_api(serve_models: Callable[..., Any], stream: bool) -> None:
    async def go() -> None:
        model = Held()
        limits = GatewayLimits(running=1, waiting=1, patience=0.1, first=0.02)
        async with serve_models(settings={"limits": limits}, m=model) as running, session() as client:
            first = asyncio.create_task(post(client, running.url))
            await until(lambda: bool(model.asked))
            late = await post(client, running.url, {**MESSAGE, "stream": stream})
            assert late.status == 429  # a stream as well: no sign of life goes out before there is a place
            assert late.headers["retry-after"]
            assert '"rate_limit_error"' in late.body
            model.free.set()
            assert (await first).status == 200

    asyncio.run(go())


def test_while_it_drains_nothing_new_is_taken_and_what_runs_goes_on(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        model = Held()
        limits = GatewayLimits(running=1, waiting=5, drain=5)
        async with serve_models(settings={"limits": limits}, m=model) as running, session() as client:
            gateway, url = running.gateway, running.url
            first = asyncio.create_task(post(client, url))
            await until(lambda: bool(model.asked))
            waiting = asyncio.create_task(post(client, url))
            await until(lambda: gateway.admission.waiting == 1)
            draining = asyncio.create_task(drain(gateway, 5))
            sent_away = await waiting
            late = await post(client, url)
            for answer in (sent_away, late):
                assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert late.headers["connection"] == "close"
            async with client.get(url + "/readyz") as ready, client.get(url + "/livez") as live:
                assert (ready.status, live.status) == (503, 200)
            assert not draining.done()
            model.free.set()
            assert (await first).status == 200
            await draining

    asyncio.run(go())


@pytest.mark.parametrize("body", [CHAT, MESSAGE])
def test_what_outlasts_the_drain_is_told_in_its_own_form(
    serve_models: Callable[..., Any], body: dict[str, Any]
) -> None:
    async def go() -> None:
        async with serve_models(m=Held()) as running, session() as client:
            streamed = asyncio.create_task(post(client, running.url, {**body, "stream": True}))
            whole = asyncio.create_task(post(client, running.url, body))
            await until(lambda: len(running.gateway.open) == 2 and any(one.started for one in running.gateway.open))
            await drain(running.gateway, 0.05)
            assert not running.gateway.open
            told = await streamed
            assert told.status == 200
            assert "Well, " in told.body
            assert "the gateway is shutting down" in told.body.strip().split("\n\n")[-1]
            assert "[DONE]" not in told.body
            assert "message_stop" not in told.body
            answer = await whole
            assert (answer.status, "the gateway is shutting down" in answer.body) == (503, True)

    asyncio.run(go())


def test_a_deadline_in_the_middle_of_a_stream_is_told_in_it(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        limits = GatewayLimits(deadline=100)
        async with serve_models(settings={"limits": limits}, m=Held()) as running, session() as client:
            for stream in (True, False):
                asking = asyncio.create_task(post(client, running.url, {**CHAT, "stream": stream}))
                await until(lambda: any(one.started or not stream for one in running.gateway.open))  # noqa: B023
                with held_time() as clock:
                    await clock.until(asking.done, step=0.1)
                told = await asking
                assert told.status == (200 if stream else 504)
                assert '"deadline"' in told.body
                assert "[DONE]" not in told.body
                assert running.gateway.admission.running == 0

    asyncio.run(go())


# ------------------------------------------------------------------ a share per key


def test_places_go_to_the_key_that_has_the_fewest() -> None:
    async def go() -> None:
        admission = Admission(GatewayLimits(running=2, waiting=4))
        got: list[str] = []

        async def ask(owner: str) -> None:
            await admission.enter(owner)
            got.append(owner)

        await ask("greedy")
        await ask("greedy")
        waiting = [asyncio.create_task(ask(owner)) for owner in ("greedy", "greedy", "modest", "greedy")]
        await asyncio.sleep(0)
        assert admission.waiting == 4
        for _ in range(4):
            admission.leave(0.1, got[0])
            await asyncio.sleep(0)
            got.pop(0)
        assert got == ["greedy", "greedy"]
        await asyncio.gather(*waiting)
        for _ in range(2):
            admission.leave(0.1, "greedy")
        assert (admission.running, admission.waiting) == (0, 0)

    asyncio.run(go())


def test_a_key_that_fills_the_queue_does_not_keep_others_out() -> None:
    """One key without rates filled the places and the queue: any other was refused every time."""

    async def go() -> list[str]:
        admission = Admission(GatewayLimits(running=1, waiting=4))
        served: list[str] = []

        async def ask(owner: str, number: int) -> str:
            try:
                await admission.enter(owner)
            except Refused as error:
                return f"{owner}{number}: {error.status} {error.code}"
            served.append(f"{owner}{number}")
            await asyncio.sleep(0.001)
            admission.leave(0.001, owner)
            return ""

        greedy = [asyncio.create_task(ask("greedy", i)) for i in range(8)]
        await asyncio.sleep(0)
        modest = [asyncio.create_task(ask("modest", i)) for i in range(3)]
        told = await asyncio.gather(*greedy, *modest)
        assert served[:3] == ["greedy0", "modest0", "greedy1"]
        assert (admission.running, admission.waiting) == (0, 0)
        assert {"modest0", "modest1"} <= set(served)
        return list(filter(None, told))

    refused = asyncio.run(go())
    assert sorted(refused) == [f"greedy{i}: 429 overloaded" for i in (3, 4, 5, 6, 7)] + ["modest2: 429 overloaded"]


def test_a_key_whose_requests_hang_leaves_places_to_others() -> None:
    """Requests of one key took all places for minutes: another key waited until it was refused."""

    async def go() -> None:
        admission = Admission(GatewayLimits(running=16, waiting=32), shared=True)
        greedy = [asyncio.create_task(admission.enter("greedy")) for _ in range(20)]
        await asyncio.sleep(0)
        assert (admission.running, admission.waiting) == (14, 6)
        assert not admission.take()  # of a batch
        await asyncio.wait_for(admission.enter("modest"), 1)
        modest = asyncio.create_task(admission.enter("modest"))
        await asyncio.sleep(0)
        assert not modest.done()
        await asyncio.wait_for(admission.enter("another"), 1)
        assert (admission.running, admission.waiting) == (16, 7)
        admission.leave(0.1, "another")
        await asyncio.sleep(0)
        assert not modest.done()
        for _ in range(2):
            admission.leave(0.1, "greedy")
        await asyncio.sleep(0)
        assert modest.done()
        for _ in range(18):
            admission.leave(0.1, "greedy")
        await asyncio.gather(*greedy)
        for _ in range(2):
            admission.leave(0.1, "modest")
        assert (admission.running, admission.waiting) == (0, 0)

    asyncio.run(go())


def test_who_is_alone_takes_all_places() -> None:
    async def go() -> None:
        admission = Admission(GatewayLimits(running=16, waiting=32))
        for _ in range(16):
            await asyncio.wait_for(admission.enter("greedy"), 1)

    asyncio.run(go())


def test_who_leaves_while_waiting_takes_no_place() -> None:
    async def go() -> None:
        admission = Admission(GatewayLimits(running=1, waiting=4))
        await admission.enter("a")
        tasks = [asyncio.create_task(admission.enter(owner)) for owner in ("a", "b", "b")]
        await asyncio.sleep(0)
        tasks[1].cancel()
        admission.leave(0.1, "a")  # the place goes to whoever is first of b, who may just have left
        await asyncio.sleep(0)
        await asyncio.gather(tasks[1], return_exceptions=True)
        await asyncio.sleep(0)
        assert tasks[2].done()
        assert admission.running == 1
        admission.leave(0.1, "b")
        await tasks[0]
        admission.leave(0.1, "a")
        assert (admission.running, admission.waiting) == (0, 0)

    asyncio.run(go())


def test_a_line_of_a_batch_that_is_cancelled_while_it_waits_takes_no_place() -> None:
    """A place that became free just then went to it, which was an error, and nobody got it."""

    async def go() -> None:
        admission = Admission(GatewayLimits(running=2, waiting=4))
        slots = BatchSlots(admission)
        await slots.enter("a")
        tasks = [asyncio.create_task(slots.enter("a")) for _ in range(2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        slots.leave(0.1, "a")
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (slots.running, admission.running) == (1, 1)
        slots.leave(0.1, "a")
        assert (slots.running, admission.running) == (0, 0)

    asyncio.run(go())
