"""Returns memory to the system after a large request.

The C library keeps freed memory for later use. A request of ten megabytes takes a hundred while it is parsed, in
several threads that each have a pool, and most of that would stay allocated. On glibc the gateway asks the library to
return it: in a thread, soon after a large request, and once for several of them.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from contextlib import suppress

LARGE = 300_000
"""Bytes of a request, of what it continues and of its response, after which memory is returned."""
SOON = 0.5
"""Seconds until it is returned. Requests that end before then share the call."""
SETTINGS = ((-8, 4), (-3, 1_000_000), (-1, 1_000_000))
"""Of glibc's malloc (malloc.h): four pools for all threads; blocks from a megabyte on by themselves, given back when
they are freed; no more than a megabyte free at the end of a pool. Left alone it raises the last two to what was freed
before."""


class Trimmer:
    """Returns memory to the system, as often as is useful."""

    def __init__(self, trim: Callable[[], object] | None = None) -> None:
        self._trim = trim or trimming()
        self._due: asyncio.TimerHandle | None = None

    def ended(self, size: int, *, ran: int = 0) -> None:
        """Note that a request ended; `size` is its bytes, with those that were read from storage for it and those of its response, `ran` the calls that ran here: the answer of
        a tool may be far larger than what is left of it."""
        if size < LARGE and not ran:
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
    """Make the C library return more memory by itself: see `SETTINGS`."""
    with suppress(AttributeError, OSError, TypeError):
        for name, value in SETTINGS:
            ctypes.CDLL(None).mallopt(name, value)
