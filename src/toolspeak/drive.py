"""Drivers of plans: the one place where waiting happens, and where sync and async differ.

`play` carries out a plan's effects on a model and passes its events on; `run_sync` and `iterate_sync`
give the same to code that does not await, also inside a running loop (a notebook) and from threads.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import logging
import os
import queue
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from .errors import LimitReached, ModelError, ToolspeakError
from .events import CallResult, Event, Finished, Noted
from .models.base import Model, Scorer
from .models.offload import PlanEnd, close_plan, next_effect
from .models.within_bounds import within_bounds
from .plan.effects import Ask, Effect, Plan, Run, Score, Tell
from .types import Reply, Request, ToolCall, ToolResult
from .wire.collect import Collector

T = TypeVar("T")
Runner = Callable[[Sequence[ToolCall]], Awaitable[tuple[ToolResult, ...]]]
log = logging.getLogger("toolspeak")
content = logging.getLogger("toolspeak.content")
"""What was said and given, which not everybody who reads logs may read: the gateway turns it off."""


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The end of a plan, and its value."""

    value: T


async def play(
    plan: Plan[T],
    model: Model,
    run: Runner | None = None,
    *,
    begun: Effect | None = None,
    others: Mapping[str, Model] | None = None,
    seconds: float | None = None,
    level: int = logging.DEBUG,
) -> AsyncGenerator[Event | Done[T], None]:
    """The events of a plan as they come, and `Done` with its value. Errors are thrown into the plan first.

    `begun` is the first effect of a plan from which somebody has taken it; `others` are the models that
    the plan may ask by name (`Ask.by`). After `seconds` whatever is under way is cancelled, and LimitReached is thrown.
    Each step is logged at `level`; what was said and with which arguments at DEBUG alone.
    """
    deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
    outcome: Any = None
    failure: ToolspeakError | None = None
    try:
        while True:
            try:
                effect = begun or await next_effect(plan, outcome, failure)
            except PlanEnd as end:
                yield Done(end.value)
                return
            begun = outcome = failure = None
            await asyncio.sleep(0)  # a model that never waits must not keep others, or a cancellation, from running
            asked = (others or {})[effect.by] if isinstance(effect, Ask) and effect.by else model
            _log_effect(effect, asked, level)
            try:
                work = _ask(effect, asked, deadline) if isinstance(effect, Ask) else _do(effect, model, run, deadline)
                async with aclosing(work) as events:
                    async for event in events:
                        if isinstance(event, Done):
                            outcome = event.value
                        else:
                            yield event
            except ToolspeakError as error:
                failure = error
                log.log(level, "%s", type(error).__name__)
            else:
                _log_outcome(outcome, level)
    finally:
        close_plan(plan)


async def arun(
    plan: Plan[T],
    model: Model,
    run: Runner | None = None,
    *,
    seconds: float | None = None,
    level: int = logging.DEBUG,
) -> T:
    """The value of a plan."""
    return await value(play(plan, model, run, seconds=seconds, level=level))


async def value(events: AsyncGenerator[Event | Done[T], None]) -> T:
    """The value of a plan that is played."""
    async with aclosing(events) as played:
        async for event in played:
            if isinstance(event, Done):
                return event.value
    raise AssertionError("a plan ends with Done")


async def _ask(effect: Ask, model: Model, deadline: float | None) -> AsyncGenerator[Event | Done[Reply | None], None]:
    live, read, kept = effect.live, effect.read, effect.kept
    reply = Collector()
    try:
        async with aclosing(_timely(model, effect.request, deadline)) as events:
            async for event in events:
                for made in (event,) if read is None else read(event):
                    if kept:
                        reply.feed(made)
                    if live:
                        yield made
                    if isinstance(made, Finished) and read is not None:  # enough was read: the model need not go on
                        yield Done(reply.reply() if kept else None)
                        return
        for made in read(None) if read else ():
            if kept:
                reply.feed(made)
            if live:
                yield made
    except LimitReached as error:
        error.reply = reply.reply()
        raise
    yield Done(reply.reply() if kept else None)


async def heard(effect: Ask, model: Model) -> AsyncGenerator[Event, None]:
    """The events of a question whose reply is not kept: all that a driver would do for it, one step an event."""
    _log_effect(effect, model, logging.DEBUG)
    read = effect.read
    async with aclosing(_timely(model, effect.request, None)) as events:
        async for event in events:
            for made in (event,) if read is None else read(event):
                yield made
                if isinstance(made, Finished) and read is not None:  # enough was read: the model need not go on
                    return
    for made in read(None) if read else ():
        yield made


async def _do(
    effect: Score | Run | Tell, model: Model, run: Runner | None, deadline: float | None
) -> AsyncGenerator[Event | Done[Any], None]:
    match effect:
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


def _timely(model: Model, request: Request, deadline: float | None) -> AsyncGenerator[Event, None]:
    """The model's events, none waited for beyond the deadline, and no more of them than a reply may hold."""
    stream = model.stream(request)
    if deadline is None and isinstance(stream, AsyncGenerator):
        return within_bounds(cast("AsyncGenerator[Event, None]", stream))
    return within_bounds(_bounded(stream, deadline))


async def _bounded(stream: AsyncIterator[Event], deadline: float | None) -> AsyncGenerator[Event, None]:
    try:
        while True:
            # Only the waiting is bounded: a timeout must not strike while the listener works.
            async with _until(deadline):
                event = await anext(stream)
            yield event
    except StopAsyncIteration:
        return
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()  # pyright: ignore[reportUnknownMemberType]


@contextlib.asynccontextmanager
async def _until(deadline: float | None) -> AsyncGenerator[None, None]:
    if deadline is None:
        yield
        return
    limit = asyncio.timeout_at(deadline)
    try:
        # A model that never waits would never let the timeout strike: hence the look at the clock.
        if asyncio.get_running_loop().time() >= deadline:
            raise _used_up()
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise _used_up() from error


def _used_up() -> LimitReached:
    return LimitReached("the time that was given is used up", limit="seconds")


async def _score(model: Model, pairs: Sequence[tuple[str, str]]) -> list[float]:
    if not isinstance(model, Scorer):
        raise ModelError(f"{model.name} gives no likelihoods")
    prompts: dict[str, list[str]] = {}
    for prompt, text in pairs:
        prompts.setdefault(prompt, []).append(text)
    turn = asyncio.Semaphore(getattr(model, "abreast", 1))  # a server may work on several prompts at once

    async def scored(prompt: str, texts: list[str]) -> dict[str, float]:
        async with turn:
            return dict(zip(texts, await model.score(prompt, texts), strict=True))

    rows = await asyncio.gather(*(scored(prompt, texts) for prompt, texts in prompts.items()))
    told = dict(zip(prompts, rows, strict=True))
    return [told[prompt][text] for prompt, text in pairs]


# ------------------------------------------------------------------ what is logged: names and counts, values at DEBUG


def _log_effect(effect: Effect, model: Model, level: int) -> None:
    match effect:
        case Ask(request):
            tools = len(request.tools or ())
            log.log(level, "asking %s: %d messages, %d tools", model.name, len(request.messages), tools)
        case Score(pairs):
            log.log(level, "asking %s how likely %d texts are", model.name, len(pairs))
        case Run(calls):
            log.log(level, "running %s", ", ".join(call.name for call in calls))
        case Tell(events):
            for event in events:
                if isinstance(event, Noted):
                    log.log(level, "%s", event.note.rule)
                    content.debug("%s: %s", event.note.rule, event.note.detail)


def _log_outcome(outcome: Any, level: int) -> None:
    if isinstance(outcome, Reply):
        wanted = ", ".join(call.name for call in outcome.calls)
        log.log(level, "%s: %d characters%s", outcome.finish, len(outcome.text), f", calls {wanted}" if wanted else "")
        content.debug("said %r", outcome.text)
        for call in outcome.calls:
            content.debug("wants %s(%s)", call.name, call.json or call.arguments)
    elif isinstance(outcome, tuple):
        for result in cast("tuple[ToolResult, ...]", outcome):
            became = f"failed with {type(result.error).__name__}" if result.error else "done"
            log.log(level, "%s %s in %.2f s", result.name, became, result.seconds)
            content.debug("%s gave %s", result.name, result.text)


# ------------------------------------------------------------------ for code that does not await


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self, name: str = "toolspeak-loop") -> None:
        self.pid = os.getpid()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._main, name=name, daemon=True)
        self.thread.start()
        self.ready.wait()

    def _main(self) -> None:
        asyncio.run(self._live())

    async def _live(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.over = asyncio.Event()
        self.ready.set()
        await self.over.wait()

    def usable(self) -> bool:
        return self.pid == os.getpid() and self.thread.is_alive()

    def end(self, wait: float | None = None) -> None:
        """Cancels what still runs, closes connections, ends the thread."""
        if self.usable():
            with contextlib.suppress(RuntimeError):  # it has just ended by itself
                self.loop.call_soon_threadsafe(self.over.set)
            self.thread.join(wait)


_shared: Loop | None = None
_starting = threading.Lock()
_nested: contextvars.ContextVar[bool] = contextvars.ContextVar("_nested", default=False)
"""Set in everything that the shared loop waits for: it must not wait for the shared loop in turn."""


@contextlib.contextmanager
def _waited_for() -> Generator[Loop, None, None]:
    """A loop that may be waited for here: the shared one, which lives as long as the process so that connections
    do, or, where that waits for us (an async tool that calls us back), one for this time alone."""
    global _shared  # noqa: PLW0603 - one a process, made when first needed, and anew after a fork
    with _starting:
        if _shared is None or not _shared.usable():
            _shared = Loop()
            atexit.register(_shared.end, 2.0)
        shared = _shared
    if not _nested.get() and threading.current_thread() is not shared.thread:
        yield shared
        return
    own = Loop()
    try:
        yield own
    finally:
        own.end()


def _start(on: Loop, work: Coroutine[Any, Any, T]) -> tuple[list[asyncio.Task[T]], threading.Event]:
    """Starts `work` on the loop of another thread, in the context of this one: its task, soon, and when it ends."""
    task: list[asyncio.Task[T]] = []
    done = threading.Event()

    def start() -> None:
        task.append(on.loop.create_task(work))
        task[0].add_done_callback(lambda _: done.set())

    context = contextvars.copy_context()
    if on is not _shared:
        context.run(_nested.set, True)
    on.loop.call_soon_threadsafe(start, context=context)
    return task, done


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """The outcome of a coroutine, waited for. Ctrl-C cancels it and waits until it has let go."""
    with _waited_for() as on:
        task, done = _start(on, work)
        try:
            done.wait()
        except BaseException:
            on.loop.call_soon_threadsafe(lambda: task[0].cancel())  # noqa: PLW0108 - the task may not be made yet
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
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread as it is
            items.put(error)

    with _waited_for() as on:
        task, done = _start(on, pump())
        try:
            while True:
                on.loop.call_soon_threadsafe(wanted.release)
                item = items.get()
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item[0]
        finally:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                on.loop.call_soon_threadsafe(lambda: task[0].cancel())  # noqa: PLW0108 - the task may not be made yet
            done.wait(5)
