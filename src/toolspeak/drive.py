"""Drivers of plans: the one place where waiting happens, and where sync and async differ.

`play` carries out a plan's effects on a model and passes its events on; `run_sync` and `iterate_sync`
give the same to code that does not await, also inside a running loop (a notebook) and from threads.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import os
import queue
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .errors import LimitReached, ModelError, ToolspeakError
from .events import CallResult, Event
from .models.base import Model, Scorer
from .plan.effects import Ask, Effect, Plan, Run, Score, Tell
from .types import ToolCall, ToolResult
from .wire.collect import collect

T = TypeVar("T")
Runner = Callable[[Sequence[ToolCall]], Awaitable[tuple[ToolResult, ...]]]


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The end of a plan, and its value."""

    value: T


async def play(
    plan: Plan[T], model: Model, run: Runner | None = None, *, seconds: float | None = None
) -> AsyncGenerator[Event | Done[T], None]:
    """The events of a plan as they come, and `Done` with its value. Errors are thrown into the plan first.

    After `seconds` whatever is under way is cancelled, and LimitReached is thrown.
    """
    deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
    outcome: Any = None
    failure: ToolspeakError | None = None
    try:
        while True:
            try:
                effect = plan.throw(failure) if failure else plan.send(outcome)
            except StopIteration as end:
                yield Done(end.value)
                return
            outcome = failure = None
            try:
                async with aclosing(_carry_out(effect, model, run, deadline)) as events:
                    async for event in events:
                        if isinstance(event, Done):
                            outcome = event.value
                        else:
                            yield event
            except ToolspeakError as error:
                failure = error
    finally:
        plan.close()


async def arun(plan: Plan[T], model: Model, run: Runner | None = None, *, seconds: float | None = None) -> T:
    """The value of a plan."""
    async with aclosing(play(plan, model, run, seconds=seconds)) as events:
        async for event in events:
            if isinstance(event, Done):
                return event.value
    raise AssertionError("a plan ends with Done")


async def _carry_out(
    effect: Effect, model: Model, run: Runner | None, deadline: float | None
) -> AsyncGenerator[Event | Done[Any], None]:
    match effect:
        case Ask():
            heard: list[Event] = []
            async with aclosing(_read(effect, model)) as events:
                try:
                    while True:
                        # Only the waiting is bounded: a timeout must not strike while the listener works.
                        async with _until(deadline):
                            event = await anext(events)
                        heard.append(event)
                        if effect.live:
                            yield event
                except StopAsyncIteration:
                    yield Done(collect(heard))
                except LimitReached as error:
                    error.reply = collect(heard)
                    raise
        case Score(pairs):
            async with _until(deadline):
                scores = await _score(model, pairs)
            yield Done(scores)
        case Run(calls):
            if run is None:
                raise AssertionError("this plan runs calls, and its driver was given nothing to run them with")
            async with _until(deadline):
                results = await run(calls)
            for result in results:
                yield CallResult(result)
            yield Done(results)
        case Tell(events):
            for event in events:
                yield event


@contextlib.asynccontextmanager
async def _until(deadline: float | None) -> AsyncGenerator[None, None]:
    if deadline is None:
        yield
        return
    limit = asyncio.timeout_at(deadline)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise LimitReached("the time that was given is used up", limit="seconds") from error


async def _read(effect: Ask, model: Model) -> AsyncGenerator[Event, None]:
    stream = model.stream(effect.request)
    try:
        async for event in stream:
            if effect.read is None:
                yield event
            else:
                for made in effect.read(event):
                    yield made
        for made in effect.read(None) if effect.read else ():
            yield made
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()  # pyright: ignore[reportUnknownMemberType]


async def _score(model: Model, pairs: Sequence[tuple[str, str]]) -> list[float]:
    if not isinstance(model, Scorer):
        raise ModelError(f"{model.name} gives no likelihoods")
    prompts: dict[str, list[str]] = {}
    for prompt, text in pairs:
        prompts.setdefault(prompt, []).append(text)
    told = {
        prompt: dict(zip(texts, await model.score(prompt, texts), strict=True)) for prompt, texts in prompts.items()
    }
    return [told[prompt][text] for prompt, text in pairs]


# ------------------------------------------------------------------ for code that does not await


class _Background:
    """An event loop in a thread of its own. It lives as long as the process, so that connections do."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="toolspeak-loop", daemon=True).start()
        atexit.register(self.close)

    def close(self) -> None:
        """Closes what the loop still holds, such as connections: unasked, when the program ends."""
        if self.pid == os.getpid():
            with contextlib.suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(self.loop.shutdown_asyncgens(), self.loop).result(2)


_background: _Background | None = None
_starting = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    global _background  # noqa: PLW0603 - one a process, made when first needed, and anew after a fork
    with _starting:
        if _background is None or _background.pid != os.getpid():
            _background = _Background()
        return _background.loop


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """The outcome of a coroutine, waited for. Ctrl-C cancels it and waits until it has let go."""
    loop = _loop()
    try:
        inside = asyncio.get_running_loop() is loop
    except RuntimeError:
        inside = False
    if inside:  # an async tool that calls us back: its loop is busy waiting for it
        return _in_a_thread(work)
    done = threading.Event()
    task: list[asyncio.Task[T]] = []

    def start() -> None:
        task.append(loop.create_task(work))
        task[0].add_done_callback(lambda _: done.set())

    loop.call_soon_threadsafe(start, context=contextvars.copy_context())
    try:
        done.wait()
    except BaseException:
        loop.call_soon_threadsafe(lambda: task[0].cancel())  # noqa: PLW0108 - the task may not be made yet
        done.wait(5)
        raise
    return task[0].result()


def iterate_sync(events: AsyncGenerator[T, None]) -> Iterator[T]:
    """The items of an async generator, each made when it is asked for. Leaving early closes the generator."""
    items: queue.SimpleQueue[tuple[T] | BaseException | None] = queue.SimpleQueue()
    wanted = asyncio.Semaphore(0)

    async def pump() -> None:  # one task from first to last: timeouts and contexts belong to tasks
        try:
            async with aclosing(events):
                await wanted.acquire()
                async for item in events:
                    items.put((item,))
                    await wanted.acquire()
            items.put(None)
        except BaseException as error:
            items.put(error)
            raise

    loop = _loop()
    pumping = asyncio.run_coroutine_threadsafe(pump(), loop)
    try:
        while True:
            loop.call_soon_threadsafe(wanted.release)
            item = items.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item[0]
    finally:
        pumping.cancel()
        with contextlib.suppress(BaseException):
            pumping.result(5)


def _in_a_thread(work: Coroutine[Any, Any, T]) -> T:
    outcome: list[T] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread as it is
            failure.append(error)

    thread = threading.Thread(target=body, name="toolspeak-nested")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
