"""Converts batches in the formats of Ray Data to rows, and adds columns to them.

A batch is a dict of NumPy arrays (Ray's own format), a pandas data frame or an Arrow table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..batch.row import COLUMNS, OutputRow
from ..errors import UsageError

OUTPUT = tuple(name for name in COLUMNS if name not in ("id", "value"))
"""The columns that a verb adds: those of a batch's output without the id, which is a column of the input."""


def names_of(batch: Any) -> list[str]:
    """Return the names of a batch's columns."""
    if isinstance(batch, Mapping):
        return [str(name) for name in cast("Mapping[str, Any]", batch)]
    names: Any = getattr(batch, "column_names", None)
    return [str(name) for name in (names if names is not None else batch.columns)]


def rows_of(batch: Any, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of a batch, with these columns only, as plain Python values."""
    return [
        dict(zip(columns, row, strict=True)) for row in zip(*(_values(batch[name]) for name in columns), strict=True)
    ]


def columns_of(records: Sequence[OutputRow], *, value: bool) -> dict[str, list[Any]]:
    """Return the columns that a verb adds; with `value` as JSON text for an extraction."""
    columns = {name: [getattr(record, name) for record in records] for name in OUTPUT}
    if value:
        values = (record.value for record in records)  # JSON text gives all rows of the column one type
        columns["value"] = [None if one is None else json.dumps(one, ensure_ascii=False) for one in values]
    return columns


def with_columns(batch: Any, columns: Mapping[str, list[Any]]) -> Any:
    """Return the batch in its own format with further columns, which replace those of the same name."""
    if isinstance(batch, Mapping):
        return {**cast("Mapping[str, Any]", batch), **columns}
    if hasattr(batch, "assign"):
        return batch.assign(**columns)
    from ..batch.parquet import library

    arrow = library("pyarrow")
    for name, values in columns.items():
        column = arrow.array(values, _types(arrow)[name])
        at = batch.schema.get_field_index(name)
        batch = batch.append_column(name, column) if at < 0 else batch.set_column(at, name, column)
    return batch


def _values(column: Any) -> list[Any]:
    """Return the values of a column as Python values, including lists."""
    for method in ("to_pylist", "tolist"):
        if hasattr(column, method):
            return [value.tolist() if hasattr(value, "tolist") else value for value in getattr(column, method)()]
    if isinstance(column, list):
        return cast("list[Any]", column)
    raise UsageError(f"expected a column of NumPy, pandas or Arrow, received {type(column).__name__}")


def _types(arrow: Any) -> dict[str, Any]:
    whole = dict.fromkeys(("attempts", "tokens", "prompt_tokens", "completion_tokens"), arrow.int64())
    text = dict.fromkeys((*OUTPUT, "value"), arrow.string())
    return {**text, **whole, "seconds": arrow.float64(), "notes": arrow.list_(arrow.string())}
