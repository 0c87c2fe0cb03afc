"""How time grows with the length of a text, measured so that what else the machine does hardly matters."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from statistics import median
from time import process_time
from typing import Any

from toolspeak.types import Tool
from toolspeak.wire.decode import Decoder
from toolspeak.wire.syntax import Dialect

MOST = 2.6
"""Twice as much text takes at most this many times as long; what is quadratic takes four."""
ENOUGH = 0.002
"""Seconds of CPU that the smaller text takes at least: what is faster is measured on more of it, up to a megabyte."""
TRIES = 4
"""Another process may have been in the way: the least of so many measurements counts."""


def seconds(d: Dialect, text: str, size: int, tools: Sequence[Tool[..., Any]] | None) -> float:
    """CPU time of reading the text in pieces of `size` characters, 0 for all at once."""
    size = size or len(text)
    chunks = [text[i : i + size] for i in range(0, len(text), size)]
    decoder = Decoder(d, tools)
    begin = process_time()
    for chunk in chunks:
        decoder.feed(chunk)
    decoder.close()
    return process_time() - begin


def growth(d: Dialect, make: Callable[[int], str], size: int, tools: Sequence[Tool[..., Any]] | None) -> float:
    """time(2n) / time(n), n being as large as the budget allows: the least of some medians of three."""
    n = 400
    while n < 500_000 and seconds(d, make(n), size, tools) < ENOUGH:
        n *= 2
    small, large = make(n), make(2 * n)
    least = float("inf")
    gc.disable()
    try:
        for _ in range(TRIES):
            ratios = [seconds(d, large, size, tools) / seconds(d, small, size, tools) for _ in range(3)]
            least = min(least, median(ratios))
            if least <= MOST:
                break
    finally:
        gc.enable()
    return least
