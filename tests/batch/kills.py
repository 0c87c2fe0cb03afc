"""Kills a batch at random moments until it is done: every id must come out once, and few may be asked twice.

python tests/batch/kills.py ROWS KILLS
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import toolspeak as ts

WORKER = Path(__file__).with_name("kill_worker.py")
CONCURRENCY = 16
PAUSE = 0.002


@dataclass(frozen=True)
class Outcome:
    """What a batch came to: the kills, the ids in the order of the output, how often each row was asked, how long it took, and
    the most megabytes that a process of it held."""

    kills: int
    ids: list[int]
    asked: Counter[int]
    seconds: float
    memory: int

    @property
    def repeated(self) -> int:
        """How many times a row was asked again."""
        return sum(self.asked.values()) - len(self.asked)


def killed(folder: Path, rows: int, kills: int, seed: int) -> Outcome:
    """Runs a batch of so many rows and kills it at so many moments, each after a random number of further rows."""
    chance = random.Random(seed)
    out, asked = folder / "out", folder / "asked.txt"
    asked.touch()
    command = [sys.executable, str(WORKER), str(rows), str(out), str(asked), str(PAUSE)]
    began = time.monotonic()
    done = 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as workers:
        for left in range(kills, 0, -1):
            size = asked.stat().st_size
            share = (rows * 7 * 0.9 - size) / left  # about seven bytes a row: the kills are spread over the whole batch
            size += round(chance.uniform(0, 2 * max(share, 1)))
            worker = int(_answer(workers, "\n"))
            while _is_alive(worker) and asked.stat().st_size <= size:
                time.sleep(0.005)
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
            done += int(_answer(workers)) == -signal.SIGKILL
        _answer(workers, "\n")
        assert _answer(workers) == "0"
        workers.communicate()
    counts = Counter(map(int, asked.read_text("ascii").split()))
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    return Outcome(done, [row["id"] for row in ts.read_batch(out)], counts, time.monotonic() - began, memory)


def _answer(workers: subprocess.Popen[str], line: str = "") -> str:
    """The next line that `kill_worker` prints, where one is written to it after that."""
    assert workers.stdin is not None
    assert workers.stdout is not None
    workers.stdin.write(line)
    workers.stdin.flush()
    return workers.stdout.readline().strip()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main(rows: int, kills: int) -> None:
    """Prints what became of a batch under kills; ends with an error where a row was lost or asked too often."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = killed(Path(folder), rows, kills, seed=random.randrange(10**6))
    if outcome.ids != list(range(rows)):
        sys.exit(f"{rows} ids in, {len(outcome.ids)} out, {len(set(outcome.ids))} different")
    if outcome.repeated > CONCURRENCY * outcome.kills:
        sys.exit(f"{outcome.repeated} rows were asked twice: more than {CONCURRENCY} × {outcome.kills}")
    print(
        f"{rows:,} rows, {outcome.kills} kills, {outcome.seconds:.0f} s, at most {outcome.memory} MB: every id once, in order; "
        f"{outcome.repeated} asked twice (at most {CONCURRENCY * outcome.kills} may be)"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
