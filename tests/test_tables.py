"""What a model reads of a table: rows of records, missing values as null, dates in ISO format, cut by rows."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pyarrow
import pytest

from toolspeak.result_tables import unique_names
from toolspeak.tool_results import result_text

COLUMNS: dict[str, list[Any]] = {
    "city": ["Xiamen", None, "Oslo"],
    "count": [1, None, 3],
    "day": [dt.date(2026, 1, 2), None, dt.date(2026, 1, 3)],
    "time": [dt.datetime(2026, 1, 2, 3, 4), None, dt.datetime(2026, 1, 3)],
    "tags": [["a"], None, []],
}
ROWS = [
    {"city": "Xiamen", "count": 1, "day": "2026-01-02", "time": "2026-01-02T03:04:00", "tags": ["a"]},
    {"city": None, "count": None, "day": None, "time": None, "tags": None},
    {"city": "Oslo", "count": 3, "day": "2026-01-03", "time": "2026-01-03T00:00:00", "tags": []},
]


def table(library: str, columns: dict[str, list[Any]]) -> Any:
    module = pytest.importorskip(library)
    return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)


LIBRARIES = pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])


def read(value: Any) -> Any:
    return json.loads(result_text(value, None))


@LIBRARIES
def test_a_table_becomes_rows(library: str) -> None:
    value = table(library, COLUMNS)
    assert read(value) == ROWS
    assert read({"rows": value, "total": 3}) == {"rows": ROWS, "total": 3}
    assert read(table(library, {})) == []


@LIBRARIES
def test_a_long_table_is_cut_by_rows_with_their_count(library: str) -> None:
    value = table(library, {"n": list(range(5000)), "word": ["word"] * 5000})
    text = result_text(value, 2000)
    *_, last = rows = json.loads(text)
    (gap,) = (row for row in rows if isinstance(row, str))
    assert len(text) <= 2000
    assert rows[0] == {"n": 0, "word": "word"}
    assert last == {"n": 4999, "word": "word"}
    assert gap == f"… {5000 - len(rows) + 1} more items left out …"


def test_columns_batches_and_values_of_arrow() -> None:
    value = pyarrow.table({"n": [1, None]})
    assert read(value.to_batches()[0]) == [{"n": 1}, {"n": None}]
    assert read(value["n"]) == read(pyarrow.array([1, None])) == [1, None]
    assert read(value["n"][0]) == 1


def test_a_column_whose_name_is_there_twice_is_read_twice() -> None:
    value = pyarrow.Table.from_arrays([pyarrow.array([1]), pyarrow.array([2])], names=["n", "n"])
    assert read(value) == [{"n": 1, "n (2)": 2}]
    assert unique_names(["n", "n", "n (2)", "m"]) == ["n", "n (2)", "n (2) (2)", "m"]


def test_an_index_with_meaning_becomes_fields() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"city": ["Xiamen", "Oslo", "Oslo"], "n": [1, 2, 3], "year": [2025, 2025, 2026]})
    assert read(frame[frame.n > 2]) == [{"city": "Oslo", "n": 3, "year": 2026}]
    assert read(frame.groupby("city").n.sum()) == [{"city": "Oslo", "n": 5}, {"city": "Xiamen", "n": 1}]
    both = read(frame.groupby(["city", "year"]).n.sum())
    assert both[0] == {"city": "Oslo", "year": 2025, "n": 2}
    assert read(frame[["n"]].describe())[0] == {"index": "count", "n": 3}
    assert read(frame.set_index(pandas.to_datetime(["2026-01-01", "2026-01-02", None]))[["n"]]) == [
        {"index": "2026-01-01T00:00:00", "n": 1}, {"index": "2026-01-02T00:00:00", "n": 2}, {"index": None, "n": 3},
    ]  # fmt: skip


def test_missing_values_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    assert read(pandas.Series([1.5, None])) == [1.5, None]
    assert read(pandas.Series([1, None], dtype="Int64")) == [1, None]
    assert read(pandas.Series(pandas.to_datetime(["2026-01-01", None]))) == ["2026-01-01T00:00:00", None]
    assert read({"last": pandas.NaT}) == {"last": None}


def test_nan_is_a_value_where_null_is_another() -> None:
    nan = float("nan")
    assert read(pyarrow.table({"x": pyarrow.array([nan, None], pyarrow.float64())})) == [{"x": "NaN"}, {"x": None}]
    polars = pytest.importorskip("polars")
    assert read(polars.DataFrame({"x": [nan, None]})) == [{"x": "NaN"}, {"x": None}]
