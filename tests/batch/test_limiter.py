"""How many rows are at the server at once, against servers that fail now and then, and that have enough.

The clock jumps to the next event, so a simulated hour takes no time, and the counts are exact.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolspeak.batch.row import Item, OutputRow, Row
from toolspeak.batch.runner import PATIENCE, Runner
from toolspeak.batch.store import WAITING
from toolspeak.batch.summary import Summary
from toolspeak.errors import ModelError, RateLimited, ServerFailed

SECONDS = 0.1
"""How long the server takes for a request."""


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop that does not wait: its time jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        select = self._selector.select

        def jump(timeout: float | None = None) -> Any:
            self.now += timeout or 0.0
            return select(0)

        self._selector.select = jump

    def time(self) -> float:
        return self.now


class Server:
    """A server that answers each request after SECONDS, unless `refusal` returns an error for its row and attempt."""

    def __init__(self, refusal: Callable[[Server, Row], ModelError | None]) -> None:
        self.refusal = refusal
        self.attempts = Counter[int]()
        self.running = self.most = 0
        self.busy = self.last = 0.0
        """Seconds of all requests together, and the time of the last answer."""

    async def answer(self, row: Row) -> OutputRow:
        self.attempts[row.place] += 1
        self.running += 1
        self.most = max(self.most, self.running)
        error = self.refusal(self, row)
        await asyncio.sleep(SECONDS)
        self.running -= 1
        self.busy += SECONDS
        self.last = asyncio.get_running_loop().time()
        if error is not None:
            raise error
        return OutputRow(row.id)


class Limited(Server):
    """A server that takes `most()` requests at once, and refuses others after `refusing` seconds, or if `fails()`."""

    def __init__(
        self,
        most: Callable[[], int],
        error: Callable[[], ModelError],
        refusing: float,
        fails: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(lambda server, row: None)
        self.takes, self.error, self.refusing, self.fails = most, error, refusing, fails
        self.refused = 0

    async def answer(self, row: Row) -> OutputRow:
        if self.running < self.takes() and not self.fails():
            return await super().answer(row)
        self.attempts[row.place] += 1
        self.refused += 1
        await asyncio.sleep(self.refusing)
        raise self.error()


class Journal:
    """Counts records instead of writing them."""

    count = 0

    def __init__(self) -> None:
        self.records = list[Any]()

    def identify(self, items: Sequence[Item]) -> Iterator[tuple[Row, int]]:
        for item in items:
            self.count += 1
            yield Row(self.count - 1, self.count - 1, item.data or {}, item.where), WAITING

    def add(self, place: int, record: Any, state: int | None = None) -> None:
        self.records.append(record)

    def part(self, place: int) -> int:
        return 0

    def begun(self, place: int) -> str:
        return ""

    def commit(self) -> None: ...
    def write_part(self, part: int) -> None: ...
    def write_rest(self) -> None: ...


def simulated(work: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work)


def run(server: Server, rows: int, concurrency: int, progress: Any = None) -> tuple[list[Any], float]:
    """Returns the records, and how many rows were at the server at once, on average."""
    random.seed(7)
    journal = Journal()
    items = iter([Item({}, str(number)) for number in range(rows)])

    async def feed() -> Sequence[Item]:
        return list(itertools.islice(items, 64))

    async def work() -> float:
        began = asyncio.get_running_loop().time()
        runner = Runner(journal, server.answer, Summary(Path()), concurrency=concurrency, progress=progress)
        await runner.run(feed, journal)
        return server.last - began

    seconds = simulated(work())
    return journal.records, server.busy / seconds


def now_and_then(share: float, error: Callable[[], ModelError]) -> Callable[[Server, Row], ModelError | None]:
    """Returns a refusal of this share of the rows at their first attempt."""
    chance = random.Random(3)

    def refusal(server: Server, row: Row) -> ModelError | None:
        return error() if server.attempts[row.place] == 1 and chance.random() < share else None

    return refusal


ERRORS = {
    "429": lambda: RateLimited("too many requests (429)"),
    "500": lambda: ServerFailed("the server failed (500)", code=500),
    "503": lambda: ServerFailed("the server failed (503)", code=503),
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("concurrency", [4, 16, 64])
def test_a_failure_now_and_then_is_no_overload(concurrency: int, error: str) -> None:
    server = Server(now_and_then(0.07, ERRORS[error]))
    records, average = run(server, 5000, concurrency)
    assert [record.error for record in records] == [None] * 5000
    assert server.most <= concurrency
    assert average >= 0.8 * concurrency


@pytest.mark.parametrize("error", ["429", "503"])
@pytest.mark.parametrize("refusing", [0.002, SECONDS], ids=["at once", "after a while"])
@pytest.mark.parametrize("most", [1, 2, 8, 20])
def test_a_server_that_takes_less_gets_about_what_it_takes(most: int, refusing: float, error: str) -> None:
    """And refuses few: the limit that worked is remembered, and higher ones are tried rarely."""
    server = Limited(lambda: most, ERRORS[error], refusing)
    records, _ = run(server, 1000, 64)
    assert len(records) == 1000
    assert server.refused < 0.1 * server.attempts.total()
    assert server.busy / (server.last - 1000) >= 0.8 * most


@pytest.mark.parametrize("refusing", [0.002, SECONDS], ids=["at once", "after a while"])
@pytest.mark.parametrize(("before", "after"), [(8, 6), (8, 7), (4, 32)])
def test_a_server_that_takes_more_or_less_than_before(before: int, after: int, refusing: float) -> None:
    server = Limited(lambda: before if server.attempts.total() < 1000 else after, ERRORS["429"], refusing)
    run(server, 5000, 64)
    assert server.refused < 0.05 * server.attempts.total()
    ideal = (1000 / before + 4000 / after) * SECONDS
    assert server.last - 1000 < 1.5 * ideal


def test_failures_now_and_then_do_not_hide_how_many_a_server_takes() -> None:
    chance = random.Random(3)
    server = Limited(lambda: 8, ERRORS["429"], 0.002, lambda: chance.random() < 0.05)
    run(server, 5000, 64)
    assert server.refused < 0.12 * server.attempts.total()
    assert server.busy / (server.last - 1000) >= 0.8 * 8


def test_one_overload_is_one_reduction_and_is_made_up_for() -> None:
    limits: list[int] = []

    def refusal(server: Server, row: Row) -> ModelError | None:
        fails = 1000 <= row.place < 1064 and row.place % 2 and server.attempts[row.place] == 1
        return ServerFailed("the server failed (529)", code=529) if fails else None

    def progress(summary: Summary) -> None:
        if not limits or limits[-1] != summary.limit:
            limits.append(summary.limit)

    run(Server(refusal), 3000, 64, progress)
    lowest = limits.index(min(limits[limits.index(64) :]), limits.index(64))
    assert limits[lowest] == 32
    assert limits[-1] == 64


def test_a_server_that_is_away_is_asked_by_one_row_at_a_time() -> None:
    down = 0
    states: list[tuple[str, float]] = []

    def refusal(server: Server, row: Row) -> ModelError | None:
        nonlocal down
        now = asyncio.get_running_loop().time()
        if 1010 <= now < 1130:  # away for two minutes
            down += 1
            return ServerFailed("the server failed (503)", code=503)
        return None

    server = Server(refusal)
    records, _ = run(server, 10_000, 64, lambda summary: states.append((summary.refusal, summary.refused)))
    assert down < 64 + 20  # those that were there, and a few that asked whether it is back
    assert sum(record.error is not None for record in records) <= 6
    assert max(states, key=lambda one: one[1])[0] == "503"
    assert max(states, key=lambda one: one[1])[1] > 30
    assert states[-1] == ("", 0.0)


def test_a_server_that_stays_away_ends_the_job() -> None:
    server = Server(lambda server, row: RateLimited("too many requests (429)"))
    seen: list[Summary] = []
    with pytest.raises(RateLimited):
        run(server, 1000, 16, seen.append)
    assert server.attempts.total() < 60
    assert seen[-1].refused >= PATIENCE


def test_no_row_starts_before_the_server_says_so() -> None:
    times: list[float] = []

    def refusal(server: Server, row: Row) -> ModelError | None:
        times.append(asyncio.get_running_loop().time())
        return RateLimited("too many requests (429)", retry_after=30.0) if len(times) == 101 else None

    run(Server(refusal), 1000, 16)
    gaps = [after - before for before, after in itertools.pairwise(sorted(times))]
    assert sum(gap > 29 for gap in gaps) == 1


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (
            1,
            "1 of 1 rows in x; 1 answer cut off (more fits with a higher max_tokens, or a longer context); 1 error (1 E); 1 error from before; 1 token",
        ),
        (
            2,
            "2 of 2 rows in x; 2 answers cut off (more fits with a higher max_tokens, or a longer context); 2 errors (2 E); 2 errors from before; 2 tokens",
        ),
    ],
)
def test_a_summary_counts_in_words(count: int, text: str) -> None:
    summary = Summary(Path("x"), rows=count, done=count, cut=count, errors=count, standing=count, prompt_tokens=count)
    summary.kinds["E"] = count
    assert str(summary) == text
