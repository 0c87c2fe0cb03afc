"""Gives memory back to the system after a large request.

The C library keeps what was freed for later. A request of ten megabytes takes a hundred while it is read, in several
threads, each with a pool of its own, and most of that would stay. Where the library can be asked to give it back
(glibc), it is: in a thread, soon after a large request, and for many of them once.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from contextlib import suppress

LARGE = 300_000
"""Bytes of a request or an answer after which memory is given back."""
SOON = 0.5
"""Seconds after which it is: what ends until then is part of it."""
SETTINGS = ((-8, 4), (-3, 1_000_000), (-1, 1_000_000))
"""Of glibc's malloc (malloc.h): four pools for all threads; blocks from a megabyte on by themselves, given back when
they are freed; no more than a megabyte free at the end of a pool. Left alone it raises the last two to what was freed
before."""


class Trimmer:
    """Gives memory back to the system, as often as is useful."""

    def __init__(self, trim: Callable[[], object] | None = None) -> None:
        self._trim = trim or trimming()
        self._due: asyncio.TimerHandle | None = None

    def ended(self, size: int) -> None:
        """A request is over that was so many bytes with its answer."""
        if size < LARGE:
            return
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(SOON, self._begin)

    def _begin(self) -> None:
        self._due = None
        asyncio.get_running_loop().run_in_executor(None, self._trim)


def trimming() -> Callable[[], object]:
    """What gives memory back: a call of the C library that other threads need not wait for."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # no glibc
        return lambda: None
    return lambda: trim(0)


def set_up_malloc() -> None:
    """Has the C library give back more by itself: see `SETTINGS`."""
    with suppress(AttributeError, OSError, TypeError):
        for name, value in SETTINGS:
            ctypes.CDLL(None).mallopt(name, value)
