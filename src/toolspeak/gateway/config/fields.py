"""A TOML file taken field by field: every mistake with its line, its place, what was expected and what was meant."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from ...errors import UsageError
from ...schema.phrases import beginning
from ...schema.suggestions import did_you_mean, near

T = TypeVar("T")
D = TypeVar("D")
W = TypeVar("W", bound=str)

Place = tuple[str, ...]
ENOUGH = 2**53
"""Where a whole number has no other bound: the largest that every reader of JSON takes."""


class Unexpected(Exception):
    """A value is not what it should be; the text says what was expected."""


class File:
    """The file that is read, and what was found wrong with it. Paths in it are from `folder` on."""

    def __init__(self, name: str, content: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self._content = content
        self._wrong: list[tuple[int, str]] = []
        self._lines: dict[Place, int] | None = None

    def wrong(self, place: Place, said: str) -> None:
        """Keeps a mistake; `done` tells it."""
        line = self._line(place)
        where = ".".join(place) or "the file"
        self._wrong.append((line, f"{self.name}:{line}: {where}: {said}" if line else f"{self.name}: {where}: {said}"))

    def done(self) -> None:
        """Raises UsageError if anything was wrong: all of it, in the order of the file."""
        if self._wrong:
            raise UsageError("\n".join(said for _, said in sorted(self._wrong, key=lambda one: one[0])))

    def _line(self, place: Place) -> int:
        """The line of a place, or of the nearest one around it; 0 where there is none."""
        if self._lines is None:
            self._lines = _lines(self._content)
        for end in range(len(place), 0, -1):
            if found := self._lines.get(place[:end]):
                return found
        return 0


class Table:
    """One table of the file. Take every field that it may have, then `close` it: what is left nobody knows."""

    def __init__(self, file: File, place: Place, values: dict[str, Any]) -> None:
        self.file = file
        self._place = place
        self._values = values
        self._known: list[str] = []

    def has(self, name: str) -> bool:
        """Whether the field is there."""
        return name in self._values

    def holds(self, name: str, kind: type) -> bool:
        """Whether the field's value is of a kind."""
        return isinstance(self._values.get(name), kind)

    def names(self) -> list[str]:
        """The names of all its fields, for a table whose fields are names of one's own."""
        return list(self._values)

    def wrong(self, said: str, *names: str) -> None:
        """Keeps a mistake of this table, or of one of its fields."""
        self.file.wrong((*self._place, *names), said)

    def take(self, name: str, kind: Callable[[Any], T], default: D) -> T | D:
        """The field's value, `default` where there is none or it is wrong."""
        self._known.append(name)
        if name not in self._values:
            return default
        try:
            return kind(self._values[name])
        except Unexpected as wanted:
            self.wrong(f"expected {wanted}", name)
            return default

    def table(self, name: str) -> Table:
        """The table of that name; an empty one where there is none."""
        return Table(self.file, (*self._place, name), self.take(name, _table, dict[str, Any]()))

    def tables(self, name: str) -> Iterator[tuple[str, Table]]:
        """The tables in the table of that name, by their own names."""
        around = self.table(name)
        for inner in around._values:
            yield inner, around.table(inner)

    def secret(self, name: str) -> str | None:
        """What an environment variable or a file holds that the field refers to: a secret itself is not taken."""
        values = self.take(name, _reference, None)
        if values is None:
            return None
        (kind, where), *_ = values.items()
        if kind == "env":
            if not (value := os.environ.get(where, "").strip()):
                self.wrong(f"the environment variable {where[:100]} is not set", name)
            return value or None
        return (self._read(where, name) or "").strip() or None

    def read(self, name: str) -> str | None:
        """The text of the file that the field names."""
        path = self.take(name, text, None)
        return None if path is None else self._read(path, name)

    def close(self) -> None:
        """Tells the fields that nobody took."""
        for name in self._values:
            if name not in self._known:
                found = did_you_mean(near(name, self._known)) or f" There are {', '.join(sorted(self._known))}."
                self.wrong(f"there is no such field.{found}", name)

    def _read(self, path: str, name: str) -> str | None:
        try:
            found = (self.file.folder / path).read_text("utf-8")
        except OSError as error:
            self.wrong(f"{path}: {error.strerror or error}", name)
        except ValueError:
            self.wrong(f"{path}: it is not UTF-8", name)
        else:
            if found.strip():
                return found
            self.wrong(f"{path}: it is empty", name)
        return None


# ------------------------------------------------------------------ what a field may hold


def text(value: Any) -> str:
    """A text that is not empty."""
    if isinstance(value, str) and value.strip():
        return value
    raise Unexpected(f"a text, got {_shown(value)}")


def flag(value: Any) -> bool:
    """true or false."""
    if isinstance(value, bool):
        return value
    raise Unexpected(f"true or false, got {_shown(value)}")


def whole(least: int, most: int) -> Callable[[Any], int]:
    """A whole number within bounds."""

    def take(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        bounds = f"of at least {least:,}" if most >= ENOUGH else f"from {least:,} to {most:,}"
        raise Unexpected(f"a whole number {bounds}, got {_shown(value)}")

    return take


def number(least: float, most: float) -> Callable[[Any], float]:
    """A number within bounds."""

    def take(value: Any) -> float:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most:
            return float(value)
        raise Unexpected(f"a number from {least:,g} to {most:,g}, got {_shown(value)}")

    return take


def one_of(*words: W) -> Callable[[Any], W]:
    """One of some words."""

    def take(value: Any) -> W:
        for word in words:
            if value == word:
                return word
        meant = did_you_mean(near(value, words)) if isinstance(value, str) else ""
        raise Unexpected(f"{'one of ' if len(words) > 1 else ''}{', '.join(words)}, got {_shown(value)}.{meant}")

    return take


def many(kind: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    """A list, each of a kind."""

    def take(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise Unexpected(f"a list, got {_shown(value)}")
        taken: list[T] = []
        for at, one in enumerate(cast("list[Any]", value)):
            try:
                taken.append(kind(one))
            except Unexpected as wanted:
                raise Unexpected(f"{wanted} (number {at + 1} of the list)") from None
        return tuple(taken)

    return take


def _table(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    raise Unexpected(f"a table, got {_shown(value)}")


def _reference(value: Any) -> dict[str, str]:
    """Not shown where it is wrong: it may be the secret."""
    given = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if len(given) == 1 and {*given} <= {"env", "file"} and all(isinstance(one, str) and one for one in given.values()):
        return given
    raise Unexpected('{ env = "VARIABLE" } or { file = "PATH" }: a secret itself does not stand in this file')


def _shown(value: Any) -> str:
    try:
        told = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        told = str(value)
    return beginning(told, 80)


# ------------------------------------------------------------------ where things stand


def _lines(content: str) -> dict[Place, int]:
    """The line on which each table and field stands, as far as a line tells by itself."""
    found: dict[Place, int] = {}
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
            found.setdefault(place[:end], number_)
    return found


def quoted(name: str, *, always: bool = False) -> str:
    """A text as TOML has it: bare where it may stand so as a name, else in quotes."""
    bare = bool(name) and name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare and not always else json.dumps(name)


def _keys(line: str) -> Place:
    """The names in `[a."b.c"]` or `a.b = 0`, as TOML reads them; none where it is no such line."""
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
