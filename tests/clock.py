"""Time that a test moves by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Clock:
    """Gives `now`, in seconds."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    async def until(self, true: Callable[[], object], step: float = 0.0) -> None:
        """Lets everything else run until something is true; each turn of the loop takes `step` seconds."""
        while not true():
            self.now += step
            await asyncio.sleep(0)


@contextmanager
def held_time() -> Iterator[Clock]:
    """Stops the clock of the running event loop: its timers fall due when the test says so, however slow the machine is.
    Afterwards it goes on from where it was moved to."""
    loop = asyncio.get_running_loop()
    real = loop.time
    clock = Clock(real())
    loop.time = clock  # type: ignore[method-assign]
    try:
        yield clock
    finally:
        ahead = clock.now - real()
        loop.time = lambda: real() + ahead  # type: ignore[method-assign]
