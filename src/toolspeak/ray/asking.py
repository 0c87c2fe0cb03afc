"""Runs all rows of a worker process through one runner with one concurrency limit; see `batch.runner`.

An actor of a cluster gets batches one after another, and several at once. All their rows go through one Runner that
never ends. So a refusal by the server slows all of them down, and a slow row of one batch does not delay the next
batch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..batch.common_error import SAME, Rejected, common_error
from ..batch.row import Item, OutputRow, Row
from ..batch.runner import Answer, Runner
from ..batch.store import WAITING
from ..batch.summary import Summary


class RowAsker:
    """Answers rows, at most `concurrency` at once. It belongs to the event loop of its first use."""

    def __init__(self, answer: Answer, concurrency: int) -> None:
        self.count = 0
        self._answers: dict[int, asyncio.Future[OutputRow]] = {}
        self._rows: deque[Row] = deque()
        self._come = asyncio.Event()
        self._answer = answer
        self._rejected: list[Rejected] = []
        self._runner = Runner(self, self._record, Summary(Path()), concurrency=concurrency)
        self._running: asyncio.Task[Any] | None = None

    async def records(self, rows: Sequence[Row]) -> list[OutputRow]:
        """Return the record of each row. Raises the error that every row would get, as `Runner.run` does."""
        if not rows:
            return []
        if self._running is None:
            self._running = asyncio.create_task(self._runner.run(self._feed, self))
            self._running.add_done_callback(self._ended)
        if self._running.done():
            await self._running
        futures: list[asyncio.Future[OutputRow]] = []
        for row in rows:
            future = asyncio.get_running_loop().create_future()
            self._answers[self.count] = future
            self._rows.append(replace(row, place=self.count))
            self.count += 1
            futures.append(future)
        self._come.set()
        return await asyncio.gather(*futures)

    def _ended(self, run: asyncio.Task[Any]) -> None:
        error = None if run.cancelled() else run.exception()
        for future in self._answers.values():
            if error is None:
                future.cancel()
            elif not future.done():
                future.set_exception(error)

    async def _record(self, row: Row) -> OutputRow:
        """Return the record of a row. That of a rejected row does not wait, because the caller waits for it."""
        outcome = await self._answer(row)
        if not isinstance(outcome, Rejected):
            return outcome
        self._rejected = [*self._rejected[-SAME:], outcome]
        if error := common_error(self._rejected):
            raise error
        return outcome.record

    # -------------------------------------------------------------- the runner's interfaces

    async def _feed(self) -> Sequence[Item]:
        await self._come.wait()
        self._come.clear()
        return [Item(row.data, row.where) for row in self._rows]

    def identify(self, items: Sequence[Item]) -> Iterator[tuple[Row, int]]:
        """Yield the next rows, which are all new."""
        for _ in items:
            yield self._rows.popleft(), WAITING

    def part(self, place: int) -> int:
        """Return the only part."""
        return 0

    def begun(self, place: int) -> str:
        """Return nothing: no row was started before."""
        return ""

    def add(self, place: int, record: OutputRow, state: int | None = None) -> None:
        """Pass a record to the caller that waits for it."""
        future = self._answers.pop(place)
        if not future.done():
            future.set_result(record)

    def commit(self) -> None:
        """Do nothing: nothing is written here."""

    def write_part(self, part: int) -> None:
        """Do nothing: nothing is written here."""

    def write_rest(self) -> None:
        """Do nothing: nothing is written here."""
