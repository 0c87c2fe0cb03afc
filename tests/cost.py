"""What work costs, compared within one run: against twice as much of the same, or against work that is known.

CPU time is compared, not what a clock shows. A comparison that fails is measured again, since another process may
have emptied the caches. Work that costs too much fails every time.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import process_time
from types import FrameType
from typing import Any

from toolspeak.wire.reading import marks

TRIES = 6
LINEAR = 2.7
"""Twice as much work costs at most this many times as much; quadratic work costs four times as much."""
ENOUGH = 0.002
"""Seconds of CPU that the smaller work takes at least, so that the clock's steps do not matter."""
COMPILERS = frozenset(make.__code__ for make in (re.compile, marks._alternatives))
"""What makes patterns."""


def seconds(work: Callable[[], Any]) -> float:
    """The CPU time of the work, done once, never 0."""
    begin = process_time()
    work()
    return max(process_time() - begin, 1e-6)


def growth(
    work: Callable[[int], Callable[[], Any]], start: int = 400, most: int = 500_000, limit: float = LINEAR
) -> float:
    """cost(2n) / cost(n): the least of some medians of three. `work(n)` prepares work of size n.

    What is above the limit is measured at twice the size as well: a step, where memory leaves a cache, is met once, and
    quadratic work grows as fast everywhere.
    """
    size = start
    work(size)()  # the first time loads and fills what later times find
    while size < most and seconds(work(size)) < ENOUGH:
        size *= 2
    small, large = work(size), work(2 * size)
    least = float("inf")
    with _no_collection():
        for attempt in range(TRIES):
            if attempt == TRIES // 2:
                small, large = large, work(4 * size)
            least = min(least, median(seconds(large) / seconds(small) for _ in range(3)))
            if least <= limit:
                break
    return least


def costs_at_most(times: float, work: Callable[[], Any], known: Callable[[], Any]) -> bool:
    """Whether the work costs at most so many times what the known work costs."""
    return any(seconds(work) <= times * seconds(known) for _ in range(TRIES))


def calls(work: Callable[[], Any]) -> int:
    """How many functions the work calls, generators woken among them; those written in C do not count.

    Nor does what compiles a pattern, which is done once and kept: it comes in the first work that searches enough, and which
    that is depends on the tests before. So every pattern is compiled at its first use here.
    """
    count, compiling, worth = 0, None, marks.WORTH

    def seen(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count, compiling
        if compiling is None and event == "call":
            compiling = frame if frame.f_code in COMPILERS else None
            count += compiling is None
        elif compiling is frame and event == "return":
            compiling = None

    marks.WORTH = 0
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
        marks.WORTH = worth
    return count


@contextmanager
def _no_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
