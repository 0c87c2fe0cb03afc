"""Runs one call of one function: in a thread or on the loop, with its timeout, cancellable.

A sync function runs in its own thread with the caller's context variables, so that it cannot block the loop. The
thread is a daemon, so that a function that never returns cannot block the end of the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from io import IOBase
from typing import Any, TypeVar, cast

from .errors import ToolError, ToolTimeout
from .tool_results import message_of
from .types import Tool, ToolCall

log = logging.getLogger(__name__)
T = TypeVar("T")

EXITS = (SystemExit, KeyboardInterrupt)
"""The exceptions with which a function ends the program. A task that raises one stops its event loop."""


async def execute(tool: Tool[..., Any], call: ToolCall, positional: list[Any], named: dict[str, Any]) -> Any:
    """The return value of the tool's function. Whatever it raises becomes a ToolError, with the original as its cause.

    Raises ToolTimeout after `tool.timeout` seconds. An async function is cancelled. A sync one keeps running in its
    thread, since nothing can stop it, and the message says so.
    """
    function = tool.function
    if function is None:
        raise ToolError(f"the tool {tool.name!r} has no function: it was made from a schema alone", call=call)
    run = functools.partial(function, *positional, **named)
    scope = asyncio.timeout(tool.timeout)
    threaded = not _is_async(function)
    try:
        async with scope:
            value = await in_thread(run) if threaded else run()
            value = await value if inspect.isawaitable(value) else value
            return _readable(value)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            if threaded:
                log.warning(
                    "the tool %r was given up on; it continues in its thread, which nothing can stop", tool.name
                )
            raise
        raise ToolError(f"the tool {tool.name!r} was cancelled from inside", call=call) from error
    # sys.exit() in a tool is a failure like any other. A real Ctrl-C arrives as a cancellation instead.
    except (Exception, *EXITS, GeneratorExit) as error:
        if isinstance(error, TimeoutError) and scope.expired():
            left = "; it continues in its thread, which nothing can stop" if threaded else ""
            raise ToolTimeout(f"the tool {tool.name!r} took longer than {tool.timeout:g} s{left}", call=call) from error
        raise ToolError(_failure(tool.name, error), call=call) from error


def _readable(value: Any) -> Any:
    """The value, if it can be shown to a model. Raises TypeError for an iterator or a stream, whose content is unread."""
    kind: str = type(value).__name__
    if isinstance(value, Iterator | AsyncIterator | IOBase):
        raise TypeError(
            f"a tool returns its result, and this one returned {kind}: return a list of its items, or its content"
        )
    return value


async def in_thread(run: Callable[[], Any]) -> Any:
    """The result of `run()`, from a new thread. If this is cancelled, the thread continues and its result is dropped."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if isinstance(error, StopIteration | GeneratorExit):  # no future can pass one on
            error = RuntimeError(f"{type(error).__name__}: {error}".removesuffix(": "))
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def work() -> None:
        value: Any = None
        failed: BaseException | None = None
        try:
            value = context.run(run)
        except BaseException as error:  # noqa: BLE001 - carried over to the caller, whatever it is
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop has closed: nobody waits any more
            loop.call_soon_threadsafe(settle, value, failed)

    threading.Thread(target=work, name="toolspeak-tool", daemon=True).start()
    return await future


async def together(function: Callable[[Any], Awaitable[T]], values: Iterable[Any]) -> list[T]:
    """The results of an async function for several values at once. The first exception cancels the others, and is
    raised when they have ended."""

    async def one(value: Any) -> T:
        try:
            return await function(value)
        except EXITS as error:
            raise _Exit(error) from None

    tasks = [asyncio.create_task(one(value)) for value in values]
    try:
        return await asyncio.gather(*tasks)
    except BaseException as error:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(error, _Exit):
            raise error.error from None
        raise


class _Exit(Exception):
    """Brings one of EXITS from a task to whoever awaits it. By itself, it would stop their loop."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _is_async(function: Callable[..., Any]) -> bool:
    inner: Any = function
    while isinstance(inner, (functools.partial, staticmethod)):
        inner = cast("Any", inner).func if isinstance(inner, functools.partial) else cast("Any", inner).__func__
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))  # noqa: B004


def _failure(name: str, error: BaseException) -> str:
    text = message_of(error)
    if type(error) is not ToolError:
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    elif text.startswith("the tool "):  # the message of a remote tool is complete already
        return text
    return f"the tool {name!r} failed: {text}"
