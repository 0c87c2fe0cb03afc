"""Streaming a call, 4 characters a chunk: CPU time a chunk, against keeping the text and trying json.loads on each.

    python benchmarks/run.py decode

For each dialect a call with a long string argument of plain words, of source code, and with a dense list;
then a text without a call. Keeping the text and parsing it anew is what a caller without a streaming decoder
does: it is quadratic, so it is measured on a twentieth of the text, in the same run, and told as a ratio.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from toolspeak.dialects import get, names
from toolspeak.types import Tool, ToolCall
from toolspeak.wire.decode import Decoder
from toolspeak.wire.syntax import Dialect
from toolspeak.wire.write import write_calls

SIZE = 50_000
CHUNK = 4
WORDS = "the quick brown fox jumps over the lazy dog and "
CODE = "def handler(request):  # returns 'ok' if a < b\n    return {\"k\": [1, 2]}\n"
TOOLS = (Tool("f"),)


def rows() -> Iterator[tuple[str, str, str]]:
    """(what, microseconds a chunk, growth and ratio)."""
    for name in names():
        d = get(name)
        for kind in ("words", "code", "list"):
            text, twice, part = (wire(d, kind, n) for n in (SIZE, 2 * SIZE, SIZE // 20))
            once = seconds(partial(stream, d, text))
            growth = seconds(partial(stream, d, twice)) / once
            whole = seconds(partial(stream, d, ["".join(text)])) * 1e3
            ratio = seconds(partial(again, part), 1) / seconds(partial(stream, d, part))
            note = f"x{growth:.1f} for twice as much; whole {whole:.2f} ms; json again and again costs {ratio:.0f} times that"
            yield f"{name}, {kind}", f"{once / len(text) * 1e6:.2f} us", note
        text = chunks(str(value("words", SIZE)))
        yield f"{name}, no call", f"{seconds(partial(stream, d, text)) / len(text) * 1e6:.2f} us", ""


def wire(d: Dialect, kind: str, size: int) -> list[str]:
    return chunks(write_calls([ToolCall("c", "f", {"s": value(kind, size)})], d))


def value(kind: str, size: int) -> object:
    unit = {"words": WORDS, "code": CODE}.get(kind)
    return (unit * (size // len(unit) + 1))[:size] if unit else [[i, "ab", {"k": True}] for i in range(size // 24)]


def chunks(text: str) -> list[str]:
    return [text[i : i + CHUNK] for i in range(0, len(text), CHUNK)]


def seconds(work: Callable[[], object], tries: int = 3) -> float:
    best = float("inf")
    for _ in range(tries):
        begin = process_time()
        work()
        best = min(best, process_time() - begin)
    return best


def stream(d: Dialect, pieces: list[str]) -> None:
    decoder = Decoder(d, TOOLS)
    for piece in pieces:
        decoder.feed(piece)
    decoder.close()


def again(pieces: list[str]) -> None:
    """The peer: keep the text, try to parse it whenever some more has come."""
    text = ""
    for piece in pieces:
        text += piece
        try:
            json.loads(text)
        except ValueError:
            continue
