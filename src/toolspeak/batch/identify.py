"""Gives rows their ids, and finds out whether each is new, done or a duplicate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from ..errors import UsageError
from .inputs import Input
from .prompts import Prompt
from .row import Id, Item, Row, content_id, is_null
from .store import Store

CHUNK = 64
"""Items of an input that are read in one step."""


class Identifier:
    """Gives each item of one pass over an input its id and place, and looks up its state.

    `column` contains the id. None derives it from the content of the row, with a number for repeated content. A row
    without an id, or an unreadable line, becomes a row with a problem, and its place is its id.
    """

    def __init__(self, store: Store, column: str | None, prompt: Prompt) -> None:
        self.store, self.column, self.prompt = store, column, prompt
        self.seen = bytearray()
        """One bit per place: whether this pass had a row there."""
        self.repeats: dict[str, int] = {}
        self.count = 0
        self._checked = False

    def rows(self, source: Input) -> Iterator[tuple[Row, int]]:
        """Yield the rows of an input with their states. Raises UsageError for an id that occurs twice in this pass."""
        items = source.items()
        while some := list(islice(items, CHUNK)):
            yield from self.identify(some)

    def check_columns(self, columns: tuple[str, ...], where: str) -> None:
        """Raises UsageError if rows with these columns have no id or no prompt."""
        self._checked = True
        if self.column is not None and self.column not in columns:
            there = ", ".join(columns) or "none"
            raise UsageError(
                f"{where}: no column {self.column!r} for the id; the columns are: {there}. "
                "Name another column (--id, in Python id=), or make the id from the content of the row (--no-id, in Python id=None)"
            )
        if wrong := self.prompt.missing(columns):
            raise UsageError(f"{where}: {wrong}")

    def identify(self, items: Sequence[Item]) -> Iterator[tuple[Row, int]]:
        """Yield the row for each item, with its state. Ids are looked up together; duplicates are found one by one."""
        rows = [self._row(item) for item in items]
        for row, (place, state) in zip(rows, self.store.register([(row.place, row.key) for row in rows]), strict=True):
            if not self._was_seen(place):
                self._mark(place)
                yield (row if row.place == place else replace(row, place=place)), state
            elif self.column is None:
                yield self._repeated(row)
            else:
                raise UsageError(
                    f"{row.where}: the id {row.id!r} is also that of row {place + 1}; ids must be unique. "
                    "Name another column, or none: the id then comes from the content of the row"
                )

    def _row(self, item: Item) -> Row:
        """Return the next row, at its place in the input."""
        number, self.count = self.count, self.count + 1
        data: Mapping[str, Any] = {} if item.data is None else item.data
        if data and not self._checked:
            self.check_columns(tuple(data), item.where)
        id_, problem = self._id(item)
        return Row(number, f"row {number + 1}" if problem else id_, data, item.where, problem)

    def _repeated(self, row: Row) -> tuple[Row, int]:
        """Return a row with repeated content: its id gets a number."""
        while True:
            times = self.repeats[row.key] = self.repeats.get(row.key, 1) + 1
            id_ = f"{row.key}-{times}"
            [(place, state)] = self.store.register([(row.place, id_)])
            if not self._was_seen(place):
                self._mark(place)
                return Row(place, id_, row.data, row.where, row.problem), state

    def _id(self, item: Item) -> tuple[Id, str]:
        """Return the id of an item, and the problem if it has none or cannot be sent."""
        if item.data is None:
            return "", item.problem
        if self.column is None:
            return content_id(item.data), item.problem
        value: Any = item.data.get(self.column)
        if is_null(value) or value == "":
            return "", f"there is no id in the column {self.column!r}"
        if type(value) not in (str, int):
            return (
                "",
                f"expected a text or a whole number as the id in the column {self.column!r}, received {value!r:.80}",
            )
        return value, item.problem

    def _was_seen(self, place: int) -> bool:
        byte, bit = divmod(place, 8)
        return bool(self.seen[byte] >> bit & 1) if byte < len(self.seen) else False

    def _mark(self, place: int) -> None:
        byte, bit = divmod(place, 8)
        if byte >= len(self.seen):
            self.seen.extend(bytes(max(1024, byte + 1 - len(self.seen))))
        self.seen[byte] |= 1 << bit
