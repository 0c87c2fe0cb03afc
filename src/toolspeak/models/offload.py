"""Work that takes long is done in a thread, so that an event loop goes on with everything else meanwhile.

What takes long is known beforehand by its size in characters: a prompt is rendered, and a reply judged, in about a
microsecond a character. A thread shares the interpreter with the loop, which gets its turn between steps of Python
code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from ..errors import ToolspeakError
from ..plan.effects import Effect, Plan
from ..types import Reply, Request

P = ParamSpec("P")
T = TypeVar("T")

LARGE = 100_000
"""Characters from which on work is done in a thread."""
PART = 50
"""Characters as which a message, a part or a call counts beside its text."""


async def offloaded(size: int, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """What `work` gives, done in a thread where it is about `size` characters or more than LARGE."""
    return work(*args, **options) if size < LARGE else await asyncio.to_thread(work, *args, **options)


class PlanEnd(Exception):
    """A plan has ended, with a value. A StopIteration cannot be raised by a thread's work."""

    def __init__(self, value: Any) -> None:
        self.value = value


async def next_effect(plan: Plan[Any], outcome: Any, failure: ToolspeakError | None) -> Effect:
    """The next effect of a plan that is told an outcome, or a failure. Raises PlanEnd. A long reply takes long to
    judge."""

    def step() -> Effect:
        try:
            return plan.throw(failure) if failure else plan.send(outcome)
        except StopIteration as end:
            raise PlanEnd(end.value) from None

    return await offloaded(reply_size(outcome) if isinstance(outcome, Reply) else 0, step)


def close_plan(plan: Plan[Any]) -> None:
    """Ends a plan. One that is left behind in a thread ends there."""
    if not getattr(plan, "gi_running", False):
        plan.close()


def request_size(request: Request) -> int:
    """About how many characters a request has, counted no further than LARGE; tools are known by their number."""
    size = len(request.prompt or "") + PART * len(request.tools or ())
    for message in request.messages:
        size += PART + sum(_length(value) for value in message.values())
        if size >= LARGE:
            break
    return size


def reply_size(reply: Reply) -> int:
    """How many characters a reply has."""
    return len(reply.text) + len(reply.thought) + sum(PART + len(call.json) for call in reply.calls)


def _length(value: Any) -> int:
    """The characters of a content: a text, parts, or calls."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(_length(one) for one in cast("dict[str, Any]", value).values())
    return sum(PART + _length(one) for one in cast("list[Any]", value)) if isinstance(value, list) else 0
