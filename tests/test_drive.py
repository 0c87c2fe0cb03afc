"""Waiting: inside running loops, from threads, from tools, after a fork; stopping: Ctrl-C, leaving early."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import toolspeak as ts
from clock import held_time
from models.conftest import serving
from replies import calls, native
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.types import Request


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


ADD = calls(("add", {"a": 1, "b": 2}))


def fresh() -> ts.Scripted:
    return native(ADD, "It is 3.")


def test_inside_a_running_loop() -> None:
    async def notebook() -> tuple[str, str]:
        awaited = await ts.arun("1 + 2?", tools=[add], model=fresh())
        return ts.run("1 + 2?", tools=[add], model=fresh()).text, awaited.text

    assert asyncio.run(notebook()) == ("It is 3.", "It is 3.")


def test_a_stream_inside_a_running_loop() -> None:
    async def notebook() -> list[Event]:
        return list(ts.stream("1 + 2?", tools=[add], model=fresh()))

    async def awaited() -> list[Event]:
        return [event async for event in ts.astream("1 + 2?", tools=[add], model=fresh())]

    assert asyncio.run(notebook()) == asyncio.run(awaited())


def test_from_several_threads_at_once() -> None:
    said: list[str] = []

    def work() -> None:
        said.append(ts.run("1 + 2?", tools=[add], model=fresh()).text)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert said == ["It is 3."] * 8


async def nested_async(depth: int) -> str:
    """Ask again, without awaiting, on the very loop that runs this tool."""
    return inner(depth)


def nested_sync(depth: int) -> str:
    """Ask again from a thread."""
    return inner(depth)


def inner(depth: int) -> str:
    if depth == 0:
        return "the ground"
    tool = nested_async if depth % 2 else nested_sync
    model = native(calls((tool.__name__, {"depth": depth - 1})), f"back on {depth}")
    reply = ts.run("go", tools=[nested_async, nested_sync], model=model)
    events = list(ts.stream("go", tools=[add], model=fresh()))
    return f"{reply.text} {len(events)} {reply.steps[0].results[0].value}"


@pytest.mark.timeout(60)
def test_tools_that_ask_again_do_not_lock_up() -> None:
    assert inner(5).endswith("the ground")


def test_context_variables_reach_tools() -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")

    def who() -> str:
        """Say who asks."""
        return user.get()

    async def who_async() -> str:
        """Say who asks."""
        return user.get()

    user.set("ada")
    wanted = calls(("who", {}), ("who_async", {}))
    reply = ts.run("go", tools=[who, who_async], model=native(wanted, "x"))
    assert [result.value for result in reply.steps[0].results] == ["ada", "ada"]
    list(ts.stream("go", tools=[who], model=(model := native(calls(("who", {})), "x"))))
    assert model.requests[1].messages[-1].get("content") == "ada"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_after_a_fork() -> None:
    assert ts.run("1 + 2?", tools=[add], model=fresh()).text == "It is 3."
    child = os.fork()
    if child == 0:
        good = ts.run("1 + 2?", tools=[add], model=fresh()).text == "It is 3."
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("threaded", [True, False])
def test_a_tool_that_wants_to_end_the_program_has_failed(error: type[BaseException], threaded: bool) -> None:
    def stop() -> None:
        """Stop."""
        raise error

    async def astop() -> None:
        """Stop."""
        raise error

    tool = ts.tool(stop if threaded else astop, name="stop")
    reply = ts.run("go", tools=[tool], model=native(calls(("stop", {})), "x"))
    assert isinstance(reply.steps[0].results[0].error, ts.ToolError)
    assert ts.run("1 + 2?", tools=[add], model=fresh()).text == "It is 3."


def test_leaving_a_stream_early_stops_the_model() -> None:
    closed = threading.Event()

    class Endless:
        name = "endless"
        capabilities: frozenset[Any] = frozenset(["tools"])

        async def stream(self, request: Request) -> AsyncIterator[Event]:
            try:
                while True:
                    yield TextDelta("bla ")
                    await asyncio.sleep(0)
            finally:
                closed.set()

    for event in ts.stream("go", model=Endless()):
        assert event == TextDelta("bla ")
        break
    assert closed.wait(60)


def test_leaving_a_stream_early_disconnects_from_the_server() -> None:
    async def endless(request: Any) -> Any:
        from aiohttp import web

        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while True:
            await response.write(b'data: {"choices": [{"index": 0, "delta": {"content": "bla "}}]}\n\n')
            await asyncio.sleep(0.01)

    async def main() -> None:
        async with serving(endless) as server:

            def leave() -> str:
                for event in ts.stream("go", model=f"{server.url}/v1#m"):
                    if isinstance(event, TextDelta):
                        return event.text
                return ""

            assert "bla " in await asyncio.to_thread(leave)  # what came at once is one event
            await asyncio.wait_for(server.aborted.wait(), 60)

    asyncio.run(main())


def test_a_seconds_limit_disconnects_and_keeps_what_came() -> None:
    async def stalls(request: Any) -> Any:
        from aiohttp import web

        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"choices": [{"index": 0, "delta": {"content": "Once upon"}}]}\n\n')
        sent.set()
        await asyncio.sleep(600)
        return response

    async def main() -> None:
        async with serving(stalls) as server:
            with held_time() as clock:
                asking = asyncio.create_task(ts.arun("go", model=f"{server.url}/v1#m", limits={"seconds": 100}))
                await clock.until(sent.is_set)
                await clock.until(asking.done, step=0.1)  # many turns: what was sent has been read long before
                reply = await asking
            assert (reply.text, reply.finish) == ("Once upon", "limit")
            await asyncio.wait_for(server.aborted.wait(), 60)

    sent = asyncio.Event()

    asyncio.run(main())


INTERRUPTED = """
import asyncio, sys, time
sys.path.insert(0, {tests!r})
import toolspeak as ts
from replies import calls, native

async def wait() -> None:
    "Wait."
    print("waiting", flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        print("let go", flush=True)

def block() -> None:
    "Block."
    print("waiting", flush=True)
    time.sleep(60)

try:
    {how}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""
HOW = {
    "run": 'ts.run("go", tools=[wait], model=native(calls(("wait", {})), "x"))',
    "stream": 'list(ts.stream("go", tools=[wait], model=native(calls(("wait", {})), "x")))',
    "thread": 'ts.run("go", tools=[block], model=native(calls(("block", {})), "x"))',
}


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to one process")
@pytest.mark.parametrize("how", HOW)
def test_ctrl_c_during_a_tool(how: str) -> None:
    script = INTERRUPTED.format(tests=os.path.dirname(__file__), how=HOW[how])
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err == "" or (how == "thread" and err.endswith("continues in its thread, which nothing can stop\n"))
    assert out.split("\n")[:-1] == (["interrupted"] if how == "thread" else ["let go", "interrupted"])


# ------------------------------------------------------------------ size and speed


def big(size: int, chunk: int = 64) -> ts.Scripted:
    return ts.Scripted(["lorem ipsum dolor sit amet, an" * (size // 30)], chunk=chunk)


def seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def test_ten_megabytes_of_output() -> None:
    reply = ts.run("go", tools=[add], model=big(10_000_000, chunk=4096), limits={"steps": 2})
    assert len(reply.text) > 9_900_000


def test_the_time_is_linear_in_the_output() -> None:
    def ask(size: int) -> float:
        return min(seconds(lambda: ts.run("go", tools=[add], model=big(size))) for _ in range(3))

    assert ask(800_000) / ask(200_000) < 8  # 4 if linear, 16 if quadratic


# ------------------------------------------------------------------ logging


def test_steps_are_logged_without_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    model = native(calls(("add", {"a": 4711, "b": "x"})), calls(("add", {"a": 4711, "b": 2})), "It is 4713.")
    with caplog.at_level(logging.INFO, "toolspeak"):
        ts.run("secret question", tools=[add], model=model)
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert all(record.name.split(".")[0] == "toolspeak" for record in caplog.records)
    assert "asking scripted" in said
    assert "running add" in said
    assert "add failed with InvalidCall" in said
    assert "add done" in said
    for secret in ("4711", "4713", "secret"):
        assert secret not in said


def test_a_question_asked_again_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "toolspeak"):
        ts.decide("go", tools=[add], model=native(calls(("add", {"a": 4711})), ADD))
    assert "re-asked" in [r.getMessage() for r in caplog.records if r.levelno == logging.INFO]
    assert any("4711" in r.getMessage() for r in caplog.records if r.levelno == logging.DEBUG)


def test_finished_is_told_once_a_turn() -> None:
    events = list(ts.stream("1 + 2?", tools=[add], model=fresh()))
    assert [event.finish for event in events if isinstance(event, Finished)] == ["tool_calls", "stop"]
