"""Several upstreams as one model: failing over, being careful with those that are down, retrying no more than is fair."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from clock import Clock
from toolspeak.errors import (
    BadRequest,
    KeyRefused,
    ModelError,
    ModelUnreachable,
    RateLimited,
    ServerFailed,
    StreamCut,
    UsageError,
)
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.models import pool as pools, retries as retry
from toolspeak.models.base import Capability, Model
from toolspeak.models.http import Http
from toolspeak.models.http.timeouts import Timeouts
from toolspeak.models.pool import Care, Pool
from toolspeak.types import Request

ASK = Request([{"role": "user", "content": "hi"}])
GONE = ModelUnreachable("no answer")


class Fake:
    """Raises or says what it is told, the last for ever."""

    def __init__(self, name: str, *replies: str | Exception, capabilities: frozenset[Capability] = frozenset()) -> None:
        self.name = name
        self.capabilities = capabilities
        self.replies = replies
        self.asked = 0
        self.open = asyncio.Event()
        self.open.set()

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        reply = self.replies[min(self.asked, len(self.replies) - 1)]
        self.asked += 1
        await self.open.wait()
        if isinstance(reply, StreamCut):
            yield TextDelta(reply.text)
        if isinstance(reply, Exception):
            raise type(reply)(*reply.args, **{k: v for k, v in vars(reply).items() if k not in ("args", "reason")})
        yield TextDelta(reply)
        yield Finished()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, none of them waited for."""
    made: list[float] = []
    sleep = asyncio.sleep

    async def told(seconds: float) -> None:
        made.append(seconds)
        await sleep(0)

    monkeypatch.setattr(pools.asyncio, "sleep", told)
    return made


async def text(model: Model) -> str:
    return "".join([event.text async for event in model.stream(ASK) if isinstance(event, TextDelta)])


def run(main: Any) -> Any:
    return asyncio.run(asyncio.wait_for(main, 600))


def test_a_dead_upstream_is_passed_over_without_a_pause(waits: list[float]) -> None:
    async def main() -> None:
        dead, alive = Fake("dead", GONE), Fake("alive", "hello")
        pool = Pool([dead, alive], care=Care(failures=2))
        assert [await text(pool) for _ in range(8)] == ["hello"] * 8
        assert dead.asked == 2  # then its breaker opened
        assert pool.upstreams[0].state == "open"
        assert pool.retries == 2
        assert set(waits) == {0.0}

    run(main())


def test_requests_go_to_the_least_busy() -> None:
    async def main() -> None:
        first, second = Fake("first", "a"), Fake("second", "b")
        pool = Pool([first, second])
        first.open.clear()
        second.open.clear()
        tasks = [asyncio.create_task(text(pool)) for _ in range(6)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [one.in_flight for one in pool.upstreams] == [3, 3]
        assert pool.in_flight == 6
        first.open.set()
        for _ in range(8):
            await asyncio.sleep(0)
        more = asyncio.create_task(text(pool))
        assert await more == "a"
        second.open.set()
        assert sorted(await asyncio.gather(*tasks)) == ["a"] * 3 + ["b"] * 3
        assert pool.in_flight == 0

    run(main())


def test_an_idle_pool_takes_its_upstreams_in_turns() -> None:
    async def main() -> None:
        models = [Fake(str(i), str(i)) for i in range(3)]
        pool = Pool(models)
        for _ in range(9):
            await text(pool)
        assert [model.asked for model in models] == [3, 3, 3]

    run(main())


@pytest.mark.parametrize("error", [BadRequest("no such field"), KeyRefused("no")])
def test_a_refusal_is_never_sent_again(error: ModelError) -> None:
    async def main() -> None:
        first, second = Fake("first", error), Fake("second", error)
        pool = Pool([first, second])
        with pytest.raises(type(error)):
            await text(pool)
        assert first.asked + second.asked == 1
        assert pool.retries == 0
        assert [one.failures for one in pool.upstreams] == [0, 0]  # it says nothing against the upstream

    run(main())


@pytest.mark.parametrize("error", [ServerFailed("x", code=400 + 8), ServerFailed("x", code=503), GONE])
def test_three_attempts_in_all(error: ModelError) -> None:
    async def main() -> None:
        model = Fake("m", error)
        pool = Pool([model])
        with pytest.raises(type(error)):
            await text(pool)
        assert model.asked == 3
        models = [Fake(str(i), error) for i in range(5)]
        with pytest.raises(type(error)):
            await text(Pool(models))
        assert sum(model.asked for model in models) == 3

    run(main())


def test_a_failure_that_more_of_the_same_would_not_help_is_told_at_once() -> None:
    async def main() -> None:
        for error in (ServerFailed("it is no JSON"), ModelUnreachable("too slow", timed_out=True)):
            model = Fake("m", error)
            with pytest.raises(type(error)):
                await text(Pool([model]))
            assert model.asked == 1

    run(main())


def test_nothing_is_sent_again_once_something_was_passed_on() -> None:
    async def main() -> None:
        first, second = Fake("first", StreamCut("cut", text="Hel")), Fake("second", "hello")
        pool = Pool([first, second])
        pool._turn = 1
        stream = pool.stream(ASK)
        assert await anext(stream) == TextDelta("Hel")
        with pytest.raises(StreamCut):
            await anext(stream)
        assert second.asked == 0
        assert pool.upstreams[0].failures == 1

    run(main())


def test_a_rate_limit_fails_over_and_is_kept_in_mind() -> None:
    async def main() -> None:
        clock = Clock(100.0)
        limited, free = Fake("limited", RateLimited("busy", retry_after=20.0), "a"), Fake("free", "b")
        pool = Pool([limited, free], clock=clock)
        pool._turn = 1
        assert [await text(pool) for _ in range(5)] == ["b"] * 5
        assert limited.asked == 1
        assert pool.upstreams[0].state == "closed"
        clock.now += 21
        assert {await text(pool) for _ in range(2)} == {"a", "b"}

    run(main())


def test_retry_after_is_honoured_up_to_a_minute(waits: list[float]) -> None:
    async def main() -> None:
        assert await text(Pool([Fake("m", RateLimited("busy", retry_after=7.0), "hello")])) == "hello"
        assert 7.0 <= waits[-1] <= 7.25
        with pytest.raises(RateLimited) as caught:
            await text(Pool([Fake("m", RateLimited("busy", retry_after=61.0), "hello")]))
        assert caught.value.retry_after == 61.0

    run(main())


def test_a_breaker_opens_tries_one_request_and_closes() -> None:
    async def main() -> None:
        clock = Clock(100.0)
        model = Fake("m", GONE)
        pool = Pool([model], care=Care(attempts=1, failures=3, rest=10.0), clock=clock)
        for _ in range(3):
            with pytest.raises(ModelUnreachable):
                await text(pool)
        assert (pool.upstreams[0].state, pool.available, pool.upstreams[0].opened) == ("open", False, 1)
        with pytest.raises(ServerFailed, match="tried again in 10 s") as caught:
            await text(pool)
        assert (caught.value.code, caught.value.retry_after) == (503, 10.0)
        assert model.asked == 3

        clock.now += 10
        assert pool.upstreams[0].state == "half-open"
        with pytest.raises(ModelUnreachable):
            await text(pool)
        assert (pool.upstreams[0].state, model.asked) == ("open", 4)

        clock.now += 10
        model.replies = ("hello",)
        model.open.clear()
        trial = asyncio.create_task(text(pool))
        await asyncio.sleep(0)
        with pytest.raises(ServerFailed, match="is down"):  # one trial at a time
            await text(pool)
        model.open.set()
        assert await trial == "hello"
        assert (pool.upstreams[0].state, pool.upstreams[0].failures) == ("closed", 0)

    run(main())


def test_the_retries_of_a_request_are_no_further_failures() -> None:
    async def main() -> None:
        model = Fake("m", *[ServerFailed("out of memory", code=500)] * 12, "hello")
        pool = Pool([model], care=Care(attempts=3, failures=5))
        for failures in range(1, 5):
            with pytest.raises(ServerFailed, match="out of memory"):
                await text(pool)
            assert (model.asked, pool.upstreams[0].failures) == (3 * failures, failures)
        assert await text(pool) == "hello"
        assert pool.upstreams[0].failures == 0

    run(main())


def test_a_trial_that_is_cancelled_makes_way_for_another() -> None:
    async def main() -> None:
        clock = Clock(100.0)
        model = Fake("m", GONE, "hello")
        pool = Pool([model], care=Care(attempts=1, failures=1), clock=clock)
        with pytest.raises(ModelUnreachable):
            await text(pool)
        clock.now += 10
        model.open.clear()
        trial = asyncio.create_task(text(pool))
        await asyncio.sleep(0)
        trial.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trial
        model.open.set()
        assert pool.in_flight == 0
        assert await text(pool) == "hello"

    run(main())


def test_retries_are_a_fifth_of_the_traffic_at_most() -> None:
    async def main() -> None:
        model = Fake("m", ServerFailed("x", code=503))
        pool = Pool([model], care=Care(failures=10_000))
        for _ in range(200):
            with pytest.raises(ServerFailed):
                await text(pool)
        assert pool.retries <= 10 + 0.2 * 200
        assert model.asked == 200 + pool.retries
        assert pool.retries >= 0.2 * 190

    run(main())


def test_a_reader_who_leaves_frees_the_upstream() -> None:
    async def main() -> None:
        pool = Pool([Fake("m", "hello")])
        stream = pool.stream(ASK)
        await anext(stream)
        assert pool.in_flight == 1
        await stream.aclose()
        assert pool.in_flight == 0

    run(main())


def test_what_a_pool_can_do_is_what_all_can() -> None:
    tools: frozenset[Capability] = frozenset({"tools"})
    both: frozenset[Capability] = frozenset({"tools", "schema"})
    pool = Pool([Fake("a", "x", capabilities=tools), Fake("b", "x", capabilities=both)])
    assert isinstance(pool, Model)
    assert pool.capabilities == tools
    assert pool.name == "a"
    with pytest.raises(UsageError):
        Pool([])


def test_real_upstreams_one_of_them_dead(serve: Callable[..., Any]) -> None:
    hello = b'data: {"choices": [{"delta": {"content": "hello"}}]}\n\ndata: [DONE]\n\n'

    async def main() -> None:
        async with serve(hello) as server:
            models = [Http("http://127.0.0.1:9/v1", "m", retries=0), Http(server.url, "m", retries=0)]
            pool = Pool(models, care=Care(failures=3))
            assert [await text(pool) for _ in range(10)] == ["hello"] * 10
            assert pool.upstreams[0].state == "open"
            assert pool.upstreams[0].requests == 3
            await pool.aclose()

    run(main())


def test_any_failure_of_a_server_may_pass() -> None:
    assert retry.pause(ServerFailed("x", code=520), 1) is not None
    assert retry.pause(ServerFailed("x", code=501), 1) is None


def test_a_slow_listener_lets_no_time_run_out(serve: Callable[..., Any]) -> None:
    frames = [b'data: {"choices": [{"delta": {"content": "%d"}}]}\n\n' % i for i in range(4)] + [b"data: [DONE]\n\n"]

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for frame in frames:
            await response.write(frame)
            await asyncio.wait_for(read.wait(), 60)
            read.clear()
        return response

    async def main() -> None:
        async with serve(drip) as server:
            heard = ""
            async for event in Http(server.url, "m", timeout=Timeouts(5, 5, 0.2), retries=0).stream(ASK):
                if isinstance(event, TextDelta):
                    heard += event.text
                later = asyncio.get_running_loop().time() + 0.3
                while asyncio.get_running_loop().time() < later:
                    await asyncio.get_running_loop().run_in_executor(None, time.sleep, 0.05)
                read.set()
            assert heard == "0123"

    read = asyncio.Event()
    run(main())


@pytest.mark.parametrize("error", [RateLimited("busy"), ServerFailed("busy", code=503)])
def test_a_caller_that_slows_down_is_told_each_refusal(error: ModelError) -> None:
    """Another upstream is asked all the same."""

    async def main() -> None:
        pools.returned.set((429, 503))
        busy = Fake("m", error, "hello")
        with pytest.raises(type(error)):
            await text(Pool([busy]))
        assert busy.asked == 1
        assert await text(Pool([Fake("m", error), Fake("n", "hello")])) == "hello"
        assert await text(Pool([Fake("m", GONE, "hello")])) == "hello"

    run(main())
