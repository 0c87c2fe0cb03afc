"""The entry points `batch`, `abatch` and `read_batch`, which combine the input, the task, the store and the runner."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, cast

from ..errors import UsageError
from ..models.resolve import check_run_options
from ..models.sampling import checked_function
from ..thread_bridge import Here, run_sync_here
from ..verbs import CommonOptions
from ..wire.dialect import Dialect
from . import openai_batch
from .ask import Asker, prepared, prepared_for_lines
from .formats import Format, output_format
from .identify import CHUNK, Identifier
from .inputs import Input, open_input
from .prompts import Prompt, prompt as read_prompt
from .row import Item
from .runner import Feed, MayHaveRun, Runner
from .store import Store, open_store, read_records
from .summary import Summary
from .task import Verb

FORM_OF_INPUT = {"parquet": "parquet", "openai": "openai"}
"""The default format of the output by that of the input, if it is not JSON lines."""
EVERY = 1000
"""Rows of the first pass after which the event loop gets its turn."""


class BatchOptions(CommonOptions, total=False):
    """The options of a batch, besides those of every verb.

    `dialect` is the model's dialect, as in `ts.model`. `concurrency` is the most rows in progress at once.
    `retry_errors` repeats rows whose record is an error. `may_have_run` says what to do with a row whose calls were
    running when the process died: "error", or "again". `format` is the format of the output, `shard` the number of rows
    per file. `price` is that of a million input tokens and of a million output tokens. `progress` is called often with
    the Summary so far. `tries` is as in `decide`.
    """

    tries: int | None
    dialect: str | Dialect | None
    concurrency: int
    retry_errors: bool
    may_have_run: MayHaveRun
    format: str | None
    shard: int
    price: tuple[float, float] | None
    progress: Callable[[Summary], None] | None


OWN = BatchOptions.__annotations__.keys() - CommonOptions.__annotations__.keys()


def batch(
    rows: Any,
    out: Path | str,
    prompt: str = "text",
    id: str | None = "id",  # noqa: A002 - the name of the column is `id` in most tables
    verb: Verb = "decide",
    tools: Any = (),
    kind: Any = None,
    model: Any = None,
    **options: Unpack[BatchOptions],
) -> Summary:
    """Send every row of a table to a model, write each record to the directory `out` once, and return a summary.

    `rows` is the path of a file (JSON lines, CSV, Parquet, OpenAI's Batch format), an iterable of dicts, or an Arrow
    table. `prompt` is a column, or a text with columns in braces; `id` is the column of the id, None to derive it from
    the row's content. `verb` is decide (with `tools`), extract (with `kind`, a type or a JSON Schema) or run. A second
    call with the same arguments continues the job; see `docs/how-to/batch.md`.

    A row that fails becomes a record with an error. Raises UsageError for an invalid input, option or directory, the
    ModelError that every row would get, and OSError if the disk is full; finished rows stay. After Ctrl-C it finishes
    and writes the rows in progress, and raises KeyboardInterrupt with the summary as its message; a second Ctrl-C
    raises it at once.
    """
    job = BatchJob(rows, Path(out).expanduser(), prompt, id, verb, tools, kind, {**options, "model": model})
    return run_sync_here(job.run, job.stop)


async def abatch(
    rows: Any,
    out: Path | str,
    prompt: str = "text",
    id: str | None = "id",  # noqa: A002 - as in `batch`
    verb: Verb = "decide",
    tools: Any = (),
    kind: Any = None,
    model: Any = None,
    **options: Unpack[BatchOptions],
) -> Summary:
    """`batch` for async code. A cancellation aborts the rows in progress; they are sent again the next time."""
    job = BatchJob(rows, Path(out).expanduser(), prompt, id, verb, tools, kind, {**options, "model": model})
    return await job.run()


def read_batch(out: Path | str) -> Iterator[dict[str, Any]]:
    """Yield the finished rows as dicts, in the order of the input; also while a batch is running in the directory.

    Raises UsageError if the directory contains no batch.
    """
    path = Path(out).expanduser()
    records = read_records(path)
    first = next(records, None)
    return records if first is None else itertools.chain([first], records)


# ------------------------------------------------------------------ inside


async def _at_once(do: Callable[[], Any]) -> Any:
    return do()


@dataclass(frozen=True, slots=True)
class BatchRun:
    """What one run of a job needs: its parts, and its `own` options, which no verb has."""

    source: Input
    store: Store
    asker: Asker
    prompt: Prompt
    summary: Summary
    own: Mapping[str, Any]
    here: Here


@dataclass(slots=True)
class BatchJob:
    """A batch that is about to run, with the parameters of `batch`."""

    rows: Any
    out: Path
    prompt: str
    id: str | None
    verb: Verb
    tools: Any
    kind: Any
    options: dict[str, Any]
    runner: Runner | None = None
    stopped: bool = False

    def stop(self) -> None:
        """End the run in an orderly way; see `Runner.stop`."""
        self.stopped = True
        if self.runner is not None:
            self.runner.stop()

    async def run(self, here: Here = _at_once) -> Summary:
        """Run the job and return its summary. `here` runs code in the caller's thread: a user's iterable is read there."""
        check_run_options(self.options, ["model", *BatchOptions.__annotations__], "a batch")
        own = {name: self.options.pop(name) for name in list(self.options) if name in OWN}
        _check_numbers(own)
        checked_function("progress", own.get("progress"))
        prompt, source = read_prompt(self.prompt), open_input(self.rows)
        prompt = openai_batch.PROMPT if source.form == "openai" else prompt
        form = output_format(own.get("format") or FORM_OF_INPUT.get(source.form, "jsonl"))
        asker = await self._asker(source, form, prompt, own)
        task = asker.task
        summary = Summary(self.out, task.fingerprint, source.total, price=own.get("price"))
        parts = {**task.parts, "id": self.id}
        try:
            with open_store(self.out, parts, task.fingerprint, form, own.get("shard", 10_000)) as store:
                return await self._run(BatchRun(source, store, asker, prompt, summary, own, here))
        except sqlite3.Error as error:
            raise OSError(
                f"{self.out}: {error}; {summary.done:,} rows are done; run the same command to continue"
            ) from error

    async def _asker(self, source: Input, form: Format, prompt: Prompt, own: Mapping[str, Any]) -> Asker:
        """Return the Asker for rows or for lines of OpenAI's Batch format."""
        further: dict[str, Any] = {"tries": own.get("tries"), "dialect": own.get("dialect")}
        if source.form != "openai":
            if form.name == "openai":
                raise UsageError("format: the openai format is for an input in OpenAI's Batch format")
            return await prepared(prompt, self.verb, self.tools, self.kind, self.options, **further)
        if self.verb != "decide":
            raise UsageError(f"verb: an input in OpenAI's Batch format needs decide, received {self.verb}")
        self.id = "custom_id"
        return await prepared_for_lines({**self.options, "tools": list(self.tools), "kind": self.kind}, **further)

    async def _run(self, run: BatchRun) -> Summary:
        store, asker, own = run.store, run.asker, run.own
        asker.begun = lambda row, names: store.begin(row.place, names)
        asker.again = own.get("may_have_run") == "again"
        if run.source.repeatable:
            run.summary.rows = await self._checked(run.source, Identifier(store, self.id, run.prompt))
        self.runner = Runner(
            store,
            asker.answer,
            run.summary,
            concurrency=own.get("concurrency", 16),
            retry_errors=own.get("retry_errors", False),
            may_have_run=own.get("may_have_run", "error"),
            progress=own.get("progress"),
        )
        if self.stopped:
            self.runner.stop()
        return await self.runner.run(feed(run.source, run.here), Identifier(store, self.id, run.prompt))

    async def _checked(self, source: Input, identifier: Identifier) -> int | None:
        """Return the number of rows, after a first pass that checks that ids are unique and columns exist. None if the
        job is stopped meanwhile."""
        if source.columns is not None:
            identifier.check_columns(source.columns, source.name)
        for row, _ in identifier.readable_rows(source):
            if row.place % EVERY == 0:
                await asyncio.sleep(0)
                if self.stopped:
                    return None
        identifier.store.commit()
        return identifier.count


def feed(source: Input, here: Here) -> Feed:
    """Return a function that yields the items of an input, a few at a time."""
    items = source.items()

    def some() -> Sequence[Item]:
        return list(itertools.islice(items, CHUNK))

    if not source.repeatable:
        return lambda: here(some)

    async def feed() -> Sequence[Item]:
        return some()

    return feed


def _check_numbers(own: Mapping[str, Any]) -> None:
    for name, most in (("concurrency", 10_000), ("shard", 10_000_000)):
        value = own.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise UsageError(f"{name}: expected a whole number from 1 to {most:,}, received {value!r:.80}")
    if own.get("may_have_run", "error") not in ("error", "again"):
        raise UsageError(f"may_have_run: expected error or again, received {own['may_have_run']!r:.80}")
    price: Any = own.get("price")
    if price is not None and not _is_price(price):
        raise UsageError(f"price: expected two numbers, per million input and output tokens, received {price!r:.80}")


def _is_price(value: Any) -> bool:
    if not isinstance(value, tuple | list):
        return False
    numbers = cast("Sequence[Any]", value)
    return len(numbers) == 2 and all(isinstance(one, int | float) and one >= 0 for one in numbers)
