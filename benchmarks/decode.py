"""What streaming a call costs, in microseconds of CPU a chunk of 4 characters, beside re-parsing with json at each chunk.

    python benchmarks/decode.py [characters]

For each dialect: one call with a string argument of that many characters (plain words, then source code)
and one with a dense list; then a plain text. `growth` is the time for twice as much over the time for
it. The last column is what a caller pays who keeps the whole text and tries json.loads on every chunk, as a
ratio to ours, measured in the same run on a twentieth of the text (it is quadratic).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from toolspeak.dialects import get, names
from toolspeak.types import Tool, ToolCall
from toolspeak.wire.decode import Decoder
from toolspeak.wire.syntax import Dialect
from toolspeak.wire.write import write_calls

CHUNK = 4
WORDS = "the quick brown fox jumps over the lazy dog and "
CODE = "def handler(request):  # returns 'ok' if a < b\n    return {\"k\": [1, 2]}\n"
TOOLS = (Tool("f"),)


def chunks_of(text: str) -> list[str]:
    return [text[i : i + CHUNK] for i in range(0, len(text), CHUNK)]


def seconds(work: Callable[[], object], tries: int = 3) -> float:
    best = float("inf")
    for _ in range(tries):
        begin = process_time()
        work()
        best = min(best, process_time() - begin)
    return best


def stream(d: Dialect, chunks: list[str]) -> None:
    decoder = Decoder(d, TOOLS)
    for chunk in chunks:
        decoder.feed(chunk)
    decoder.close()


def reparse(chunks: list[str]) -> None:
    """The floor of those who keep the text and parse it anew each time."""
    text = ""
    for chunk in chunks:
        text += chunk
        try:
            json.loads(text)
        except ValueError:
            continue


def value(kind: str, size: int) -> object:
    unit = {"words": WORDS, "code": CODE}.get(kind)
    return (unit * (size // len(unit) + 1))[:size] if unit else [[i, "ab", {"k": True}] for i in range(size // 24)]


def main(size: int) -> None:
    print(f"{'dialect':16}{'argument':9}{'us/chunk':>9}{'growth':>8}{'whole ms':>10}{'json again':>12}")
    for name in names():
        d = get(name)
        for kind in ("words", "code", "list"):
            text, twice, part = (write_calls([ToolCall("c", "f", {"s": value(kind, n)})], d) for n in (size, 2 * size, size // 20))
            once = seconds(lambda t=text: stream(d, chunks_of(t)))
            growth = seconds(lambda t=twice: stream(d, chunks_of(t))) / once
            whole = seconds(lambda t=text: stream(d, [t]))
            small = chunks_of(part)
            ratio = seconds(lambda c=small: reparse(c), 1) / seconds(lambda c=small: stream(d, c))
            each = once / len(chunks_of(text)) * 1e6
            print(f"{name:16}{kind:9}{each:9.2f}{growth:8.1f}{whole * 1e3:10.2f}{ratio:11.0f}x")
        text = chunks_of(str(value("words", size)))
        print(f"{name:16}{'no call':9}{seconds(lambda c=text: stream(d, c)) / len(text) * 1e6:9.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
