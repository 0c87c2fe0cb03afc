"""Runs long computations in a thread, so that the event loop can serve others meanwhile.

The duration is estimated by size in characters: rendering a prompt, and checking a reply, take about a microsecond per
character. What a schema multiplies is added. The thread shares the interpreter with the loop, which gets its turn between steps of Python code.

There are two such threads in a process. Threads with Python code take turns of 5 ms, so the loop, which waits for the
interpreter several times in one request, waits for all of them each time: with six, a third of a second. More threads
compute nothing sooner. Short work has a thread of its own, so that it does not wait for long work of others.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, ParamSpec, TypeVar, cast

from ..errors import ToolspeakError
from ..plan.effects import Ask, Effect, Plan
from ..schema.validators import check_cost, known_length
from ..tool_results import plain_size, result_text
from ..types import Reply, Request

P = ParamSpec("P")
T = TypeVar("T")

LARGE = 100_000
"""The size in characters from which work runs in a thread."""
LONG = 1_000_000
"""The size from which it runs in the thread for long work."""
ALTERNATIVES = 20
"""The alternatives to a token that its likelihood counts as."""
PART = 50
"""The overhead in characters that a message, a part or a call counts besides its text."""


async def offloaded(size: int, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Return the result of `work`, run in a thread if its `size` in characters is at least LARGE."""
    if size < LARGE:
        return work(*args, **options)
    if _offloading.get():
        return await asyncio.to_thread(work, *args, **options)
    context = contextvars.copy_context()
    context.run(_offloading.set, True)
    thread = _thread(os.getpid(), long=size >= LONG)
    return await asyncio.get_running_loop().run_in_executor(thread, partial(context.run, work, *args, **options))


_offloading: contextvars.ContextVar[bool] = contextvars.ContextVar("_offloading", default=False)
"""True in code that runs in one of the threads. Such code may wait for other work (a validator that asks a model): that
needs another thread."""


@cache
def _thread(process: int, *, long: bool) -> ThreadPoolExecutor:
    """Return the thread for short or for long work. Each process has its own: threads do not survive a fork."""
    return ThreadPoolExecutor(1, f"toolspeak-{'long' if long else 'short'}-work-{process}")


async def model_text(value: Any, limit: int | None) -> str:
    """Return a tool's result as the text for a model, written in a thread if it is large plain data."""
    return await offloaded(plain_size(value), result_text, value, limit)


class PlanEnd(Exception):
    """A plan has ended with a value. A thread's function cannot raise StopIteration."""

    def __init__(self, value: Any) -> None:
        self.value = value


async def next_effect(
    plan: Plan[Any], outcome: Any, failure: ToolspeakError | None, effect: Effect | None = None
) -> Effect:
    """Send an outcome, or raise a failure, in a plan and return its next effect. Raises PlanEnd. A long reply takes
    long to check, and so does a short one whose schema has many alternatives. `effect` is the one with this outcome."""
    size = reply_size(reply := cast("Reply", outcome)) + _checking(reply, effect) if isinstance(outcome, Reply) else 0
    return await offloaded(size, _advanced, plan, outcome, failure)


def _advanced(plan: Plan[Any], outcome: Any, failure: ToolspeakError | None) -> Effect:
    try:
        return plan.throw(failure) if failure else plan.send(outcome)
    except StopIteration as end:
        raise PlanEnd(end.value) from None


def close_plan(plan: Plan[Any]) -> None:
    """Close a plan. A plan that is still running in a thread ends there."""
    if not getattr(plan, "gi_running", False):
        plan.close()


def request_size(request: Request) -> int:
    """Estimate the characters of a request, counted no further than LONG; tools count by their number."""
    size = len(request.prompt or "") + PART * len(request.tools or ())
    for message in request.messages:
        size += PART
        for value in message.values():
            size += len(value) if isinstance(value, str) else content_size(value)
        if size >= LONG:
            break
    return size


def prompt_size(request: Request) -> int:
    """Estimate the characters of a request as a prompt, in which the schemas of tools are written out."""
    schemas = sum(known_length(tool.parameters) for tool in request.tools) if request.tools else 0
    return request_size(request) + schemas


def reply_size(reply: Reply) -> int:
    """Return the number of characters of a reply."""
    likelihoods = ALTERNATIVES * PART * len(reply.logprobs)
    return (
        len(reply.text)
        + len(reply.thought)
        + likelihoods
        + sum(PART + len(call.name) + len(call.json) for call in reply.calls)
    )


def _checking(reply: Reply, effect: Effect | None) -> int:
    """Return what the schemas of a reply's calls and of its text add to the cost of its characters."""
    if not isinstance(effect, Ask):
        return 0
    request = effect.request
    cost = check_cost(request.schema, len(reply.text)) if request.schema else 0
    if reply.calls:
        tools = {tool.name: tool for tool in request.tools or ()}
        called = ((tools.get(call.name), len(call.json)) for call in reply.calls)
        cost += sum(check_cost(tool.parameters, length) for tool, length in called if tool)
    return cost


def content_size(value: Any) -> int:
    """Return the characters of a content: a text, parts, or calls."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(content_size(one) for one in cast("dict[str, Any]", value).values())
    return sum(PART + content_size(one) for one in cast("list[Any]", value)) if isinstance(value, list) else 0
