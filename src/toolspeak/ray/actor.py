"""An actor of the cluster: sends a block of rows to the model and returns their records."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..batch.ask import Asker, prepared, prepared_for_lines
from ..batch.common_error import Rejected
from ..batch.parquet import library
from ..batch.prompts import Prompt
from ..batch.row import OutputRow, Row
from ..batch.task import Verb
from ..errors import UsageError
from ..types import Tool
from .asking import RowAsker
from .exchange_folder import Staging, schema

STOPPED = "Stopped"
"""The error of a row that was not started because the job ends; it is not written."""
LOOK = 0.5
"""Seconds between two checks whether the job should end."""


@dataclass(frozen=True, slots=True)
class Work:
    """Everything that an actor needs; it is sent to each one."""

    form: str
    prompt: Prompt
    verb: Verb
    tools: tuple[Tool[..., Any], ...]
    kind: Any
    settings: Mapping[str, Any]
    further: Mapping[str, Any]
    concurrency: int
    again: bool
    parts: str
    """The parts of the fingerprint, as JSON text."""
    fingerprint: str
    run: Path
    """The folder of the run: see `staging`."""
    folder: Path
    """The working folder of the command, for relative paths."""

    async def asker(self) -> Asker:
        """Return the Asker on this machine. Raises UsageError if its requests would differ from the driver's."""
        if self.form == "openai":
            asker = await prepared_for_lines(dict(self.settings), **self.further)
        else:
            asker = await prepared(self.prompt, self.verb, self.tools, self.kind, dict(self.settings), **self.further)
        asker.again = self.again
        if asker.task.fingerprint != self.fingerprint:
            there = json.loads(self.parts)
            here = json.loads(json.dumps(asker.task.parts, default=str))
            changed = ", ".join(
                f"{name}: {here.get(name)}, not {there[name]}" for name in there if here.get(name) != there[name]
            )
            raise UsageError(f"the settings of a worker differ from those of the command: {changed}")
        return asker


class BlockAsker:
    """The callable class of `map_batches`: block numbers in, in an Arrow table, and their records out."""

    def __init__(self, work: Work) -> None:
        self.work, self.staging = work, Staging(work.run)
        with contextlib.suppress(OSError):  # it may be a folder of one machine
            os.chdir(work.folder)
        self._asker: asyncio.Task[RowAsker] | None = None
        self._looked = 0.0
        self._stopped = False

    async def __call__(self, numbers: Any) -> Any:
        """Return the records of blocks, without rows that were not started."""
        if self._asker is None:
            self._asker = asyncio.create_task(self._ready())
        try:
            rows = [row for number in numbers["id"].to_pylist() for row in self.staging.read_block(number)]
            asker = await asyncio.shield(self._asker)
            records = await asker.records(rows)
        except Exception as error:
            self.staging.fail(error)
            raise
        done = [(row, record) for row, record in zip(rows, records, strict=True) if record.error != STOPPED]
        return library("pyarrow").Table.from_pydict(
            {
                "place": [row.place for row, _ in done],
                "id": [row.key for row, _ in done],
                "row": [_text(record) for _, record in done],
            },
            schema(),
        )

    async def _ready(self) -> RowAsker:
        asker = await self.work.asker()

        async def answer(row: Row) -> OutputRow | Rejected:
            return OutputRow(row.id, error=STOPPED) if self._is_stopped() else await asker.answer(row)

        return RowAsker(answer, self.work.concurrency)

    def _is_stopped(self) -> bool:
        now = time.monotonic()
        if not self._stopped and now - self._looked > LOOK:
            self._looked, self._stopped = now, self.staging.stop.exists()
        return self._stopped


def _text(record: OutputRow) -> str:
    """Return a record as JSON text, including the response of OpenAI's Batch format."""
    columns = {field.name: getattr(record, field.name) for field in fields(record)}
    return json.dumps(columns, ensure_ascii=True, default=str)
