"""Gives rows their ids, and finds out whether each is new, done or a duplicate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from ..errors import UsageError
from .inputs import Input
from .prompts import Prompt
from .row import Id, Item, Row, content_id, digest, is_empty
from .store import UNREADABLE, Store

CHUNK = 64
"""Items of an input that are read in one step."""
PREFIX, LENGTH = "unreadable-", 27
"""The beginning of the id of a row with a problem, and the length of such an id without the number of a repetition."""


class Identifier:
    """Gives each item of one pass over an input its id and place, and looks up its state.

    `column` contains the id. None derives it from the content of the row, with a number for repeated content. A row
    without an id, or an unreadable line, becomes a row with a problem. It has its id if that can be read and no other
    row has it; otherwise one that is made from its content, so it stays the same if the row moves.
    """

    def __init__(self, store: Store, column: str | None, prompt: Prompt) -> None:
        self.store, self.column, self.prompt = store, column, prompt
        self.seen = bytearray()
        """One bit per place: whether this pass had a row there."""
        self.repeats: dict[str, int] = {}
        self.count = 0
        self._checked = False
        self._only_readable = False
        self._ids_of_problems: set[str] = set()

    def readable_rows(self, source: Input) -> Iterator[tuple[Row, int]]:
        """Yield the rows of an input that have no problem, with their states; used once before another pass with another
        Identifier, which then knows the ids of all of them. Raises UsageError for an id that occurs twice."""
        self._only_readable = True
        self._forget_mended(source)
        items = source.items()
        while some := list(islice(items, CHUNK)):
            for row, state in self.identify(some):
                if state == UNREADABLE:
                    self.store.wait(row.place)
                yield row, state

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
            raise UsageError(
                f"{where}: {wrong}. Name another one, or a text with columns in braces (--prompt, in Python prompt=)"
            )

    def identify(self, items: Sequence[Item]) -> Iterator[tuple[Row, int]]:
        """Yield the row for each item, with its state. Ids are looked up together; duplicates are found one by one."""
        rows = list(map(self._row, items))
        if self._only_readable:
            rows = [row for row in rows if not row.problem]
        for row, (place, state) in zip(rows, self.store.register([(row.place, row.key) for row in rows]), strict=True):
            if not self._was_seen(place):
                self._mark(place)
                yield (row if row.place == place else replace(row, place=place)), state
            elif self.column is None or row.problem:
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
        if not item.problem:
            self._check_first(data, item.where)
        id_, problem = self._id(item)
        return Row(number, self._id_of_problem(item, id_) if problem else id_, data, item.where, problem)

    def _id_of_problem(self, item: Item, id_: Id) -> Id:
        if id_ == "" or self._is_of_another_row(str(id_)):
            return _id_of_content(item)
        self._ids_of_problems.add(str(id_))
        return id_

    def _is_of_another_row(self, key: str) -> bool:
        if key in self._ids_of_problems:
            return True
        return self.store.state(key) not in (None, UNREADABLE)

    def _check_first(self, data: Mapping[str, Any], where: str) -> None:
        if self._checked:
            return
        if data:
            self.check_columns(tuple(data), where)

    def _forget_mended(self, source: Input) -> None:
        """Forget unreadable rows of earlier runs that are no more in the input, so that their places are free."""
        earlier = self.store.unreadable(PREFIX)
        present = {_id_of_content(item) for item in source.items() if self._id(item)[1]} if earlier else set[str]()
        self.store.forget([place for place, key in earlier if key[:LENGTH] not in present])

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
            return "" if item.problem else content_id(item.data), item.problem
        value: Any = item.data.get(self.column)
        if is_empty(value):
            return "", item.problem or f"there is no id in the column {self.column!r}"
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


def _id_of_content(item: Item) -> str:
    return PREFIX + digest(item.content)
