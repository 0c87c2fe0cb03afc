"""Cells without a value: null in all its forms, blank texts; and the tables that they come from."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy
import pytest
from test_batch import speaking

import toolspeak as ts
from toolspeak.batch.inputs import open_input
from toolspeak.batch.prompts import prompt
from toolspeak.batch.row import is_null


class NAType:
    """A null that is neither equal nor unequal to anything, as pandas.NA."""

    def __ne__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    __hash__ = object.__hash__


NULLS = [None, math.nan, numpy.float32("nan"), numpy.datetime64("NaT"), Decimal("NaN"), NAType()]
EMPTY = [*NULLS, "", " \t\n", "\u3000"]
VALUES = [
    "a",
    0,
    0.0,
    False,
    b"",
    {},
    numpy.array([]),
    numpy.array([1.0, math.nan]),
    [{"role": "user", "content": "a"}],
]


@pytest.mark.parametrize("cell", EMPTY, ids=lambda cell: type(cell).__name__)
def test_an_empty_cell_is_no_prompt(cell: Any) -> None:
    with pytest.raises(ts.UsageError, match="the column 'text' is empty"):
        prompt("text").messages({"text": cell})
    with pytest.raises(ts.UsageError, match="the columns 'text', 'title' are empty"):
        prompt("{text}: {title} ({text})").messages({"text": cell, "title": None})


@pytest.mark.parametrize("cell", NULLS, ids=lambda cell: type(cell).__name__)
def test_a_null_beside_other_cells_inserts_nothing(cell: Any) -> None:
    assert is_null(cell)
    (message,) = prompt("{title}: {text}").messages({"text": cell, "title": "Order 7"})
    assert message["content"] == "Order 7: "


@pytest.mark.parametrize("cell", VALUES, ids=lambda cell: type(cell).__name__)
def test_a_value_is_no_null(cell: Any) -> None:
    assert not is_null(cell)
    assert prompt("text").messages({"text": cell})


def test_an_empty_conversation_is_empty() -> None:
    with pytest.raises(ts.UsageError, match="the column 'text' is empty"):
        prompt("text").messages({"text": []})


def test_a_template_without_columns_is_a_prompt() -> None:
    assert prompt("{{}}").messages({}) == [{"role": "user", "content": "{}"}]


def test_a_file_has_one_rule_for_null_and_blank(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,text\n1,\n2,   \n3,hello\n")
    (tmp_path / "in.jsonl").write_text(
        '{"id": 1, "text": ""}\n{"id": 2, "text": null}\n{"id": 3, "text": NaN}\n{"id": 4, "text": "hello"}\n'
    )
    for name, wrong in (("in.csv", 2), ("in.jsonl", 3)):
        model, echo = speaking(lambda _: "fine")
        summary = ts.batch(tmp_path / name, tmp_path / f"{name}.out", model=model)
        assert summary.kinds == {"UsageError": wrong}
        assert echo.prompts == ["hello"]


@pytest.mark.parametrize("cell", [None, math.nan, NAType(), ""], ids=lambda cell: type(cell).__name__)
def test_an_id_without_a_value_is_none(tmp_path: Path, cell: Any) -> None:
    model, _ = speaking(lambda _: "fine")
    ts.batch([{"id": cell, "text": "a"}, {"id": 2, "text": "b"}], tmp_path / "out", model=model)
    first, _ = ts.read_batch(tmp_path / "out")
    assert "there is no id in the column 'id'" in first["error"]


# ------------------------------------------------------------------ data frames


def items(table: Any) -> list[Any]:
    return [dict(item.data or {}) for item in open_input(table).items()]


def test_nulls_of_pandas_are_null() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "id": [1, 2, 3],
            "text": ["a", None, math.nan],
            "day": [pandas.Timestamp("2026-01-02"), pandas.NaT, None],
            "count": pandas.array([7, pandas.NA, None], dtype="Int64"),
        }
    )
    first, *others = items(frame)
    assert (first["text"], first["count"]) == ("a", 7)
    assert others == [{"id": number, "text": None, "day": None, "count": None} for number in (2, 3)]
    for cell in (pandas.NA, pandas.NaT):
        with pytest.raises(ts.UsageError, match="the column 'text' is empty"):
            prompt("text").messages({"text": cell})


def test_polars_is_read() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": [1, 2], "text": ["a", None]})
    assert items(frame) == [{"id": 1, "text": "a"}, {"id": 2, "text": None}]
    with pytest.raises(ts.UsageError, match=r"received a LazyFrame: pass .collect\(\)"):
        open_input(frame.lazy())


class Table:
    """A table of a library that exports Arrow, as DuckDB's and Ibis's."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.columns = table.column_names

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def test_tables_of_arrow_are_read() -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"id": [1, 2], "text": ["a", None]})
    for form in (table, table.to_reader(), table.to_batches()[0], Table(table)):
        assert items(form) == table.to_pylist()
