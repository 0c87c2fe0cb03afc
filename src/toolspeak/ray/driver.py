"""The job of `ts.batch` on a cluster: the driver owns the directory and its journal, actors ask the model.

The driver gives every row its id and place, as in one process, and writes the rows to be sent into blocks. Ray Data
reads the blocks, has actors answer their rows, and writes the records with its row checkpoints. Meanwhile the driver
merges every complete block into the directory. So the output is that of one process, in the order of the input, and a
job can be continued in one process or on a cluster, whichever started it.

All machines must see the directory under the same path.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from ..batch.ask import Asker
from ..batch.formats import Format
from ..batch.identify import Identifier
from ..batch.inputs import Input
from ..batch.openai_batch import OpenAITask
from ..batch.prompts import Prompt
from ..batch.row import Row, unreadable
from ..batch.store import DONE, FAILED, UNREADABLE
from ..batch.summary import Summary
from ..batch.task import Task, Verb
from ..batch.verbs import BatchJob, BatchOptions, BatchRun, feed
from ..errors import UsageError
from ..models.resolve import DEFAULT, VARIABLE
from ..schema.infer import as_tools
from ..thread_bridge import run_sync_here
from ..types import Tool
from .actor import Work
from .connect import check_address, cluster
from .exchange_folder import BLOCK, HOME, Merge, Staging, new_run
from .pipeline import Pipeline

POLL = 0.2
"""Seconds between two checks for records from workers."""


def batch(
    rows: Any,
    out: Path | str,
    prompt: str = "text",
    id: str | None = "id",  # noqa: A002 - as in `ts.batch`
    verb: Verb = "decide",
    tools: Any = (),
    kind: Any = None,
    model: Any = None,
    *,
    address: str | None = None,
    workers: int | None = None,
    **options: Unpack[BatchOptions],
) -> Summary:
    """Run `ts.batch` on a Ray cluster: the same job, the same directory, every id once.

    `address` is that of the cluster; None is $RAY_ADDRESS, else the cluster that runs on this machine, else a new one
    for the job. `workers` is the number of actors, by default one per machine, and `concurrency` the most rows in
    progress per actor. `out` must be a directory that all machines see. With `verb="run"`, calls may run again when a
    worker is lost: `may_have_run="again"` allows that.

    Raises MissingExtra without Ray, UsageError for an address without a cluster, and everything that `ts.batch` raises.
    """
    # workers have their own environment, so the model's name is resolved here
    settings = {**options, "model": os.environ.get(VARIABLE, DEFAULT) if model is None else model}
    job = ClusterJob(
        rows, Path(out).expanduser(), prompt, id, verb, tools, kind, settings, address=address, workers=workers
    )
    return run_sync_here(job.run, job.stop)


@dataclass
class ClusterJob(BatchJob):
    """A BatchJob whose rows are answered by the actors of a cluster."""

    address: str | None = None
    workers: int | None = None
    staging: Staging | None = None

    def stop(self) -> None:
        """End the job in an orderly way: workers finish the rows that they have started."""
        self.stopped = True
        if self.staging is not None:
            self.staging.stop.touch()

    async def _asker(self, source: Input, form: Format, prompt: Prompt, own: Mapping[str, Any]) -> Asker:
        check_address(self.address)
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"workers: expected a whole number from 1, received {self.workers}")
        if self.verb == "run" and own.get("may_have_run", "error") != "again":
            raise UsageError(
                "verb: on a cluster calls run again when a worker is lost. If your tools recognize a repeated call by its "
                'idempotency key, allow it: may_have_run="again" (--may-have-run again)'
            )
        return await BatchJob._asker(self, source, form, prompt, own)

    async def _run(self, run: BatchRun) -> Summary:
        merge = Merge(run.store)
        self.staging = staging = new_run((run.store.path / HOME / run.asker.task.fingerprint).absolute(), merge)
        rows = ClusterRun(self, run, merge, staging)
        try:
            await rows.write_blocks()
            run.summary.interrupted = self.stopped
            if staging.blocks and not self.stopped:
                await rows.ask()
            run.store.write_rest()
        finally:
            staging.remove()
        return run.summary


@dataclass
class ClusterRun:
    """One run of a job: rows into blocks, blocks to the cluster, records into the directory."""

    job: ClusterJob
    run: BatchRun
    merge: Merge
    staging: Staging

    @property
    def settled(self) -> set[int]:
        """The states of rows that are not sent again."""
        return {DONE} if self.run.own.get("retry_errors") else {DONE, FAILED}

    @property
    def concurrency(self) -> int:
        """The most rows in progress per actor."""
        return self.run.own.get("concurrency", 16)

    async def write_blocks(self) -> None:
        """Read the input, check ids and columns, and write the rows to be sent into blocks."""
        source, store = self.run.source, self.run.store
        identifier = Identifier(store, self.job.id, self.run.prompt)
        if source.columns is not None:
            identifier.check_columns(source.columns, source.name)
        columns = None if source.form == "openai" else set(self.run.prompt.columns)
        block: list[Row] = []
        read = feed(source, self.run.here)
        while items := await read():
            rows = [row for row, state in identifier.identify(items) if self._is_to_ask(row, state)]
            self.merge.left.update(store.part(row.place) for row in rows)
            block += [_needed(row, columns) for row in rows]
            if len(block) >= max(BLOCK, self.concurrency):
                self.staging.write_block(block)
                block = []
            self._note_progress()
            await asyncio.sleep(0)
        if block:
            self.staging.write_block(block)
        store.commit()
        self.run.summary.rows = identifier.count

    def _is_to_ask(self, row: Row, state: int) -> bool:
        """Whether a row is to be sent; counts a row that is not."""
        if row.problem:
            record = unreadable(row)
            self.run.store.add(row.place, record, UNREADABLE)
            self.run.summary.add(record)
            return False
        if state in self.settled:
            self.run.summary.add_earlier(failed=state == FAILED)
            return False
        return True

    async def ask(self) -> None:
        """Have the cluster answer the blocks, and merge the records. Raises what ended it early."""
        job, run, task = self.job, self.run, self.run.asker.task
        work = Work(
            form=run.source.form, prompt=run.prompt, verb=job.verb, tools=_sendable(job.tools, task), kind=job.kind,
            settings=job.options, further={name: run.own.get(name) for name in ("tries", "dialect")},
            concurrency=self.concurrency, again=run.asker.again, parts=json.dumps(task.parts, default=str),
            fingerprint=task.fingerprint, run=self.staging.path, folder=Path.cwd(),
        )  # fmt: skip
        with contextlib.ExitStack() as stack:
            there = await asyncio.to_thread(stack.enter_context, cluster(job.address))
            workers = job.workers or there.machines
            self.run.summary.limit = self.concurrency * workers
            pipeline = Pipeline(self.staging, work, workers)
            thread = threading.Thread(target=pipeline.run, daemon=True)
            thread.start()
            while thread.is_alive():
                await asyncio.sleep(POLL)
                self._merge()
                await there.check()
        self._merge()
        self.run.summary.interrupted = job.stopped or pipeline.error is not None
        if pipeline.error is not None:
            raise self.staging.error() or pipeline.error

    def _merge(self) -> None:
        for record in self.merge.merge(self.staging):
            self.run.summary.add(record)
        self._note_progress()

    def _note_progress(self) -> None:
        if (progress := self.run.own.get("progress")) is not None:
            progress(self.run.summary)


def _sendable(tools: Any, task: Task | OpenAITask) -> tuple[Tool[..., Any], ...]:
    """Return the tools for a worker: without functions, unless they are to be run."""
    if isinstance(task, OpenAITask) or task.verb == "extract":
        return ()
    offered = as_tools(tools) if task.verb == "run" else task.template.tools
    return offered or ()


def _needed(row: Row, columns: set[str] | None) -> Row:
    """Return the row with the columns that its prompt needs (None: all)."""
    data = row.data if columns is None else {name: value for name, value in row.data.items() if name in columns}
    return Row(row.place, row.id, data, row.where)
