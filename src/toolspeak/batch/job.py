"""The entry points `batch`, `abatch` and `read_batch`. They join the input, the task, the store and the runner."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, cast

from ..calling_thread import Here, run_sync_here
from ..errors import UsageError
from ..models.sampling import check_options
from ..verbs import Settings
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
"""The format of the output by that of the input, where it is not JSON lines."""
EVERY = 1000
"""Rows of the first pass after which others get their turn."""


class BatchOptions(Settings, total=False):
    """What a batch takes beside what every verb takes.

    `dialect` is what the model is prompted in, as in `ts.model`. `concurrency` is the most rows under way at once. `retry_errors` has rows asked again whose record is an error.
    `may_have_run` says what becomes of a row whose calls were being run when the process died: "error", or "again".
    `format` is that of the output, `shard` the number of rows in one file of it. `price` is that of a million tokens sent
    and of a million received. `progress` is called with the Summary so far, often. `tries` is as in `decide`.
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


OWN = BatchOptions.__annotations__.keys() - Settings.__annotations__.keys()


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
    """What became of a table: each row put to a model, each record written to the directory `out` once.

    `rows` is the path of a file (JSON lines, CSV, Parquet, OpenAI's Batch format), an iterable of dicts, or an Arrow table. `prompt` is a column, or a text with columns
    in braces; `id` the column of the id, None for one from the row's content. `verb` is decide (with `tools`), extract (with
    `kind`, a type or a JSON Schema) or run. Called again, it goes on where it was; see `docs/how-to/batch.md`.

    A row that fails is a row with an error. Ctrl-C finishes the rows that are under way, a second one does not. Raises
    UsageError for an input, an option or a directory that cannot be, the ModelError that would come for every row, OSError
    where the disk takes no more; what is done by then stays done.
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
    """As `batch`, awaited. Cancelled, it ends the rows that are under way: they are asked again the next time."""
    job = BatchJob(rows, Path(out).expanduser(), prompt, id, verb, tools, kind, {**options, "model": model})
    return await job.run()


def read_batch(out: Path | str) -> Iterator[dict[str, Any]]:
    """The rows that are done, as dicts, in the order of the input; also while a batch is at work on the directory.

    Raises UsageError where the directory holds no batch.
    """
    path = Path(out).expanduser()
    records = read_records(path)
    first = next(records, None)
    return records if first is None else itertools.chain([first], records)


# ------------------------------------------------------------------ inside


async def _at_once(do: Callable[[], Any]) -> Any:
    return do()


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
        """Ends the run in order; see `Runner.stop`."""
        self.stopped = True
        if self.runner is not None:
            self.runner.stop()

    async def run(self, here: Here = _at_once) -> Summary:
        """The summary. `here` does something in the thread of the caller: an iterable that is not ours is read there."""
        check_options(self.options, ["model", *BatchOptions.__annotations__], "a batch")
        own = {name: self.options.pop(name) for name in list(self.options) if name in OWN}
        _check_numbers(own)
        prompt = read_prompt(self.prompt)
        source = open_input(self.rows)
        form = output_format(own.get("format") or FORM_OF_INPUT.get(source.form, "jsonl"))
        asker = await self._asker(source, form, prompt, own)
        task = asker.task
        summary = Summary(self.out, task.fingerprint, source.total, price=own.get("price"))
        parts = {**task.parts, "id": self.id}
        try:
            with open_store(self.out, parts, task.fingerprint, form, own.get("shard", 10_000)) as store:
                return await self._run(source, store, asker, prompt, summary, own, here)
        except sqlite3.Error as error:
            raise OSError(f"{self.out}: {error}; {summary.done:,} rows are done, the same command goes on") from error

    async def _asker(self, source: Input, form: Format, prompt: Prompt, own: Mapping[str, Any]) -> Asker:
        """What asks the model, for rows or for lines of OpenAI's Batch format."""
        further: dict[str, Any] = {"tries": own.get("tries"), "dialect": own.get("dialect")}
        if source.form != "openai":
            if form.name == "openai":
                raise UsageError("format: the openai format is for an input in OpenAI's Batch format")
            return await prepared(prompt, self.verb, self.tools, self.kind, self.options, **further)
        if self.verb != "decide":
            raise UsageError(f"verb: an input in OpenAI's Batch format is decided on, received {self.verb}")
        self.id = "custom_id"
        return await prepared_for_lines({**self.options, "tools": list(self.tools), "kind": self.kind}, **further)

    async def _run(
        self,
        source: Input,
        store: Store,
        asker: Asker,
        prompt: Prompt,
        summary: Summary,
        own: Mapping[str, Any],
        here: Here,
    ) -> Summary:
        asker.begun = lambda row, names: store.begin(row.place, names)
        asker.again = own.get("may_have_run") == "again"
        prompt = openai_batch.PROMPT if source.form == "openai" else prompt
        if source.repeatable:
            summary.rows = await self._checked(source, Identifier(store, self.id, prompt))
        self.runner = Runner(
            store,
            asker.answer,
            summary,
            concurrency=own.get("concurrency", 16),
            retry_errors=own.get("retry_errors", False),
            may_have_run=own.get("may_have_run", "error"),
            progress=own.get("progress"),
        )
        if self.stopped:
            self.runner.stop()
        return await self.runner.run(feed(source, here), Identifier(store, self.id, prompt))

    async def _checked(self, source: Input, identifier: Identifier) -> int:
        """The number of rows, after a first pass over all of them: ids are unique, and the columns are there."""
        if source.columns is not None:
            identifier.check_columns(source.columns, source.name)
        for row, _ in identifier.rows(source):
            if row.place % EVERY == 0:
                await asyncio.sleep(0)
        identifier.store.commit()
        return identifier.count


def feed(source: Input, here: Here) -> Feed:
    """The items of an input, a few at a time."""
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
        raise UsageError(f"price: expected two numbers, of a million tokens sent and received, received {price!r:.80}")


def _is_price(value: Any) -> bool:
    if not isinstance(value, tuple | list):
        return False
    numbers = cast("Sequence[Any]", value)
    return len(numbers) == 2 and all(isinstance(one, int | float) and one >= 0 for one in numbers)
