"""Reads tables of pandas, polars and pyarrow, which tools return, as rows: one record per row. None of these libraries is
imported: a table is recognized by its methods.

- A value that pandas counts as missing (None, NaN, NaT, NA) is None. polars and pyarrow distinguish NaN from null, so
  their NaN is a value.
- An index of pandas becomes fields of the rows, because the keys of a `groupby` are there. An unnamed index of whole
  numbers only counts rows, and is left out.
- Columns with the same name are all read; see `unique_names`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any, cast


def table_rows(value: Any) -> list[Any] | None:
    """The rows of a table as dicts, the values of a column as a list; None for anything else."""
    methods = set(dir(cast("type[Any]", type(value))))
    if methods >= {"notna", "itertuples"}:
        return _of_pandas(value)
    if methods >= {"notna", "reset_index"}:
        return _column_of_pandas(value)
    if "to_dicts" in methods:
        return value.to_dicts()
    if methods >= {"to_pylist", "column_names"}:
        columns = [column.to_pylist() for column in value.columns]
        return _records(value.column_names, zip(*columns, strict=True))
    return value.to_pylist() if "to_pylist" in methods else None


def unique_names(names: Iterable[str]) -> list[str]:
    """The names; of equal ones, the later ones get a number: `city`, `city (2)`."""
    unique: dict[str, None] = {}
    for text in names:
        name = text
        if name in unique:
            name = next(new for n in count(2) if (new := f"{text} ({n})") not in unique)
        unique[name] = None
    return list(unique)


def _column_of_pandas(column: Any) -> list[Any]:
    if _counts_rows(column.index):
        return column.astype(object).where(column.notna(), None).tolist()
    return _of_pandas(column.to_frame("value" if column.name is None else column.name))


def _of_pandas(frame: Any) -> list[Any]:
    names, labels = list(frame.columns), []
    if not _counts_rows(frame.index):
        names = [name if name is not None else "index" for name in frame.index.names] + names
        labels = [frame.index.get_level_values(level) for level in range(frame.index.nlevels)]
    cells = frame.astype(object).where(frame.notna(), None)
    columns = [label.astype(object).where(label.notna(), None) for label in labels]
    columns += [cells.iloc[:, place] for place in range(len(frame.columns))]
    return _records(names, zip(*columns, strict=True))


def _counts_rows(index: Any) -> bool:
    """Whether an index of pandas only has the numbers of rows."""
    return all([index.nlevels == 1, index.name is None, index.dtype.kind in "iu"])


def _records(columns: Iterable[Any], rows: Iterable[Iterable[Any]]) -> list[Any]:
    names = unique_names(map(_text, columns))
    return [dict(zip(names, row, strict=True)) for row in rows]


def _text(name: Any) -> str:
    """The name of a column as text; of a column with several levels, their names with dots."""
    return ".".join(map(str, cast("tuple[Any, ...]", name))) if isinstance(name, tuple) else str(name)
