"""Processes the batches of clients, in a thread with its own event loop.

Journals and shards are written in that thread, so the loop that answers requests never waits for the disk. Each batch
is a run of `batch.runner` over the lines of its file. A line is sent on the gateway's loop, as a background request of
the batch's owner.

Several processes may share the folder. The one that holds the lock of a batch processes it; a batch whose process died
is resumed by the next process that looks. A run that ends with an error, such as an unreachable server or a full disk,
is restarted after a pause, until the batch expires.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ...api import batches as api
from ...batch.formats import OpenAIBatch
from ...batch.identify import Identifier
from ...batch.openai_batch import PROMPT
from ...batch.row import Item, OutputRow, Row
from ...batch.runner import Runner
from ...batch.store import open_store
from ...batch.summary import Summary
from ...errors import ModelError, ModelUnreachable, RateLimited, Refused, UsageError
from ...files import locked
from ...schema import nonblocking_json
from ..storage.batch_store import BatchStore, Described
from .line_request import LineResponse
from .lines import CheckedLines, check_lines, read_items
from .outputs import write_outputs

log = logging.getLogger(__name__)

TICK = 1.0
"""Seconds between two checks for work: another process may have accepted or cancelled a batch."""
PAUSE = 10.0
"""Seconds after which a run that ended with an error is restarted."""
CHUNK = 64
"""Lines that are read in one step."""
AGAIN = frozenset({"upstream_down", "store_unavailable", "unavailable"})
"""Codes of errors after which a line is retried, as after status 429."""
Ask = Callable[[str, str, bytes], Coroutine[Any, Any, LineResponse]]
"""Answers a request, given its owner, path and body."""


@dataclass(slots=True)
class _WorkedBatch:
    """A batch that this process works on, or one that failed and is left alone until the time `until`."""

    owner: str
    runner: Runner | None = None
    stopped: bool = False
    until: float | None = None
    counted: float = 0.0
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def stop(self) -> None:
        """End the run in an orderly way."""
        self.stopped = True
        if self.runner is not None:
            self.runner.stop()


class BatchWorker:
    """Processes the batches of a store. `ask` answers lines on the loop that calls `start`; `longest` is the most bytes
    of a line."""

    def __init__(self, store: BatchStore, ask: Ask, longest: int) -> None:
        self.store = store
        self._ask = ask
        self._longest = longest
        self._runs: dict[str, _WorkedBatch] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # ------------------------------------------------------------------ from the gateway's loop

    def start(self) -> None:
        """Start working. The running loop answers the lines."""
        self._main = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="toolspeak-batch-worker")
        self._thread.start()

    def wake(self) -> None:
        """Check for work now."""
        self._call(self._woken.set)

    def drain(self) -> None:
        """Start no further lines; those in progress continue."""
        self._call(self._drain)

    def close(self) -> None:
        """Cancel the lines in progress, which are sent again after the next start, and wait for the thread's end."""
        self._call(self._end)
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _call(self, work: Callable[[], object]) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(work)

    # ------------------------------------------------------------------ in the thread

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            while not self._draining:
                await self._look()
                with suppress(TimeoutError):
                    async with asyncio.timeout(TICK):
                        await self._woken.wait()
                self._woken.clear()
            while self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            self._loop = None

    def _drain(self) -> None:
        self._draining = True
        self._woken.set()
        for run in self._runs.values():
            run.stop()

    def _end(self) -> None:
        self._drain()
        for task in self._tasks:
            task.cancel()

    async def _look(self) -> None:
        """Stop cancelled batches, and start waiting ones, first those of owners with the fewest in progress."""
        try:
            unfinished = await self.store.run(self.store.unfinished)
        except Refused:
            return
        self._forget_old()
        for batch in unfinished:
            if batch.status == "cancelling" and (run := self._runs.get(batch.id)):
                run.stop()
        waiting = [batch for batch in unfinished if batch.id not in self._runs]
        free = 0 if self._draining else self.store.settings.running - len(self._tasks)
        for _ in range(min(free, len(waiting))):
            busy = Counter(run.owner for run in self._runs.values() if run.until is None)
            batch = min(waiting, key=lambda one: busy[one.owner])
            waiting.remove(batch)
            self._begin(batch)

    def _forget_old(self) -> None:
        """Forget failures whose pause is over."""
        now = asyncio.get_running_loop().time()
        self._runs = {key: run for key, run in self._runs.items() if run.until is None or now < run.until}

    def _begin(self, batch: Described) -> None:
        self._runs[batch.id] = _WorkedBatch(batch.owner)
        task = asyncio.create_task(self._work(batch))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._woken.set()
        if not task.cancelled() and (error := task.exception()):
            log.error("a batch failed and is restarted in %g s", PAUSE, exc_info=error)

    async def _work(self, batch: Described) -> None:
        """Process a batch, unless another process does."""
        run = self._runs[batch.id]
        folder = self.store.folder(batch.id)
        pause: float | None = PAUSE
        try:
            with ExitStack() as stack:
                folder.mkdir(mode=0o700, exist_ok=True)
                try:
                    stack.enter_context(locked(folder / "lock", "another process works on it"))
                except UsageError:
                    pause = TICK
                    return
                now = await self.store.run(self.store.batch, batch.owner, batch.id)
                if (
                    now is None
                    or now["status"] not in api.OPEN
                    or await self._ended_now(Described(batch.owner, now), run)
                ):
                    shutil.rmtree(folder, ignore_errors=True)
            pause = None
        except (ModelError, UsageError, Refused, OSError, sqlite3.Error) as error:
            log.warning("%s failed and continues in %g s: %s", batch.id, PAUSE, error)
        finally:
            run.until = None if pause is None else asyncio.get_running_loop().time() + pause
            if pause is None:
                del self._runs[batch.id]

    async def _ended_now(self, batch: Described, run: _WorkedBatch) -> bool:
        """Process a batch if its input file is there. Return whether it reached the end."""
        path = self.store.content(batch.body["input_file_id"])
        if all((batch.status != "cancelling", not await asyncio.to_thread(path.exists))):
            checked = CheckedLines()
            checked.wrong(None, "missing_file", "the content of the input file is gone from the disk", "input_file_id")
            await self._fail(batch, checked)
            return True
        return await self._finished(batch, path, run)

    async def _finished(self, batch: Described, path: Path, run: _WorkedBatch) -> bool:
        """Take a batch from its current status to its end. Return whether it reached the end."""
        if batch.status == "validating" and not await self._valid(batch, path):
            return True
        batch = Described(batch.owner, await self.store.run(self.store.batch, batch.owner, batch.id) or batch.body)
        total = batch.body["request_counts"]["total"]
        done = 0
        if batch.status == "in_progress" and self.store.clock() < batch.body["expires_at"]:
            done = await self._answered(batch, path, run)
        batch = Described(batch.owner, await self.store.run(self.store.batch, batch.owner, batch.id) or batch.body)
        if batch.status == "cancelling":
            end = "cancelled"
        elif done >= total or batch.status == "finalizing":
            end = "completed"
        elif self.store.clock() >= batch.body["expires_at"]:
            end = "expired"
        else:
            return False
        await self._finalized(batch, path, end)
        return True

    async def _valid(self, batch: Described, path: Path) -> bool:
        """Check the file of a batch. An invalid file makes the batch fail."""
        rows = self.store.settings.rows
        checked = await asyncio.to_thread(check_lines, path, batch.body["endpoint"], rows, self._longest)
        now = int(self.store.clock())
        if checked.errors:
            await self._fail(batch, checked)
        counts = {"total": checked.lines, "completed": 0, "failed": 0}
        changes = {"status": "in_progress", "in_progress_at": now, "request_counts": counts}
        body = await self.store.run(lambda: self.store.advance(batch.id, ("validating",), **changes))
        return body["status"] in api.OPEN

    async def _fail(self, batch: Described, checked: CheckedLines) -> None:
        """End a batch with the errors of its file."""
        errors = api.write_errors(checked.errors)
        changes = {"status": "failed", "failed_at": int(self.store.clock()), "errors": errors}
        await self.store.run(lambda: self.store.advance(batch.id, (batch.status,), **changes))

    async def _answered(self, batch: Described, path: Path, run: _WorkedBatch) -> int:
        """Answer the remaining lines and return how many are done. Raises the error that ended it early."""
        settings, key = self.store.settings, batch.id
        folder = self.store.folder(key) / "lines"
        parts = {"endpoint": batch.body["endpoint"], "input": batch.body["input_file_id"]}
        summary = Summary(folder, key, batch.body["request_counts"]["total"])
        items = read_items(path, self._longest)
        loop = asyncio.get_running_loop()

        async def feed() -> Sequence[Item]:
            return list(islice(items, CHUNK))

        def progress(summary: Summary) -> None:
            failed = summary.errors + summary.standing
            run.counts = {"total": summary.rows or 0, "completed": summary.done - failed, "failed": failed}
            if loop.time() - run.counted >= TICK:
                run.counted = loop.time()
                self._note(key, run.counts)

        with open_store(folder, parts, key, OpenAIBatch(), 10_000) as store:
            run.runner = Runner(
                store,
                lambda row: self._record(batch, row),
                summary,
                concurrency=settings.concurrency,
                progress=progress,
            )
            if run.stopped:
                run.runner.stop()
            late = loop.call_later(max(0.0, batch.body["expires_at"] - self.store.clock()), run.stop)
            try:
                await run.runner.run(feed, Identifier(store, "custom_id", PROMPT))
            finally:
                late.cancel()
                run.runner = None
        return summary.done

    def _note(self, key: str, counts: dict[str, int]) -> None:
        """Write the progress of a batch, without waiting."""
        statuses = ("in_progress", "cancelling")
        task = asyncio.create_task(
            self.store.run(lambda: self.store.advance(key, statuses, request_counts=counts)), name=f"counts of {key}"
        )
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _record(self, batch: Described, row: Row) -> OutputRow:
        """Return the record of a line. Raises an error that `Runner` retries, and Refused when the process ends."""
        body: Any = row.data["body"]
        if body.get("stream"):
            refused = Refused("stream: not supported in a batch", code="invalid_value", param="stream")
            return _outcome(row, LineResponse(400, {}, json.dumps(_error(refused)).encode()))
        answering = self._ask(
            batch.owner, batch.body["endpoint"], nonblocking_json.dumps(body).encode("utf-8", "backslashreplace")
        )
        answer = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answering, self._main))
        if answer.status in (429, 502, 503, 504):
            error: dict[str, Any] = answer.value["error"]
            code, message = error["code"], error["message"]
            if code == "shutting_down":
                raise Refused(message, status=503, code=code)
            if answer.status == 429 or code in AGAIN:
                raise RateLimited(message, retry_after=answer.retry_after)
            if code == "upstream_unreachable":
                raise ModelUnreachable(message, timed_out=answer.status == 504)
        return _outcome(row, answer)

    async def _finalized(self, batch: Described, path: Path, end: str) -> None:
        """Write the output files of a batch, and its final status."""
        now = int(self.store.clock())
        finalizing = {"status": "finalizing", "finalizing_at": now}
        if end == "completed":
            await self.store.run(lambda: self.store.advance(batch.id, ("in_progress",), **finalizing))
        lines = self.store.folder(batch.id) / "lines"
        expired = path if end == "expired" else None
        written = await asyncio.to_thread(write_outputs, self.store, lines, expired, self._longest)
        fields = {f"{name}_file_id": key for name, (key, _) in written.files.items()}
        counts = {
            "total": batch.body["request_counts"]["total"], "completed": written.completed, "failed": written.failed,
        }  # fmt: skip
        changes = {"status": end, f"{end}_at": int(self.store.clock()), "request_counts": counts, **fields}
        changes["usage"] = api.write_usage(*written.tokens)
        await self.store.run(lambda: self.store.finish(batch, written.files, **changes))


def _error(refused: Refused) -> dict[str, Any]:
    from ...api.openai_chat import write_error

    return write_error(refused)


def _outcome(row: Row, answer: LineResponse) -> OutputRow:
    """Return the outcome of a line, in the format of the output file."""
    body: Any = answer.value
    record = OutputRow(row.id, attempts=1)
    request = answer.headers.get(b"x-request-id", b"").decode()
    record.response = {"status_code": answer.status, "request_id": request, "body": body}
    if answer.status != 200:
        error: dict[str, Any] = body["error"]
        record.error = f"{error.get('code')}: {error.get('message')}"
    return record
