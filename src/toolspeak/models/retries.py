"""Decides which errors of a model are worth a retry and how long to wait, and runs the retries."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from typing import TypeVar

from ..errors import ModelError, ModelUnreachable, RateLimited, ServerFailed, StreamCut

FIRST, LONGEST = 0.5, 8.0
"""Seconds: the bound of the first pause, which doubles, and of every pause without a Retry-After."""

PATIENCE = 60.0
"""The longest Retry-After in seconds that is waited for. A longer one is reported to the caller instead."""

LASTING = frozenset({501, 505})
"""The 5xx statuses that a retry does not change."""

T = TypeVar("T")
log = logging.getLogger(__name__)

Wait = Callable[[ModelError, int], float | None]
"""Returns the seconds to wait after an error and so many attempts, None for no further attempt."""


async def retrying(attempt: Callable[[], AsyncGenerator[T]], wait: Wait) -> AsyncGenerator[T]:
    """Yield the items of an attempt. If it fails before its first item, try again after the seconds that `wait`
    returns."""
    for tried in count(1):
        begun = False
        try:
            async with aclosing(attempt()) as items:
                async for item in items:
                    begun = True
                    yield item
            return
        except ModelError as error:
            seconds = None if begun else wait(error, tried)
            if seconds is None:
                raise
        await asyncio.sleep(seconds)


async def retried(
    work: Callable[[], Awaitable[T]], wait: Wait, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> T:
    """Return the result of work with a single outcome, with the same retries. `sleep` waits between them."""
    for tried in count(1):
        try:
            return await work()
        except ModelError as error:
            seconds = wait(error, tried)
            if seconds is None:
                raise
        await sleep(seconds)
    raise AssertionError("there is always another try, or an error")


def at_most(retries: int) -> Wait:
    """Return the Wait of a client that sends a request again at most `retries` times."""

    def wait(error: ModelError, tried: int) -> float | None:
        seconds = pause(error, tried) if tried <= retries else None
        if seconds is not None:
            log.info("%s; asking again in %.1f s", error, seconds)
        return seconds

    return wait


def pause(error: ModelError, tried: int) -> float | None:
    """Return the seconds before the next attempt after `tried` attempts, None if a retry is of no use.

    With full jitter: any value between zero and the bound, so that many clients do not retry at the same time.
    """
    if not passing(error):
        return None
    wait = error.retry_after if isinstance(error, (RateLimited, ServerFailed)) else None
    if wait is None:
        return backoff(tried)
    return wait + random.uniform(0, min(0.25, wait)) if wait <= PATIENCE else None


def backoff(tried: int) -> float:
    """Return the seconds before the next attempt after `tried` attempts, if the server does not name them."""
    return random.uniform(0, min(LONGEST, FIRST * 2 ** min(tried - 1, 10)))


def passing(error: ModelError) -> bool:
    """Whether an error may be gone at the next attempt."""
    if isinstance(error, ModelUnreachable):
        return not error.timed_out  # a retry would only add load to a server that is too slow
    if isinstance(error, RateLimited):
        return "insufficient_quota" not in str(error) and "exceeded your current quota" not in str(error)
    if isinstance(error, ServerFailed):
        return error.code == 408 or (error.code >= 500 and error.code not in LASTING)
    return isinstance(error, StreamCut)


def retry_after(header: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds in a `Retry-After` header, a number or an HTTP date; None for anything else."""
    text = (header or "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
        except (ValueError, IndexError):
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (date - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if seconds == seconds and seconds < 1e9 else None
