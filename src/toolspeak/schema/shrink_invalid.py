"""Shrinks an invalid value while it stays invalid, so that its error can be found cheaply.

In a long list, a binary search finds the shortest invalid prefix, and only its last item is kept. In the end each list
has one item. Each step only asks whether the value is valid, never for its errors.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, cast

FEW = 8
"""Lists with up to this many items are not shrunk."""
LONG = 1_000
"""A text with more characters is cut."""

Path = tuple[str | int, ...]


class TooMany(Exception):
    """All items of a list are valid, but there are too many."""

    def __init__(self, path: Path, most: int, came: int) -> None:
        self.path, self.most, self.came = path, most, came


class Reduced:
    """A copy of an invalid value that is shrunk while it stays invalid.

    `changed` are the places of lists and objects that lost items, and of texts that were cut. Keys of the outermost object
    in `names` are kept.
    """

    def __init__(self, value: Mapping[str, Any], right: Callable[[Any], bool], names: Container[str] = ()) -> None:
        self.changed: set[Path] = set()
        self._top: dict[Any, Any] = {"": dict(value)}
        self._right = right
        self._names = names
        self._moved: dict[Path, int] = {}

    @property
    def value(self) -> Any:
        """The value, as small as it is by now."""
        return self._top[""]

    def shrink(self) -> None:
        """Shrinks the value and everything in it. Raises TooMany if its parts are valid, but not all of them together."""
        self._shrink(self._top, "", ())

    def _shrink(self, holder: Any, key: str | int, path: Path) -> None:
        value = holder[key]
        if isinstance(value, dict):
            holder[key] = value = dict(cast("dict[str, Any]", value))
            if len(value) > FEW * FEW:
                rows = sorted(value.items(), key=lambda row: bool(path) or row[0] not in self._names)
                stay = 0 if path else sum(name in self._names for name in value)
                self._halve(holder, key, rows, dict, path, stay)
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            holder[key] = list(items)
            if len(items) > FEW:
                self._moved[path] = self._halve(holder, key, items, list, path)
        elif isinstance(value, str):
            self._cut(holder, key, value, path)
        value = holder[key]
        if isinstance(value, dict | list):
            inner = cast("Any", value)
            names: list[Any] = [*inner] if isinstance(value, dict) else [*range(len(inner))]
            for name in names:
                self._shrink(inner, name, (*path, name))

    def _cut(self, holder: Any, key: str | int, text: str, path: Path) -> None:
        """Cuts a long text, if the value stays invalid."""
        if len(text) <= LONG:
            return
        holder[key] = text[:LONG]
        if self._right(self.value):
            holder[key] = text
        else:
            self.changed.add(path)

    def places(self, path: Iterable[str | int]) -> Path:
        """Converts a path in the shrunk value to one in the original."""
        here: Path = ()
        real: Path = ()
        for part in path:
            real = (*real, part + self._moved.get(here, 0) if isinstance(part, int) else part)
            here = (*here, part)
        return real

    def _halve(
        self, holder: Any, key: str | int, items: list[Any], kind: Callable[[Any], Any], path: Path, stay: int = 0
    ) -> int:
        """Keeps the first `stay` items, and one more: the first that makes the value invalid. Returns that item's
        index."""
        self.changed.add(path)
        right, wrong = max(stay, 1), len(items)
        holder[key] = kind(items[:right])
        if not self._right(self.value):
            return 0
        while wrong - right > 1:
            half = (right + wrong) // 2
            holder[key] = kind(items[:half])
            if self._right(self.value):
                right = half
            else:
                wrong = half
        holder[key] = kind([*items[:stay], *items[wrong - 1 : wrong]])
        if self._right(self.value):
            raise TooMany(path, right, len(items))
        return wrong - 1


class RelocatedError:
    """An error about the shrunk value, with its path in the original, also in nested errors."""

    def __init__(self, error: Any, places: Callable[[Iterable[str | int]], Path]) -> None:
        self._of = error
        self.instance_path = list(places(error.instance_path))
        self.kind = _Kind(error.kind, places)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


class _Kind:
    """The `kind` of a relocated error."""

    def __init__(self, kind: Any, places: Callable[[Iterable[str | int]], Path]) -> None:
        self._of, self._places = kind, places

    @property
    def context(self) -> list[list[RelocatedError]]:
        return [[RelocatedError(error, self._places) for error in branch] for branch in self._of.context]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)
