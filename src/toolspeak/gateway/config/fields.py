"""Reads a TOML file field by field. Every error has a line, a place, what was expected, and a suggestion."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from ...api.json_stream import record
from ...errors import UsageError
from ...schema.phrases import beginning
from ...schema.suggestions import did_you_mean, near

T = TypeVar("T")
D = TypeVar("D")
W = TypeVar("W", bound=str)

Place = tuple[str, ...]
ENOUGH = 2**53
"""The limit of whole numbers that have no other one: the largest that every JSON parser reads exactly."""


class Unexpected(Exception):
    """A value has the wrong type or range; the text says what was expected."""


class File:
    """The file that is read, and the errors in it. Relative paths in it start at `folder`."""

    def __init__(self, name: str, content: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self._content = content
        self._wrong: list[tuple[int, str]] = []
        self._places: list[Place] = []
        self._no_tables: list[Place] = []
        self._lines: dict[Place, int] | None = None

    def wrong(self, place: Place, problem: str) -> None:
        """Add an error; `done` raises them. What should be a table and is none has no further errors."""
        if any(place[: len(outer)] == outer for outer in self._no_tables):
            return
        self._places.append(place)
        line = self._line(place)
        where = ".".join(place) or "the file"
        self._wrong.append(
            (line, f"{self.name}:{line}: {where}: {problem}" if line else f"{self.name}: {where}: {problem}")
        )

    def no_table(self, place: Place, value: Any) -> None:
        """Add the error of a value that should be a table."""
        self.wrong(place, f"expected a table, got {_excerpt(value)}")
        self._no_tables.append(place)

    def is_wrong(self, *place: str) -> bool:
        """Whether a place, or one in it, has an error, so that nothing can be concluded from its value."""
        return any(wrong[: len(place)] == place for wrong in self._places)

    def done(self) -> None:
        """Raises UsageError with all errors, in the order of the file, if there are any."""
        if self._wrong:
            raise UsageError("\n".join(message for _, message in sorted(self._wrong, key=lambda one: one[0])))

    def _line(self, place: Place) -> int:
        """Return the line of a place, or of the nearest place around it; 0 if there is none."""
        if self._lines is None:
            self._lines = _lines(self._content)
        for end in range(len(place), 0, -1):
            if line := self._lines.get(place[:end]):
                return line
        return 0


class Table:
    """A table of the file. Take every field that it may have, then `close` it: any field left over is an error."""

    def __init__(self, file: File, place: Place, values: dict[str, Any]) -> None:
        self.file = file
        self._place = place
        self._values = values
        self._known: list[str] = []

    def has(self, name: str) -> bool:
        """Whether the table has the field."""
        return name in self._values

    def holds(self, name: str, kind: type) -> bool:
        """Whether the field's value has this type."""
        return isinstance(self._values.get(name), kind)

    def names(self) -> list[str]:
        """Return the names of all fields, for a table whose field names are free."""
        return list(self._values)

    def wrong(self, problem: str, *names: str) -> None:
        """Add an error about this table, or about one of its fields."""
        self.file.wrong((*self._place, *names), problem)

    def take(self, name: str, kind: Callable[[Any], T], default: D) -> T | D:
        """Return the field's value, or `default` if it is missing or wrong."""
        self._known.append(name)
        if name not in self._values:
            return default
        try:
            return kind(self._values[name])
        except Unexpected as wanted:
            self.wrong(f"expected {wanted}", name)
            return default

    def table(self, name: str) -> Table:
        """Return the table of that name; an empty one if it is missing."""
        self._known.append(name)
        place, value = (*self._place, name), self._values.get(name, {})
        if not isinstance(value, dict):
            self.file.no_table(place, value)
        return Table(self.file, place, record(value))

    def tables(self, name: str) -> Iterator[tuple[str, Table]]:
        """Yield the tables in the table of that name, with their names."""
        around = self.table(name)
        for inner in around._values:
            yield inner, around.table(inner)

    def secret(self, name: str, *, optional: bool = False) -> str | None:
        """Return the secret in the environment variable or file that the field names. A literal secret is an error, and
        so is an empty one, unless it is `optional`: then it means none."""
        values = self.take(name, _reference, None)
        if values is None:
            return None
        (kind, where), *_ = values.items()
        if kind == "env":
            value = os.environ.get(where, "").strip()
            if where not in os.environ if optional else not value:
                self.wrong(f"the environment variable {where[:100]} is not set", name)
            return value or None
        return (self._read(where, name, optional=optional) or "").strip() or None

    def secret_source(self, name: str) -> str:
        """Return where a secret comes from: `$VARIABLE`, or the path of a file; "" if it is missing or wrong."""
        where = record(self._values.get(name))
        return f"${where['env']}" if "env" in where else str(where.get("file", ""))

    def read(self, name: str) -> str | None:
        """Return the text of the file that the field names."""
        path = self.take(name, text, None)
        return None if path is None else self._read(path, name)

    def close(self) -> None:
        """Add an error for each field that was not taken."""
        for name in self._values:
            if name not in self._known:
                hint = did_you_mean(near(name, self._known)) or f" There are {', '.join(sorted(self._known))}."
                self.wrong(f"unknown field.{hint}", name)

    def _read(self, path: str, name: str, *, optional: bool = False) -> str | None:
        try:
            text = (self.file.folder / path).read_text("utf-8")
        except OSError as error:
            self.wrong(f"{path}: {error.strerror or error}", name)
        except ValueError:
            self.wrong(f"{path}: it is not UTF-8", name)
        else:
            if any((optional, text.strip())):
                return text
            self.wrong(f"{path}: it is empty. Write the value into it, or remove this field", name)
        return None


def top_table(content: str, name: str, folder: Path) -> Table:
    """Return the whole of a file, from its text. Raises UsageError if that is not TOML."""
    try:
        values = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: it is not TOML: {error}") from None
    return Table(File(name, content, folder), (), values)


# ------------------------------------------------------------------ types of fields


def text(value: Any) -> str:
    """A string that is not empty."""
    if isinstance(value, str) and value.strip():
        return value
    raise Unexpected(f"a string that is not empty, got {_excerpt(value)}")


def flag(value: Any) -> bool:
    """True or false."""
    if isinstance(value, bool):
        return value
    raise Unexpected(f"true or false, got {_excerpt(value)}")


def whole(least: int, most: int) -> Callable[[Any], int]:
    """Return a type: a whole number within bounds."""

    def take(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        bounds = f"of at least {least:,}" if most >= ENOUGH else f"from {least:,} to {most:,}"
        raise Unexpected(f"a whole number {bounds}, got {_excerpt(value)}")

    return take


def number(least: float, most: float) -> Callable[[Any], float]:
    """Return a type: a number within bounds."""

    def take(value: Any) -> float:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most:
            return float(value)
        raise Unexpected(f"a number from {least:,g} to {most:,g}, got {_excerpt(value)}")

    return take


def one_of(*words: W) -> Callable[[Any], W]:
    """Return a type: one of these words."""

    def take(value: Any) -> W:
        for word in words:
            if value == word:
                return word
        meant = did_you_mean(near(value, words)) if isinstance(value, str) else ""
        hint = f".{meant}" if meant else ""
        raise Unexpected(f"{'one of ' if len(words) > 1 else ''}{', '.join(words)}, got {_excerpt(value)}{hint}")

    return take


def many(kind: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    """Return a type: a list whose items have this type."""

    def take(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise Unexpected(f"a list, got {_excerpt(value)}")
        entry: list[T] = []
        for at, one in enumerate(cast("list[Any]", value)):
            try:
                entry.append(kind(one))
            except Unexpected as wanted:
                raise Unexpected(f"{wanted} (number {at + 1} of the list)") from None
        return tuple(entry)

    return take


def _reference(value: Any) -> dict[str, str]:
    """A reference to a secret. A wrong value is not shown in the error, because it may be the secret itself."""
    table = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if len(table) == 1 and {*table} <= {"env", "file"} and all(isinstance(one, str) and one for one in table.values()):
        return table
    raise Unexpected('{ env = "VARIABLE" } or { file = "PATH" }: this file must not contain the secret itself')


def _excerpt(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        text = str(value)
    return beginning(text, 80)


# ------------------------------------------------------------------ line numbers


def _lines(content: str) -> dict[Place, int]:
    """Return the line of each table and field, as far as a single line shows it."""
    lines: dict[Place, int] = {}
    table: Place = ()
    for number_, line in enumerate(content.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            table = _keys(stripped.partition("#")[0]) or table
            place = table
        else:
            name, equals, _ = stripped.partition("=")
            place = (*table, *_keys(f"{name}= 0")) if equals and not name.startswith("#") else ()
        for end in range(1, len(place) + 1):
            lines.setdefault(place[:end], number_)
    return lines


def quoted(name: str, *, always: bool = False) -> str:
    """Return a text as TOML: bare if it is a valid bare key, else quoted."""
    bare = bool(name) and name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    # JSON's escapes are TOML's, except that TOML has no surrogate pairs and must have U+007F escaped
    return name if bare and not always else json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")


def _keys(line: str) -> Place:
    """Return the names in `[a."b.c"]` or `a.b = 0`, parsed as TOML; none for any other line."""
    try:
        values: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    names: list[str] = []
    while isinstance(values, (dict, list)) and values:
        if isinstance(values, list):
            values = cast("list[Any]", values)[0]
            continue
        name, values = next(iter(cast("dict[str, Any]", values).items()))
        names.append(name)
    return tuple(names)
