"""A table put to a model: rows a second, beside the loop that one writes with a pool of threads.

The model of the first rows answers at once in this process, so that they show what a row costs by itself: prompt, parsing,
checks, journal, shard. The others ask a server on loopback that answers every request with the same call. Rates are of
processor time, with those on the clock beside them: other work on the machine slows down the clock's alone.

ROWS are the numbers of rows at which memory is measured, each in a process of its own: ROWS=10000,1000000.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import toolspeak as ts
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.schema.infer import as_tools
from toolspeak.types import Request

ROWS, SERVED = 5_000, 1_000
SIZES = tuple(map(int, os.environ.get("ROWS", "10000,50000").split(",")))
REPLY = '<tool_call>\n{"name": "weather1", "arguments": {"city": "Xiamen", "days": 5}}\n</tool_call>'
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather1", "arguments": '{"city": "Xiamen", "days": 5}'},
}
COMPLETION = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "tool_calls",
                 "message": {"role": "assistant", "content": None, "tool_calls": [CALL]}}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
}  # fmt: skip


class Instant:
    """A text model that answers at once."""

    name = "instant"
    capabilities: frozenset[str] = frozenset()

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        yield TextDelta(REPLY)
        yield Finished("stop")


def tool(number: int) -> Callable[..., str]:
    def weather(city: str, days: int = 3, unit: str = "celsius") -> str:
        """Get the current weather in a city."""
        return ""

    weather.__name__ = f"weather{number}"
    return weather


TOOLS = [tool(number) for number in range(5)]


def table(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"id": number, "text": f"Weather in city {number}?"}


@dataclass(frozen=True, slots=True)
class Rate:
    """Rows a second: of the processor time of this process, and on the clock."""

    processor: float
    clock: float

    def __str__(self) -> str:
        return f"{self.processor:,.0f}"

    @property
    def note(self) -> str:
        """What stands beside it."""
        return f"a second of processor time; {self.clock:,.0f} a second on the clock"


def rate(work: Callable[[int], object], count: int) -> Rate:
    """How fast this process does the work."""
    processor, clock = time.process_time(), time.perf_counter()
    work(count)
    return Rate(count / (time.process_time() - processor), count / (time.perf_counter() - clock))


def decided(count: int) -> None:
    model = ts.model(Instant(), dialect="hermes")  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as out:
        ts.batch(table(count), Path(out) / "out", tools=TOOLS, model=model)


def parsed(count: int) -> None:
    tools, dialect = as_tools(TOOLS), ts.dialect("hermes")
    for _ in range(count):
        ts.parse(REPLY, dialect, tools)


def batch_over_http(port: int) -> Callable[[int], None]:
    def work(count: int) -> None:
        with tempfile.TemporaryDirectory() as out:
            summary = ts.batch(table(count), Path(out) / "out", tools=TOOLS, model=f"http://127.0.0.1:{port}/v1#m")
            assert summary.errors == 0

    return work


def loop_over_http(port: int) -> Callable[[int], None]:
    """What one writes: OpenAI's SDK, 16 threads, a line a row; no checks, no journal, nothing to go on from."""
    from openai import OpenAI

    described = [{"type": "function", "function": spec} for spec in ts.Toolbox(*TOOLS).list()]

    def work(count: int) -> None:
        client = OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")

        def ask(row: dict[str, Any]) -> str:
            messages = [{"role": "user", "content": row["text"]}]
            made = client.chat.completions.create(model="m", messages=messages, tools=described)  # type: ignore[arg-type]
            calls = [json.loads(call.function.arguments) for call in made.choices[0].message.tool_calls or ()]  # type: ignore[union-attr]
            return json.dumps({"id": row["id"], "calls": calls})

        with tempfile.TemporaryFile("w") as out, ThreadPoolExecutor(16) as pool:
            out.writelines(line + "\n" for line in pool.map(ask, table(count)))

    return work


def rows() -> Iterator[tuple[str, str, str]]:
    """What each costs."""
    decided(100)
    for what, work in (("decide, five tools in a dialect", decided), ("parse alone", parsed)):
        made = rate(work, ROWS)
        yield what, str(made), f"rows {made.note}"
    for count in SIZES:
        done = subprocess.run([sys.executable, __file__, str(count)], capture_output=True, text=True, check=True)
        yield f"decide, {count:,} rows", *done.stdout.strip().split("\t")
    server = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        ours, theirs = rate(batch_over_http(port), SERVED), rate(loop_over_http(port), SERVED)
        yield "over HTTP", str(ours), f"rows {ours.note}"
        times = ours.processor / theirs.processor
        yield (
            "over HTTP, a loop with OpenAI's SDK",
            str(theirs),
            f"rows {theirs.note}; toolspeak is {times:.1f} times as fast",
        )
    finally:
        server.terminate()
        server.wait()


# ------------------------------------------------------------------ the server


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers each request of a connection with the same body."""
    body = json.dumps(COMPLETION).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    try:
        while True:
            request = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = request.partition(b"content-length:")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            writer.write(head + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measured = rate(decided, int(sys.argv[1]))
        print(
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB",
            f"at most; {measured} rows {measured.note}",
            sep="\t",
        )
    else:
        asyncio.run(serve())
