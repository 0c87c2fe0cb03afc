"""Reads the rows of an input: a file of JSON lines, CSV or Parquet, an Arrow table, or any iterable of dicts.

An unreadable line becomes an item with a problem, and reading continues: one bad line never ends a job. Only one line
is in memory at a time.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from ..errors import UsageError
from . import openai_batch
from .parquet import arrow_items, library, parquet_items, parquet_rows
from .row import Item, is_null, is_unicode, json_text

LONGEST_LINE = 64 * 2**20
"""The most bytes of a line of JSON; a longer one is a problem."""
UNCLOSED = "unexpected end of data"
"""The error of Python's CSV reader at the end of a file with an open quotation mark."""
TEXTS = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv"})
"""The suffixes of files that contain text."""
Items = Callable[[], Iterator[Item]]


@dataclass(frozen=True, slots=True)
class Input:
    """A source of rows: its `name`, and the items.

    If the input is `repeatable`, each call of `items` starts at the first row; otherwise it can be called once.
    `columns` are known if a file has a header, `total` if the number of rows is known in advance. `form` is the name of
    the format.
    """

    name: str
    items: Items
    repeatable: bool = True
    columns: tuple[str, ...] | None = None
    total: int | None = None
    form: str = "rows"


def open_input(rows: Any) -> Input:
    """Return the input for the path of a file, or an iterable of dicts. Raises UsageError for anything else."""
    if isinstance(rows, str | Path):
        return _file(Path(rows).expanduser())
    if isinstance(rows, Input):
        return rows
    rows = _frame_rows(rows)
    if _is_arrow(rows):
        return _arrow(rows)
    if isinstance(rows, list | tuple) and {isinstance(row, Mapping) for row in cast("list[Any]", rows)} == {False}:
        what = type(cast("list[Any]", rows)[0]).__name__
        raise UsageError(f'rows: expected dicts such as {{"id": 1, "text": "…"}}, received a list of {what}')
    if isinstance(rows, Mapping | bytes) or not isinstance(rows, Iterable):
        raise UsageError(
            f"rows: expected a path or an iterable of dicts, received {type(cast('object', rows)).__name__}"
        )
    values = cast("Iterable[Any]", rows)
    total = len(values) if hasattr(values, "__len__") else None  # type: ignore[arg-type]
    return Input("rows", lambda: _values(values), isinstance(values, list | tuple), total=total)


def _frame_rows(frame: Any) -> Any:
    """Return the rows of a data frame, whose own iteration would yield columns: dicts, or Arrow's record batches.

    Anything else is returned as it is.
    """
    if hasattr(frame, "iloc"):  # pandas has several nulls, and which one is in a column depends on its version
        records = frame.to_dict("records")
        return [{name: None if is_null(cell) else cell for name, cell in record.items()} for record in records]
    if hasattr(frame, "to_dicts"):  # polars
        return frame.to_dicts()
    if hasattr(frame, "__arrow_c_stream__") and not _is_arrow(frame):
        return library("pyarrow").RecordBatchReader.from_stream(frame)
    if hasattr(frame, "collect_schema"):
        raise UsageError(f"rows: expected a table, received a {type(frame).__name__}: pass .collect()")
    return frame


def _is_arrow(rows: Any) -> bool:
    return type(rows).__module__.partition(".")[0] == "pyarrow"


def _arrow(table: Any) -> Input:
    """Return the input for an Arrow table, or for record batches that can be read once."""
    if isinstance(table, library("pyarrow").RecordBatch):
        table = library("pyarrow").Table.from_batches([table])
    columns, repeatable = tuple(table.schema.names), hasattr(table, "to_batches")
    total = table.num_rows if hasattr(table, "num_rows") else None
    return Input("the table", lambda: arrow_items(table), repeatable, columns, total, form="parquet")


def _values(rows: Iterable[Any]) -> Iterator[Item]:
    for number, value in enumerate(rows, 1):
        where = f"row {number}"
        if isinstance(value, Mapping):
            yield Item(cast("Mapping[str, Any]", value), where)
        else:
            yield Item(None, where, f"expected a dict, received {type(value).__name__}")


def _check_readable(path: Path) -> None:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(f"{path} {what}: expected a file: .jsonl, .csv, .tsv or .parquet")
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    if path.suffix.lower() in TEXTS and _is_utf_16(start):
        raise UsageError(f"{path} is in UTF-16: convert it to UTF-8, for example with iconv -f UTF-16 -t UTF-8")


def _is_utf_16(start: bytes) -> bool:
    """Whether the start of a file is in UTF-16 or UTF-32: it has their mark, or every other byte of ASCII is 0."""
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return start.startswith(marks) or start.count(0) > len(start) / 4


def _file(path: Path) -> Input:
    _check_readable(path)
    match path.suffix.lower():
        case ".jsonl" | ".ndjson" | ".json":
            first = next((item.data for item in _json_lines(path) if not item.problem), None) or {}
            form = "openai" if {*openai_batch.COLUMNS} <= first.keys() else "jsonl"
            return Input(str(path), lambda: _json_lines(path), form=form)
        case ".parquet":
            columns, total = parquet_rows(path)
            return Input(str(path), lambda: parquet_items(path), columns=columns, total=total, form="parquet")
        case ".csv" | ".tsv":
            columns, delimiter = _header(path)
            return Input(str(path), lambda: _csv_rows(path, columns, delimiter), columns=columns, form="csv")
        case other:
            raise UsageError(
                f"{path}: expected .jsonl, .csv, .tsv or .parquet, received {other or 'a name without a suffix'}"
            )


# ------------------------------------------------------------------ JSON lines


def _json_lines(path: Path) -> Iterator[Item]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            where = f"{path}, line {number}"
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                _skip_line(file)
                yield Item(None, where, f"the line is longer than {LONGEST_LINE // 2**20} MiB")
            elif line.strip():
                yield _json_item((line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).rstrip(b"\r\n"), where)


def _skip_line(file: IO[bytes]) -> None:
    while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass


def _json_item(line: bytes, where: str) -> Item:
    try:
        text = line.decode()  # not by `json`, which guesses another encoding from the first bytes
    except UnicodeDecodeError as error:
        problem = f"not UTF-8: byte 0x{line[error.start]:02x} at offset {error.start}"
        text = line.decode("utf-8", "surrogateescape")
        return Item(_readable_columns(text), where, problem, text)
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"not JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
        return Item(None, where, problem, text)
    except (ValueError, RecursionError) as error:
        return Item(None, where, f"not JSON: {error}")
    if not isinstance(value, dict):
        return Item(None, where, f"expected a JSON object, received {type(value).__name__}", text)
    return Item(cast("dict[str, Any]", value), where)


def _readable_columns(text: str) -> Mapping[str, Any] | None:
    """Return the numbers and texts in a line of JSON, except the texts with bytes that are not UTF-8."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return {name: cell for name, cell in cast("dict[str, Any]", value).items() if is_unicode(json_text([name, cell]))}


# ------------------------------------------------------------------ CSV


def _header(path: Path) -> tuple[tuple[str, ...], str]:
    """Return the columns of a CSV file, and the delimiter."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        line = file.readline(1_000_000)
        usual = ";" if line.count(";") > line.count(",") else ","
        delimiter = "\t" if path.suffix.lower() == ".tsv" else usual
        file.seek(0)
        try:
            columns = next(csv.reader(file, delimiter=delimiter), cast("list[str]", []))
        except csv.Error as error:
            raise UsageError(f"{path}, line 1: not CSV: {error}") from None
    if not columns:
        raise UsageError(f"{path} is empty: expected a first line with the names of the columns")
    if twice := [name for name in columns if columns.count(name) > 1]:
        raise UsageError(f"{path}, line 1: the column {twice[0]!r} occurs twice")
    return tuple(columns), delimiter


def _csv_rows(path: Path, columns: tuple[str, ...], delimiter: str) -> Iterator[Item]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        lines = _Lines(file)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        next(reader, None)
        while True:
            where = f"{path}, line {lines.begin()}"
            try:
                values = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                lines.give_back()
                why = "a field starts with a quotation mark that is never closed" if str(error) == UNCLOSED else error
                yield Item(None, where, f"not CSV: {why}", lines.text)
                continue
            if values:
                yield _csv_item(values, columns, where, lines)


class _Lines:
    """The lines of a file for the CSV reader, which takes as many as a row has. After an invalid row all its lines but
    the first are given back: an open quotation mark costs its own line, not the rest of the file."""

    def __init__(self, file: Iterable[str]) -> None:
        self._file = iter(file)
        self._again: deque[str] = deque()
        self._row: list[str] = []
        self._number = 1

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._file)
        self._row.append(line)
        return line

    @property
    def text(self) -> str:
        """The lines of the row."""
        return "".join(self._row)

    def begin(self) -> int:
        """Return the number of the line with which the next row begins."""
        self._number += len(self._row)
        self._row.clear()
        return self._number

    def give_back(self) -> None:
        """Have the lines after the first one of this row read again."""
        self._again.extendleft(reversed(self._row[1:]))
        del self._row[1:]


def _csv_item(values: list[str], columns: tuple[str, ...], where: str, lines: _Lines) -> Item:
    if len(values) != len(columns):  # a wrong delimiter may be before any field but the first
        problem = f"expected {len(columns)} fields, received {len(values)}"
        return Item({columns[0]: values[0]} if is_unicode(values[0]) else None, where, problem, lines.text)
    cells = dict(zip(columns, values, strict=True))
    if not all(map(is_unicode, values)):
        readable = {name: cell for name, cell in cells.items() if is_unicode(cell)}
        return Item(readable, where, "not UTF-8", lines.text)
    return Item(cells, where)
