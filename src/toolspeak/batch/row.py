"""The values of a batch: a row of the input, and its record in the output."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from ..types import Message

Id = str | int
Messages = list[Message]


@dataclass(frozen=True, slots=True)
class Item:
    """An item of an input before it has an id: its columns, or the `problem` that prevents reading it.

    `where` is its place for messages, such as `tickets.csv, line 7`. An item with a problem has the columns that could
    be read nevertheless, and `raw`, its line as it is.
    """

    data: Mapping[str, Any] | None
    where: str
    problem: str = ""
    raw: str = ""

    @property
    def content(self) -> Any:
        """The content as far as it is known, else the place."""
        return self.raw or self.data or self.where


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a batch: its `place` in the input, counted from 0, its id and its columns.

    A row with a `problem` cannot be sent to a model: the problem becomes the error of its record.
    """

    place: int
    id: Id
    data: Mapping[str, Any]
    where: str
    problem: str = ""

    @property
    def key(self) -> str:
        """The id as text: 7 and "7" are the same id."""
        return str(self.id)


@dataclass(slots=True)
class OutputRow:
    """The outcome of one row, in the columns of the output.

    `calls` is JSON text: a list of objects with `id`, `name` and `arguments`. `value` is what was extracted. `error` is
    None or `Kind: message`. `attempts` counts the model's replies, `tokens` their input and output tokens, `seconds` is
    the time from the first request to the last reply. `response` is not a column: OpenAI's Batch format has it, with
    its `status_code`, `request_id` and `body`.
    """

    id: Id
    calls: str = "[]"
    text: str = ""
    thought: str = ""
    value: Any = None
    finish: str | None = None
    notes: list[str] = field(default_factory=list[str])
    error: str | None = None
    attempts: int = 0
    tokens: int = 0
    seconds: float = 0.0
    fingerprint: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    response: dict[str, Any] | None = None

    @property
    def kind(self) -> str:
        """The kind of its error, such as `GenerationError`; "" for none."""
        return self.error.partition(":")[0] if self.error else ""

    def as_dict(self) -> dict[str, Any]:
        """Return the columns by name."""
        return dict(zip(COLUMNS, _columns_of(self), strict=True))


COLUMNS: tuple[str, ...] = tuple(name for name in OutputRow.__dataclass_fields__ if name != "response")
"""The columns of the output, in order."""
_columns_of = attrgetter(*COLUMNS)


json_text = json.JSONEncoder(ensure_ascii=False, default=str).encode
"""`json.dumps` with these settings, but with one encoder for all values."""


def content_id(data: Mapping[str, Any]) -> str:
    """Return an id that depends only on the content of a row: 32 hexadecimal digits."""
    return digest(data, 32)


def is_unicode(text: str) -> bool:
    """Whether a text has a UTF-8 form, that is, no lone surrogates."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def is_null(value: Any) -> bool:
    """Whether a cell has no value: None, NaN, or pandas' NaT or NA. These do not equal themselves."""
    if value is None or isinstance(value, str):
        return value is None
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA is neither equal nor unequal; nor is an array, which is a value
        return type(value).__name__ == "NAType"


def is_empty(value: Any) -> bool:
    """Whether a cell has nothing to send: null, a text without letters, or an empty list."""
    return not value.strip() if isinstance(value, str) else value == [] if isinstance(value, list) else is_null(value)


def digest(value: Any, digits: int = 16) -> str:
    """Return the first `digits` hexadecimal digits of the SHA-256 of JSON data."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def unreadable(row: Row) -> OutputRow:
    """Return the record of a row with a problem, which is not sent to a model."""
    return OutputRow(row.id, error=f"UnreadableRow: {row.where}: {row.problem}")


class RecordLines:
    """Encodes records as lines of the journal: a JSON object with the columns."""

    def encode(self, record: OutputRow) -> str:
        return json_text(record.as_dict())

    def decode(self, line: str) -> dict[str, Any]:
        return json.loads(line)

    def key(self, line: str) -> str:
        return str(json.loads(line)["id"])
