"""What importing costs: wall time of a fresh interpreter, median of seven, bare Python taken off."""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

PEERS = ("openai", "pydantic", "aiohttp")


def seconds(code: str, rounds: int = 7) -> float:
    """Median wall time of `python -c code`, after one run that warms the disk."""
    taken: list[float] = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def rows() -> Iterator[tuple[str, str, str]]:
    """The import of toolspeak in ms, then each peer's as a multiple of bare Python plus toolspeak."""
    bare = seconds("pass")
    ours = seconds("import toolspeak")
    yield "bare python", f"{bare * 1e3:.0f} ms", ""
    yield "import toolspeak", f"{(ours - bare) * 1e3:.1f} ms", "on top"
    for peer in PEERS:
        if importlib.util.find_spec(peer) is None:
            yield f"import {peer}", "-", "not installed"
        else:
            theirs = seconds(f"import {peer}")
            yield f"import {peer}", f"{(theirs - bare) * 1e3:.0f} ms", f"python + {peer} = {theirs / ours:.1f} × ours"
