"""Streaming one call in every dialect, 4 characters a chunk: CPU time a chunk for words, code, a dense list; and a text.

    make bench-decode

An argument of 100 KB. Growth is the exponent from 10 KB to 1 MB: 1 is linear, 2 quadratic. `whole` is `parse` of the
same text in one piece. All times are told as on a machine where json.loads of the code's call takes 117 us, so that
they can be put beside those of engines that were measured there. What a caller without a streaming decoder does
is to parse the growing text anew at each chunk: that is measured in the same run, on texts short enough to end.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from math import log10
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from toolspeak.dialects import get, names
from toolspeak.types import Tool, ToolCall
from toolspeak.wire.decode import Decoder, parse
from toolspeak.wire.dialect import Dialect, Raw
from toolspeak.wire.prompt.calls import write_calls

KB = 1_000
SIZE, SMALL, LARGE = 100 * KB, 10 * KB, 1_000 * KB
CHUNK = 4
FLOOR = 117e-6
"""Seconds that json.loads takes for 100 KB of code, which are 114 KB of JSON, on the machine whose times are told."""
MOST = {"words": 0.3, "code": 0.8, "list": 2.5}
"""Microseconds a chunk that the house allows itself, for each kind of argument."""
STEEPEST = 1.05
WHOLE = 274e-6
"""Seconds that the fastest engine takes for the whole text of a hermes call with 100 KB of code."""
WORDS = "the quick brown fox jumps over the lazy dog and "
CODE = 'def handle(item):\n    return {"key": [1], "name": "abc"}\n'
SCHEMA = {"type": "object", "properties": {"s": {"type": "string"}, "l": {"type": "array"}}}
TOOLS = (Tool("f", "", SCHEMA),)
ENGINES = [
    ("vLLM 0.33, hermes", "12.5 / 20.1 / 86.4", "274 us whole"),
    ("vLLM 0.33, qwen3_coder", "11.0 / 10.0 / 10.2", "66,372 us whole"),
    ("vLLM 0.33, kimi_k2", "16.9 / 17.0 / 17.5", "1,192,427 us whole"),
    ("vLLM 0.33, glm47", "9.0 / 8.1 / 8.2", "18,234 us whole"),
    ("vLLM 0.33, minimax_m2", "13.5 / 12.7 / 12.7", "129,690 us whole"),
    ("vLLM 0.33, deepseekv31", "10.6 / 41.9 / ~357", "35 us whole, JSON not parsed"),
    ("vLLM 0.33, pythonic", "57.0 / 340.7 / ~3178", "fails"),
    ("SGLang 0.5.23, hermes", "76.3 / 689.0 / ~7447", "814 us whole"),
    ("SGLang 0.5.23, qwen3_coder", "1.9 / 5.0 / 36.9", "3,492 us whole; the value is not streamed"),
    ("SGLang 0.5.23, kimi_k2", "2.9 / 4.8 / 21.6", "498 us whole; wrong where a marker is cut"),
    ("SGLang 0.5.23, deepseekv31", "11.3 / 81.5 / 786.7", "1,127 us whole; wrong where a marker is cut"),
    ("SGLang 0.5.23, gpt_oss", "6.6 / 10.0 / 43.6", "1,404 us whole; the value is not streamed"),
]
"""(engine and its parser, us a chunk at 1, 10 and 100 KB of code, the whole text): the engines' own parsers, fed one
call in chunks of 4 characters, on 2 cores of an AMD EPYC with CPython 3.11; ~ is extrapolated."""


def rows() -> Iterator[tuple[str, str, str]]:
    """(what, microseconds a chunk, the rest): each dialect, then peers, then engines."""
    loads = json.dumps({"s": value("code", SIZE)})
    factor = least(partial(json.loads, loads), 50) / FLOOR
    yield (
        "this machine",
        f"x{factor:.2f}",
        "times below are divided by this: json.loads of the code's call against 117 us",
    )
    over = 0
    for name in names():
        result = Result(get(name), factor)
        over += not result.good
        yield name, result.speed, result.rest
    yield (
        "dialects over a limit",
        str(over),
        f"words {MOST['words']}, code {MOST['code']}, list {MOST['list']} us; growth {STEEPEST}",
    )
    yield from peers(factor)
    for engine, speed, rest in ENGINES:
        yield engine, speed, f"us a chunk at 1 / 10 / 100 KB of code, not of this run; {rest}"


class Result:
    """What one dialect costs: `speed` for words / code / list / a text without a call, in us a chunk; `rest` in words."""

    def __init__(self, d: Dialect, factor: float) -> None:
        raw = any(isinstance(part, Raw) for part in d.call)
        kinds = ("words", "code") if raw else ("words", "code", "list")
        speeds = {kind: feeding(d, wire(d, kind, SIZE)) / factor * 1e6 for kind in kinds}
        steep = {kind: exponent(d, kind) for kind in kinds}
        whole = {kind: least(partial(parse, wire(d, kind, SIZE), d, TOOLS), 5) / factor for kind in kinds}
        text = feeding(d, str(value("words", SIZE))) / factor * 1e6
        late = [f"{kind} {speeds[kind]:.2f} us" for kind in kinds if round(speeds[kind], 2) > MOST[kind]]
        late += [f"{kind} grows ^{steep[kind]:.2f}" for kind in kinds if round(steep[kind], 2) > STEEPEST]
        if d.name == "hermes" and whole["code"] > WHOLE:
            late.append(f"whole {whole['code'] * 1e6:.0f} us")
        self.good = not late
        self.speed = " / ".join(f"{us:.2f}" for us in speeds.values()) + f" / {text:.2f}"
        growth, times = (
            " / ".join(f"{row[k]:.2f}" for k in kinds) for row in (steep, {k: whole[k] * 1e3 for k in kinds})
        )
        verdict = "PASS" if self.good else f"over: {', '.join(late)}"
        self.rest = f"growth ^{growth}; whole {times} ms; {verdict}"


def exponent(d: Dialect, kind: str) -> float:
    """How time grows from 10 KB to 1 MB; what is over the limit is measured again, as another process may have run."""
    steepest = float("inf")
    for _ in range(3):
        times = [feeding(d, wire(d, kind, n), tries) for n, tries in ((SMALL, 5), (LARGE, 1))]
        lengths = [len(wire(d, kind, n)) for n in (SMALL, LARGE)]
        steepest = min(steepest, 1 + log10(times[1] / times[0]) / log10(lengths[1] / lengths[0]))
        if steepest <= STEEPEST:
            break
    return steepest


@cache
def wire(d: Dialect, kind: str, size: int) -> str:
    """A call as the dialect writes it, with one argument of that kind and about that size in JSON."""
    holes = [part for part in d.call if isinstance(part, Raw)]
    if holes:
        return write_calls([ToolCall("c", holes[0].tool, {holes[0].key: value(kind, size)})], d)
    return write_calls([ToolCall("c", "f", {"l" if kind == "list" else "s": value(kind, size)})], d)


def value(kind: str, size: int) -> Any:
    unit = {"words": WORDS, "code": CODE}.get(kind)
    return (unit * (size // len(unit) + 1))[:size] if unit else [[i, "ab", {"k": True}] for i in range(size // 24)]


def feeding(d: Dialect, text: str, tries: int = 3) -> float:
    """Seconds a chunk."""
    pieces = [text[i : i + CHUNK] for i in range(0, len(text), CHUNK)]

    def stream() -> None:
        feed = (decoder := Decoder(d, TOOLS)).feed
        for piece in pieces:
            feed(piece)
        decoder.close()

    return least(stream, tries) / len(pieces)


def least(work: Callable[[], object], tries: int) -> float:
    best = float("inf")
    for _ in range(tries):
        gc.collect()
        begin = process_time()
        work()
        best = min(best, process_time() - begin)
    return best


def peers(factor: float) -> Iterator[tuple[str, str, str]]:
    """Partial JSON parsers on the growing text of the arguments alone, at each chunk."""
    for name, parser, sizes in (
        ("jiter, again at each chunk", _jiter, (1, 10, 100)),
        ("partial-json-parser, the same", _partial, (1, 10)),
        ("json_repair, the same", _repair, (1,)),
    ):
        try:
            read = parser()
        except ImportError:
            yield name, "-", "not installed"
            continue
        for kind in MOST:
            times = [again(read, kind, size * KB) / factor * 1e6 for size in sizes]
            at = " / ".join(map(str, sizes))
            yield f"{name}, {kind}", " / ".join(f"{us:.1f}" for us in times), f"us a chunk at {at} KB; quadratic"


def again(read: Callable[[str], object], kind: str, size: int) -> float:
    """Seconds a chunk; of a long text a tenth of the chunks is parsed, evenly chosen."""
    text = json.dumps({"v": value(kind, size)})
    ends = range(CHUNK, len(text) + CHUNK, CHUNK)[:: 10 if size > KB else 1]

    def work() -> None:
        for end in ends:
            read(text[:end])

    return least(work, 1) / len(ends)


def _jiter() -> Callable[[str], object]:
    import jiter

    return lambda text: jiter.from_json(text.encode(), partial_mode="trailing-strings")


def _partial() -> Callable[[str], object]:
    import partial_json_parser

    return lambda text: partial_json_parser.loads(text) if len(text) > 1 else None


def _repair() -> Callable[[str], object]:
    import json_repair

    return json_repair.loads
