"""A batch in a process that is going to be killed: each row that is asked is written down first, for the test to count.

python kill_worker.py ROWS OUT ASKED PAUSE

For each line that it reads, a fork of it works on the batch: what a process loads before its first row takes longer than most rows
of a test, and is loaded once. It prints the number of the fork, and behind its end the status.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
import traceback
from collections.abc import AsyncIterator, Iterator

import toolspeak as ts
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.types import Request

CONCURRENCY = 16


def route(ticket: int, urgent: bool = False) -> str:
    """Route a ticket to a person."""
    return ""


class Model:
    """Answers after a moment of its own with the call for the ticket; writes its number down before."""

    name = "for-kills"
    capabilities: frozenset[str] = frozenset()

    def __init__(self, asked: str, pause: float) -> None:
        self.asked, self.pause = os.open(asked, os.O_WRONLY | os.O_APPEND | os.O_CREAT), pause

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        number = str(request.messages[-1]["content"]).rpartition(" ")[2]
        os.write(self.asked, f"{number}\n".encode())
        await asyncio.sleep(random.uniform(0, self.pause))
        yield TextDelta(json.dumps({"tool": "route", "tool_input": {"ticket": int(number)}}))
        yield Finished("stop")


def tickets(count: int) -> Iterator[dict[str, object]]:
    """So many rows."""
    for number in range(count):
        yield {"id": number, "text": f"Please see to ticket {number}"}


def main(rows: str, out: str, asked: str, pause: str) -> None:
    """Works on the batch, from where it is."""
    model = ts.model(Model(asked, float(pause)), dialect="tool-json")  # type: ignore[arg-type]
    ts.batch(tickets(int(rows)), out, tools=[route], model=model, concurrency=CONCURRENCY, shard=1000)


def load() -> None:
    """Loads what a batch loads, by a small one, in this thread: nothing but it may run when forks are made."""
    with tempfile.TemporaryDirectory() as folder:
        model = ts.model(Model(f"{folder}/asked", 0), dialect="tool-json")  # type: ignore[arg-type]
        asyncio.run(ts.abatch(tickets(1), f"{folder}/out", tools=[route], model=model))


def fork(*arguments: str) -> int:
    """Works on the batch in a fork; the status with which that ends."""
    pid = os.fork()
    if not pid:
        try:
            main(*arguments)
        except BaseException:  # noqa: BLE001 - the end of a process
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(pid, flush=True)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    load()
    for _ in sys.stdin:
        print(fork(*sys.argv[1:]), flush=True)
