"""Reads and writes Parquet and Arrow. Needs pyarrow, which is imported on first use."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..errors import MissingExtra, UsageError
from .row import COLUMNS, Item, RecordLines

ROWS = 256
"""Rows in memory at once."""
IN_MEMORY = 16 * 2**20
"""Bytes of a shard that are kept in memory while it is written; more go to a temporary file."""


class Parquet(RecordLines):
    """Shards in Parquet: the columns of `row.COLUMNS`, `value` as JSON text, ids as integers if all of them are."""

    name, suffix = "parquet", ".parquet"

    def read(self, path: Path) -> Iterator[str]:
        for row in _batches(path):
            if row["value"] is not None:
                row["value"] = json.loads(row["value"])
            yield json.dumps(row, ensure_ascii=False)

    def write(self, file: BinaryIO, lines: Iterable[str]) -> None:
        parquet = library("pyarrow.parquet")
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as spool:
            numbers = True  # the type of the id column is known only after the last one
            for line in lines:
                numbers = numbers and type(json.loads(line)["id"]) is int
                spool.write(line.encode("utf-8", "backslashreplace") + b"\n")
            spool.seek(0)
            schema = _schema(numbers)
            with parquet.ParquetWriter(file, schema) as writer:
                rows = (_row(json.loads(line), numbers) for line in spool)
                while some := list(islice(rows, ROWS)):
                    writer.write_table(library("pyarrow").Table.from_pylist(some, schema))


def parquet_rows(path: Path) -> tuple[tuple[str, ...], int]:
    """Return the columns of a Parquet file, and its number of rows. Raises UsageError for any other file."""
    with _open(path) as file:
        return tuple(file.schema_arrow.names), file.metadata.num_rows


def parquet_items(path: Path) -> Iterator[Item]:
    """Yield the rows of a Parquet file."""
    for number, row in enumerate(_batches(path), 1):
        yield Item(row, f"{path}, row {number}")


def arrow_items(table: Any) -> Iterator[Item]:
    """Yield the rows of an Arrow table, or of record batches."""
    batches = table.to_batches(max_chunksize=ROWS) if hasattr(table, "to_batches") else table
    number = 0
    for batch in batches:
        for at in range(0, batch.num_rows, ROWS):
            for row in batch.slice(at, ROWS).to_pylist():
                number += 1
                yield Item(row, f"row {number}")


def library(name: str) -> Any:
    """Return a module of pyarrow. Raises MissingExtra if it is not installed."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra("Parquet needs pyarrow: pip install 'toolspeak[batch]'") from error


def _open(path: Path) -> Any:
    errors: Any = library("pyarrow").ArrowException
    try:
        return library("pyarrow.parquet").ParquetFile(path)
    except (errors, OSError) as error:
        raise UsageError(f"{path} is not a Parquet file: {error}") from None


def _batches(path: Path) -> Iterator[dict[str, Any]]:
    errors: Any = library("pyarrow").ArrowException
    with _open(path) as file:
        try:
            for batch in file.iter_batches(ROWS):
                yield from cast("list[dict[str, Any]]", batch.to_pylist())
        except (errors, OSError) as error:
            raise UsageError(f"{path} cannot be read: {error}") from None


def _row(record: dict[str, Any], numbers: bool) -> dict[str, Any]:
    value = record["value"]
    text = None if value is None else json.dumps(value, ensure_ascii=False)
    return {**record, "value": text, "id": record["id"] if numbers else str(record["id"])}


def _schema(numbers: bool) -> Any:
    arrow = library("pyarrow")
    whole, text = arrow.int64(), arrow.string()
    types = {
        "id": whole if numbers else text,
        "notes": arrow.list_(text),
        "seconds": arrow.float64(),
        **dict.fromkeys(("attempts", "tokens", "prompt_tokens", "completion_tokens"), whole),
    }
    return arrow.schema([(name, types.get(name, text)) for name in COLUMNS])
