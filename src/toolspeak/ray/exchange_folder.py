"""The files between a job's directory and a cluster: workers read rows from them and write records to them.

    OUT/.ray/FINGERPRINT/1/rows/         the rows to be sent, one file per block
                          /records/      the records from workers, one file per block, by Ray's Parquet writer
                          /checkpoint/   Ray's row checkpoints: a block is complete once its ids are here
                          /stop          created by Ctrl-C: no further row starts
                          /failure.json  the error that ends the job, from the worker that got it

Ray writes a file of records in two phases: the ids go to `NAME.pending.parquet`, the records to `NAME….parquet`, and
once they are complete the first is renamed to `NAME.parquet`. So records count only if their checkpoint is committed.

Every run has a folder of its own. Workers of a killed driver may continue for a moment; what they still commit goes to
a folder that is no longer read.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import errors
from ..batch.parquet import library
from ..batch.row import OutputRow, Row
from ..batch.store import DONE, Store
from ..errors import ModelError, ToolspeakError
from ..files import replacing

HOME = ".ray"
PENDING = ".pending"
BLOCK = 128
"""Rows per block. With a worker its blocks are lost, and their rows are sent again."""


class Staging:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows, self.records, self.checkpoint = (path / name for name in ("rows", "records", "checkpoint"))
        self.stop, self.failure = path / "stop", path / "failure.json"
        self.blocks = 0
        self._merged: set[str] = set()

    def make(self) -> None:
        """Create the folders."""
        for folder in (self.rows, self.records, self.checkpoint):
            folder.mkdir(parents=True)

    def remove(self) -> None:
        """Remove the folder. Files that a worker is still writing are left for the next run."""
        shutil.rmtree(self.path, ignore_errors=True)
        for folder in (self.path.parent, self.path.parent.parent):
            with contextlib.suppress(OSError):  # another run still has files there
                folder.rmdir()

    def write_block(self, rows: list[Row]) -> None:
        """Write a block of rows."""
        table = library("pyarrow").Table.from_pydict(
            {
                "place": [row.place for row in rows],
                "id": [row.key for row in rows],
                "row": [json.dumps([row.id, row.where, row.data], ensure_ascii=True, default=str) for row in rows],
            },
            schema(),
        )
        library("pyarrow.parquet").write_table(table, self.rows / f"{self.blocks:08}.parquet")
        self.blocks += 1

    def read_block(self, number: int) -> list[Row]:
        """Return the rows of a block, by its number from 0."""
        table = library("pyarrow.parquet").read_table(self.rows / f"{number:08}.parquet")
        rows = [(row["place"], json.loads(row["row"])) for row in table.to_pylist()]
        return [Row(place, id_, data, where) for place, (id_, where, data) in rows]

    def fail(self, error: Exception) -> None:
        """Store the error that ends the job for the driver: Ray itself passes on only its text."""
        with contextlib.suppress(OSError), replacing(self.failure) as file:
            file.write(json.dumps([type(error).__name__, str(error)]).encode())

    def error(self) -> ToolspeakError | None:
        """Return the error that a worker stored."""
        try:
            name, message = json.loads(self.failure.read_bytes())
        except (OSError, ValueError):
            return None
        kind = getattr(errors, name, None)
        return ModelError(f"a worker failed: {name}: {message}") if kind is None else kind(message)

    def committed(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the records of each block that was committed since the last call: `place`, `id`, and the record as
        JSON."""
        names = {file.stem for file in self.checkpoint.glob("*.parquet") if not file.stem.endswith(PENDING)}
        for name in sorted(names - self._merged):
            self._merged.add(name)
            for file in sorted(self.records.glob(f"{name}*.parquet")):
                yield library("pyarrow.parquet").read_table(file).to_pylist()


def schema() -> Any:
    """Return the columns of a block, the same for rows and records: `place` and `id`, and the rest as JSON text."""
    arrow = library("pyarrow")
    return arrow.schema([("place", arrow.int64()), ("id", arrow.string()), ("row", arrow.string())])


class Merge:
    """Merges records into the directory of the job, each id once: a row that is done there stays unchanged."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.left: Counter[int] = Counter()
        """The rows of each shard that are still in progress; at zero the shard is written."""

    def merge(self, staging: Staging) -> Iterator[OutputRow]:
        """Merge committed records. Yields each new record after it is on disk."""
        for rows in staging.committed():
            records = [(row["place"], OutputRow(**json.loads(row["row"]))) for row in rows]
            states = self.store.register([(place, str(record.id)) for place, record in records])
            fresh = [one for one, (_, state) in zip(records, states, strict=True) if state != DONE]
            for place, record in fresh:
                self.store.add(place, record)
            self.store.commit()
            yield from (record for _, record in fresh)
            self._write_parts([self.store.part(place) for place, _ in fresh])

    def _write_parts(self, parts: list[int]) -> None:
        self.left.subtract(parts)
        for part in sorted(set(parts)):
            if self.left[part] == 0:
                self.store.write_part(part)


def new_run(home: Path, merge: Merge) -> Staging:
    """Return the folder of a new run, after merging and removing the folders of earlier ones."""
    numbers = sorted(int(path.name) for path in home.iterdir() if path.name.isdigit()) if home.exists() else []
    for number in numbers:
        earlier = Staging(home / str(number))
        for _ in merge.merge(earlier):
            pass
        earlier.remove()
    merge.store.write_rest()
    merge.left.clear()
    staging = Staging(home / str(max(numbers, default=0) + 1))
    staging.make()
    return staging
