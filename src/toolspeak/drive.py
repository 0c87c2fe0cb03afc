"""Drives plans: executes their effects. It is the one place that awaits, and where sync and async code differ.

`play` executes a plan's effects with a model and yields the events. `run_sync` and `iterate_sync` do the same for code
that does not await, also inside a running loop (a notebook) and from threads.

Pitfalls: a timeout must hit only while the model is being awaited, never while the consumer of the events works. A
model that never awaits would block cancellation and timeouts, so the loop gets a turn before each effect and the clock
is checked by hand. Code that the shared loop waits for must not wait for that loop in turn (`waiting_loop`).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import logging
import queue
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from .errors import LimitReached, ToolspeakError
from .events import CallResult, Event, Finished
from .loop_thread import Loop
from .models.base import Model
from .models.bounded_stream import GENERATORS, within_bounds
from .models.offload import PlanEnd, close_plan, next_effect, offloaded
from .models.step_logs import log_effect, log_outcome
from .models.wrapper import score
from .plan.effects import Ask, Effect, Plan, Run, Score, Tell
from .policy.content_origin import for_model
from .types import Request, ToolResult
from .wire.reading.collect import Collector

T = TypeVar("T")
Runner = Callable[[Run], Awaitable[tuple[ToolResult, ...]]]
log = logging.getLogger("toolspeak")


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The end of a plan, with its value."""

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
    """The events of a plan as they arrive, and last `Done` with its value. Errors are first raised inside the plan.

    `begun`: the effect that a plan was already advanced to. `others`: models that it may ask by name (`Ask.by`). After
    `seconds` the effect is cancelled and the plan gets LimitReached. `level` is that of the log; texts are at DEBUG only.
    """
    deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
    outcome: Any = None
    failure: ToolspeakError | None = None
    effect: Effect | None = None
    try:
        while True:
            try:
                effect = begun or await next_effect(plan, outcome, failure, effect)
            except PlanEnd as end:
                yield Done(end.value)
                return
            begun = outcome = failure = None
            await asyncio.sleep(0)  # a model that never waits must not keep others, or a cancellation, from running
            target = _model_of(effect, model, others)
            log_effect(effect, target, level)
            progress = _Progress(effect)
            try:
                work = _ask(effect, target, deadline) if isinstance(effect, Ask) else _do(effect, model, run, deadline)
                async with aclosing(work) as events:
                    async for event in events:
                        if progress.take(event):
                            yield cast("Event", event)
            except ToolspeakError as error:
                failure = progress.failed(error)
                log.log(level, "%s", type(error).__name__)
            else:
                outcome = await offloaded(progress.size(), progress.outcome)
                log_outcome(outcome, level)
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
    """The value of a plan, from the events of `play`."""
    async with aclosing(events) as played:
        async for event in played:
            if isinstance(event, Done):
                return event.value
    raise AssertionError("a plan ends with Done")


class _Progress:
    """The outcome of one effect so far: a value, or the reply collected from its events."""

    __slots__ = ("_live", "_recorded", "_reply", "_value")

    def __init__(self, effect: Effect) -> None:
        asks = isinstance(effect, Ask)
        self._live = not asks or effect.live
        self._recorded = asks and effect.recorded
        self._reply = Collector() if asks else None
        self._value: Any = None

    def take(self, event: Event | Done[Any]) -> bool:
        """Records an event. Returns whether it is passed on."""
        if self._recorded and self._reply is not None:
            self._reply.feed(cast("Event", event))
        elif isinstance(event, Done):
            self._value = event.value
            return False
        return self._live

    def size(self) -> int:
        """The characters that `outcome` parses."""
        return self._reply.size if self._reply is not None else 0

    def outcome(self) -> Any:
        """The outcome that is sent to the plan."""
        return self._reply.reply() if self._recorded and self._reply is not None else self._value

    def failed(self, error: ToolspeakError) -> ToolspeakError:
        """The error to raise in the plan. If a request timed out it has the reply so far."""
        if isinstance(error, LimitReached) and self._reply is not None:
            error.reply = self._reply.reply()
        return error


def _model_of(effect: Effect, model: Model, others: Mapping[str, Model] | None) -> Model:
    """The model for an effect: the one that it names, or the plan's own."""
    return (others or {})[effect.by] if isinstance(effect, Ask) and effect.by else model


def _ask(effect: Ask, model: Model, deadline: float | None) -> AsyncGenerator[Event, None]:
    """The events of a request, converted by the effect's `read`. No event is awaited beyond the deadline."""
    events = _timely(model, effect.request, deadline)
    return events if effect.read is None else _read(events, effect.read)


async def _read(
    events: AsyncGenerator[Event, None], read: Callable[[Event | None], Iterable[Event]]
) -> AsyncGenerator[Event, None]:
    """The events that `read` makes of others."""
    async with aclosing(events):
        async for event in events:
            for output in read(event):
                yield output
                if isinstance(output, Finished):  # the reply is complete: stop the model here
                    return
    for output in read(None):
        yield output


def reply_events(effect: Ask, model: Model) -> AsyncGenerator[Event, None]:
    """The events of a request whose reply is not needed. It does what a driver does, in one step per event."""
    log_effect(effect, model, logging.DEBUG)
    return _ask(effect, model, None)


async def _do(
    effect: Score | Run | Tell, model: Model, run: Runner | None, deadline: float | None
) -> AsyncGenerator[Event | Done[Any], None]:
    match effect:
        case Score(pairs):
            async with _until(deadline):
                scores = await _score(model, pairs)
            yield Done(scores)
        case Run():
            if run is None:
                raise AssertionError("this plan runs calls, and its driver was given nothing to run them with")
            async with _until(deadline):
                results = await run(effect)
            for result in results:
                yield CallResult(result)
            yield Done(results)
        case Tell(events):
            for event in events:
                yield event


def _timely(model: Model, request: Request, deadline: float | None) -> AsyncGenerator[Event, None]:
    """The model's events, bounded by the deadline and by the size of a reply."""
    if (messages := for_model(request.messages)) is not request.messages:
        request = replace(request, messages=messages)
    stream = model.stream(request)
    if deadline is None and isinstance(stream, GENERATORS):
        return within_bounds(cast("AsyncGenerator[Event, None]", stream))
    return within_bounds(_bounded(stream, deadline))


async def _bounded(stream: AsyncIterator[Event], deadline: float | None) -> AsyncGenerator[Event, None]:
    try:
        while True:
            # Only the wait for the model is bounded: the timeout must not hit while the consumer works.
            async with _until(deadline):
                event = await anext(stream)
            yield event
    except StopAsyncIteration:
        return
    finally:
        if isinstance(stream, GENERATORS):
            await stream.aclose()  # pyright: ignore[reportUnknownMemberType]


@contextlib.asynccontextmanager
async def _until(deadline: float | None) -> AsyncGenerator[None, None]:
    if deadline is None:
        yield
        return
    limit = asyncio.timeout_at(deadline)
    try:
        # A model that never awaits would never let the timeout fire, so the clock is checked as well.
        if asyncio.get_running_loop().time() >= deadline:
            raise _used_up()
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise _used_up() from error


def _used_up() -> LimitReached:
    return LimitReached("the time limit is used up", limit="seconds")


async def _score(model: Model, pairs: Sequence[tuple[str, str]]) -> list[float]:
    prompts: dict[str, list[str]] = {}
    for prompt, text in pairs:
        prompts.setdefault(prompt, []).append(text)
    turn = asyncio.Semaphore(getattr(model, "abreast", 1))  # a server may work on several prompts at once

    async def scored(prompt: str, texts: list[str]) -> dict[str, float]:
        async with turn:
            return dict(zip(texts, await score(model, prompt, texts), strict=True))

    rows = await asyncio.gather(*(scored(prompt, texts) for prompt, texts in prompts.items()))
    by_prompt = dict(zip(prompts, rows, strict=True))
    return [by_prompt[prompt][text] for prompt, text in pairs]


# ------------------------------------------------------------------ for code that does not await


_shared: Loop | None = None
_starting = threading.Lock()
_nested: contextvars.ContextVar[bool] = contextvars.ContextVar("_nested", default=False)
"""True in code that the shared loop waits for: it must not wait for the shared loop in turn."""


@contextlib.contextmanager
def waiting_loop() -> Generator[Loop, None, None]:
    """A loop that this code may wait for.

    Usually it is the shared loop, which lives as long as the process so that connections are reused. If that loop is
    waiting for this code (an async tool that calls a sync function here), it is a new loop for this one use.
    """
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


def start_on(on: Loop, work: Coroutine[Any, Any, T]) -> tuple[list[asyncio.Task[T]], threading.Event]:
    """Starts `work` on another thread's loop, in the current context. Returns a list that will hold its task, and an
    event that is set when the work ends."""
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
    """The result of a coroutine, run on a loop in another thread. Ctrl-C cancels it and waits for its cleanup."""
    with waiting_loop() as on:
        task, done = start_on(on, work)
        try:
            done.wait()
        except BaseException:
            on.loop.call_soon_threadsafe(lambda: task[0].cancel())  # noqa: PLW0108 - the task may not be made yet
            done.wait(5)
            raise
        return task[0].result()


def iterate_sync(events: AsyncGenerator[T, None]) -> Iterator[T]:
    """The items of an async generator, each produced on demand. Leaving early closes the generator."""
    items: queue.SimpleQueue[tuple[T] | BaseException | None] = queue.SimpleQueue()
    wanted = asyncio.Semaphore(0)

    async def pump() -> None:  # a single task, since timeouts and context variables belong to a task
        try:
            async with aclosing(events):
                await wanted.acquire()
                async for item in events:
                    items.put((item,))
                    await wanted.acquire()
            items.put(None)
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread as it is
            items.put(error)

    with waiting_loop() as on:
        task, done = start_on(on, pump())
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
