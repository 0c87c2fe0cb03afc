"""A batch on a cluster, by a driver that is going to be killed: each row that is asked is written down, for the test to count.

python cluster_job.py ROWS OUT FOLDER ADDRESS

FOLDER gets `asked.txt`, with the number of each row and the process that asked. Rows from GATES on wait for a file `gate-N` there,
so that the job cannot be done before something was killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import toolspeak as ts

GATES = (1000, 2500)


def route(ticket: int, urgent: bool = False) -> str:
    """Route a ticket to a person."""
    return ""


class Model:
    """Answers with the call for the ticket, once its gate is open; writes the number of the ticket down before."""

    name = "for-kills"
    capabilities: frozenset[str] = frozenset()

    def __init__(self, folder: str) -> None:
        self.folder = folder

    async def stream(self, request: ts.types.Request) -> AsyncIterator[ts.Event]:  # type: ignore[name-defined]
        number = int(str(request.messages[-1]["content"]).rpartition(" ")[2])
        asked = os.open(f"{self.folder}/asked.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(asked, f"{number} {os.getpid()}\n".encode())
        os.close(asked)
        for gate, first in enumerate(GATES):
            while number >= first and not Path(f"{self.folder}/gate-{gate}").exists():
                await asyncio.sleep(0.05)
        yield ts.TextDelta(json.dumps({"tool": "route", "tool_input": {"ticket": number}}))
        yield ts.Finished("stop")


def tickets(count: int) -> Iterator[dict[str, object]]:
    """So many rows."""
    for number in range(count):
        yield {"id": number, "text": f"Please see to ticket {number}"}


if __name__ == "__main__":
    rows, out, folder, address = sys.argv[1:]
    model = ts.model(Model(folder), dialect="tool-json")  # type: ignore[arg-type]
    summary = ts.ray.batch(tickets(int(rows)), out, tools=[route], model=model, address=address, workers=2, shard=1000)
    print(json.dumps(summary.as_dict()))
