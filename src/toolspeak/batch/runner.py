"""Runs a batch: reads rows, has each answered, and has its record written; bounded, adaptive, and with an orderly end.

One task reads the input and starts a task for each row. At most `concurrency` rows are in progress, and of these as
many ask their model as the limiter allows. A row is done when its record is committed. Rows that end in the same turn
of the event loop share a commit, and free their places after it. So a kill loses at most the rows in progress.

`stop` ends a run in an orderly way: no further row starts, and rows in progress are finished and written. A
cancellation of the task aborts the rows in progress; the next run sends them again. Finished shards are written in both
cases.

Evaluation and the gateway use this runner with their own answer functions: it knows nothing about models except the
errors with which they refuse (REFUSALS).
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Literal, Protocol

from ..errors import ModelError, ModelUnreachable, RateLimited, ServerFailed, StreamCut
from ..models.retries import backoff, passing, retried
from ..running import EXITS
from .common_error import Rejected, common_error
from .limiter import Limiter
from .row import Item, OutputRow, Row, unreadable
from .store import BEGUN, DONE, FAILED, UNREADABLE
from .summary import Summary

PATIENCE = 600.0
"""Seconds for which a server may refuse every request before the job ends with its error."""
TRIES = 3
"""How often a row is sent whose reply broke off or whose server failed."""

REFUSALS = (RateLimited, ModelUnreachable, ServerFailed, StreamCut)
"""Errors after which a row is sent again."""
OVERLOAD = frozenset({503, 529})
"""The statuses with which a server says that it has too much to do."""
FAILURE = 0.4
"""How much any other failure of a server speaks for an overload, compared with a 429: half of the rows may fail."""

Answer = Callable[[Row], Awaitable[Any]]
Feed = Callable[[], Awaitable[Sequence[Item]]]
"""Returns the next items, none at the end."""
MayHaveRun = Literal["error", "again"]


class JobEnds(Exception):
    """An error that every other row would get too."""

    def __init__(self, error: ModelError) -> None:
        super().__init__(str(error))
        self.error = error


class Journal(Protocol):
    """The destination of records: `store.Store` or a substitute."""

    def part(self, place: int) -> int: ...
    def begun(self, place: int) -> str: ...
    def add(self, place: int, record: Any, state: int | None = None) -> None: ...
    def commit(self) -> None: ...
    def write_part(self, part: int) -> None: ...
    def write_rest(self) -> None: ...


class Identify(Protocol):
    """Makes rows from items: `identify.Identifier` or a substitute. `count` is how many it made."""

    @property
    def count(self) -> int: ...
    def identify(self, items: Sequence[Item]) -> Iterator[tuple[Row, int]]: ...


class Runner:
    """One run over an input. `answer` returns the record of a row, which waits if it is in a Rejected; an exception that
    is not a refusal ends the run.

    `progress` is called with the summary after each commit. `retry_errors` repeats rows whose record is an error. A
    Runner is used once.
    """

    def __init__(
        self,
        store: Journal,
        answer: Answer,
        summary: Summary,
        *,
        concurrency: int = 16,
        retry_errors: bool = False,
        may_have_run: MayHaveRun = "error",
        progress: Callable[[Summary], None] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.store, self.answer, self.summary = store, answer, summary
        self.limiter = Limiter(concurrency)
        self._settled = {DONE} if retry_errors else {DONE, FAILED}
        self._uncertain = {BEGUN} if may_have_run == "error" else set[int]()
        self.progress, self.patience = progress, patience
        self._window = asyncio.Semaphore(concurrency)
        self._running: set[asyncio.Task[None]] = set()
        self._reading: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._added: list[tuple[OutputRow, int]] = []
        self._waiting: list[tuple[int, int, Rejected]] = []
        """Place, shard and outcome of the rejected rows whose records wait; see `common_error`."""
        self._under_way: Counter[int] = Counter()
        self._changed: set[int] = set()
        self._front = 0
        self._stopped = False
        self._answered = False

    # -------------------------------------------------------------- interface

    async def run(self, feed: Feed, identifier: Identify) -> Summary:
        """Run until every row of the input has a record, or the run is stopped, and return the summary.

        Raises what ended it early: an error that every row would get, UsageError of the input, OSError of the disk.
        """
        try:
            self._reading = reading = asyncio.create_task(self._read(feed, identifier))
            if self._stopped:
                reading.cancel()
            await asyncio.wait({reading})
            await self._finish()
        except asyncio.CancelledError:
            self._stopped = True
            await self._abandon()
            self._write_rest()
            raise
        finally:
            self.summary.interrupted = self._stopped or self._failure is not None
            self._note_progress()
        if self._failure is not None:
            raise self._failure
        return self.summary

    def stop(self) -> None:
        """End the run in an orderly way: rows in progress are finished, and no further row starts."""
        self._stopped = True
        if self._reading is not None:
            self._reading.cancel()

    # -------------------------------------------------------------- reading

    async def _read(self, feed: Feed, identifier: Identify) -> None:
        try:
            while items := await feed():
                for row, state in identifier.identify(items):
                    await self._begin(row, state)
            if self.summary.rows is None:
                self.summary.rows = identifier.count
        except asyncio.CancelledError:
            if not self._stopped:
                raise
        except (Exception, *EXITS) as error:  # noqa: BLE001 - raised again by `run`, after the rows in progress
            self._reading = None  # the reader ends here, so it need not be cancelled
            self._fail(error)

    async def _begin(self, row: Row, state: int) -> None:
        """Start a row, if it needs an answer."""
        if row.problem:
            record = unreadable(row)
            self.store.add(row.place, record, UNREADABLE)
            self._changed.add(self.store.part(row.place))
            self.summary.add(record)
            return
        if state in self._settled:
            self.summary.add_earlier(failed=state == FAILED)
            if self.summary.before % 1000 == 0:
                self._note_progress()
                await asyncio.sleep(0)
            return
        await self._window.acquire()
        part = self.store.part(row.place)
        self._under_way[part] += 1
        if part > self._front:
            self._front = part
            self._write_parts()
        task = asyncio.create_task(self._handle(row, state, part))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    # -------------------------------------------------------------- one row

    async def _handle(self, row: Row, state: int, part: int) -> None:
        try:
            record = await self._record(row, state)
            if isinstance(record, Rejected):
                self._hold(row.place, part, record)
                return
            if self._waiting and record.attempts:  # the model replied: those were errors of their rows
                self._store_waiting()
            self.store.add(row.place, record)
        except (Exception, *EXITS) as error:  # noqa: BLE001 - raised again by `run`
            self._window.release()
            self._fail(error.error if isinstance(error, JobEnds) else error)
        except asyncio.CancelledError:
            self._window.release()
            raise
        else:
            self._commit_soon(record, part)

    async def _record(self, row: Row, state: int) -> Any:
        if state in self._uncertain:
            detail = self.store.begun(row.place)
            return OutputRow(row.id, error=f"MayHaveRun: the process died after {detail} began; it may have run")
        try:
            return await retried(lambda: self._ask_once(row), _again, self._pause)
        except REFUSALS as error:
            return OutputRow(row.id, error=f"{type(error).__name__}: {error}", attempts=TRIES)

    async def _ask_once(self, row: Row) -> Any:
        """Return the answer to a row that is sent once, when the limiter allows it. Raises REFUSALS, JobEnds and what
        `answer` raises."""
        begun = await self.limiter.acquire()
        try:
            record = await self.answer(row)
        except REFUSALS as error:
            self._refused(error, begun)
            raise
        finally:
            self.limiter.release()
        self._answered = True
        self.limiter.succeeded(begun)
        return record

    async def _pause(self, seconds: float) -> None:
        """Wait before a row is sent again. Meanwhile another row has its place."""
        self._window.release()
        try:
            await asyncio.sleep(seconds)
        finally:
            await self._window.acquire()

    def _refused(self, error: ModelError, begun: int) -> None:
        """Slow down after a refusal, if the limiter finds it necessary. Raises JobEnds if the server never answered, if
        a quota is used up, and if everything was refused for too long."""
        if isinstance(error, ModelUnreachable) and not error.timed_out and not self._answered:
            raise JobEnds(error)
        if isinstance(error, RateLimited) and not passing(error):
            raise JobEnds(error)
        weight = FAILURE if isinstance(error, ServerFailed | StreamCut) and not _is_overload(error) else 1.0
        self.limiter.refused(begun, getattr(error, "retry_after", None), weight, _reason(error))
        self._note_progress()
        first = self.limiter.first_refusal
        if first is not None and asyncio.get_running_loop().time() - first >= self.patience:
            raise JobEnds(error)

    # -------------------------------------------------------------- rejected rows

    def _hold(self, place: int, part: int, rejected: Rejected) -> None:
        """Have the record of a rejected row wait. Ends the run if every row would get its error."""
        self._window.release()
        if self._failure is not None:
            return
        if self._waiting and self._waiting[0][2].reason != rejected.reason:
            self._store_waiting()
        self._waiting.append((place, part, rejected))
        if error := common_error([one for *_, one in self._waiting]):
            self._fail(error)

    def _store_waiting(self) -> None:
        """Add the records that waited; the next commit writes them."""
        waiting, self._waiting = self._waiting, []
        for place, part, rejected in waiting:
            self.store.add(place, rejected.record)
            self.summary.add(rejected.record)
            self._changed.add(part)
            self._under_way[part] -= 1

    # -------------------------------------------------------------- writing

    def _commit_soon(self, record: OutputRow, part: int) -> None:
        """Have a record committed at the end of this turn of the loop, together with all others of this turn."""
        if not self._added:
            asyncio.get_running_loop().call_soon(self._commit)
        self._added.append((record, part))

    def _commit(self) -> None:
        """Commit what was added. Those rows are done, and their places are free."""
        added, self._added = self._added, []
        if not added:
            return
        try:
            self.store.commit()
            for record, part in added:
                self.summary.add(record)
                self._changed.add(part)
                self._under_way[part] -= 1
            if any(part < self._front for _, part in added):
                self._write_parts()
            self._note_progress()
        except (Exception, *EXITS) as error:  # noqa: BLE001 - raised again by `run`
            self._fail(error)
        finally:
            for _ in added:
                self._window.release()

    def _write_parts(self) -> None:
        """Write the shards in which no row is in progress any more, up to the reading position."""
        for part in sorted(self._changed):
            if part < self._front and not self._under_way[part]:
                self._changed.discard(part)
                self.store.write_part(part)

    async def _finish(self) -> None:
        """Wait for the rows in progress, and write the remaining shards."""
        while self._running:
            await asyncio.wait(self._running)
        if not self._stopped:
            self._store_waiting()
        self._write_rest()

    def _write_rest(self) -> None:
        self._commit()
        if isinstance(self._failure, (sqlite3.Error, OSError)):
            return  # the disk is full: the records are safe in the journal
        try:
            self.store.commit()
            self.store.write_rest()
        except (sqlite3.Error, OSError) as error:
            self._fail(error)

    async def _abandon(self) -> None:
        """Abort rows in progress, after a cancellation."""
        under_way = [*self._running, *filter(None, [self._reading])]
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    def _fail(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
            self.stop()

    def _note_progress(self) -> None:
        self.summary.seconds = time.monotonic() - self.summary.began
        summary, limiter = self.summary, self.limiter
        summary.running, summary.limit, summary.concurrency = limiter.running, int(limiter.limit), limiter.ceiling
        summary.refusal, summary.patience, summary.refused = limiter.reason, self.patience, 0.0
        if limiter.pauses and limiter.first_refusal is not None:
            summary.refused = asyncio.get_running_loop().time() - limiter.first_refusal
        if self.progress is not None:
            self.progress(self.summary)


def _again(error: ModelError, tried: int) -> float | None:
    """Return the seconds until a row is sent again, by the rule of `models.retries`, but 0 if the server names a time:
    the limiter then delays all rows. A row that may itself be the reason is sent a few times only."""
    if not isinstance(error, REFUSALS):
        return None
    bounded = isinstance(error, ServerFailed | StreamCut) or getattr(error, "timed_out", False)
    if bounded and tried >= TRIES:
        return None
    return backoff(tried) if getattr(error, "retry_after", None) is None else 0.0


def _is_overload(error: ModelError) -> bool:
    return getattr(error, "code", 0) in OVERLOAD


def _reason(error: ModelError) -> str:
    """Return a refusal in a few words, for the progress."""
    if isinstance(error, RateLimited):
        return "429"
    if isinstance(error, ModelUnreachable):
        return "no answer in time" if error.timed_out else "no connection"
    if isinstance(error, StreamCut):
        return "the reply broke off"
    return str(getattr(error, "code", 0) or "the server failed")
