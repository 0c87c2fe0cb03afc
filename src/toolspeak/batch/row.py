"""The values of a batch: a row as it came in, and the record that goes out for it."""

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
    """One item of an input before it has an id: its columns, or the `problem` for which it has none.

    `where` says where it stands, such as `tickets.csv, line 7`.
    """

    data: Mapping[str, Any] | None
    where: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a batch: its `place` in the input, counted from 0, its id and its columns.

    A row with a `problem` cannot be sent to a model: it is written with this problem as its error.
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
class Record:
    """The outcome of one row, in the columns of the output.

    `calls` is JSON text: a list of objects with `id`, `name` and `arguments`. `value` is what was extracted. `error` is
    None or `Kind: message`. `attempts` counts the replies that the model gave, `tokens` those sent and received,
    `seconds` the time from the first request to the last reply. `response` is no column: OpenAI's Batch format has it, with its
    `status_code`, `request_id` and `body`.
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
        """The columns by name."""
        return dict(zip(COLUMNS, _columns_of(self), strict=True))


COLUMNS: tuple[str, ...] = tuple(name for name in Record.__dataclass_fields__ if name != "response")
"""The columns of the output, in order."""
_columns_of = attrgetter(*COLUMNS)


json_text = json.JSONEncoder(ensure_ascii=False, default=str).encode
"""What `json.dumps` gives with these settings, without making an encoder for each value."""


def content_id(data: Mapping[str, Any]) -> str:
    """An id that depends on the content of a row alone: 32 hexadecimal digits."""
    return digest(data, 32)


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8: it holds no half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def digest(value: Any, digits: int = 16) -> str:
    """So many hexadecimal digits of the SHA-256 of JSON data."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def unreadable(row: Row) -> Record:
    """The record of a row that has a problem: nothing is asked for it."""
    return Record(row.id, error=f"UnreadableRow: {row.where}: {row.problem}")


class RecordLines:
    """Records as the lines that the journal holds: a JSON object with the columns each."""

    def encode(self, record: Record) -> str:
        return json_text(record.as_dict())

    def decode(self, line: str) -> dict[str, Any]:
        return json.loads(line)

    def key(self, line: str) -> str:
        return str(json.loads(line)["id"])
