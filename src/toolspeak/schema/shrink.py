"""A value that does not fit its schema, made smaller while it stays wrong, so that what is wrong is told at little
cost.

Of a long list the shortest beginning that is wrong is sought by halves, and its last item alone is kept. What is left
has one item in each list. Each look asks only whether all of it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, cast

FEW = 8
"""Items of a list that are all looked at."""

Path = tuple[str | int, ...]


class TooMany(Exception):
    """Nothing is wrong with any item of a list but their number."""

    def __init__(self, path: Path, most: int, came: int) -> None:
        self.path, self.most, self.came = path, most, came


class Reduced:
    """A copy of a value, as far as it is changed: `value`, which stays wrong. `changed` are the places of lists and
    objects that hold less than they did. Of the outer object the keys in `names` stay."""

    def __init__(self, value: Mapping[str, Any], right: Callable[[Any], bool], names: Container[str] = ()) -> None:
        self.changed: set[Path] = set()
        self._top: dict[Any, Any] = {"": dict(value)}
        self._right = right
        self._names = names
        self._moved: dict[Path, int] = {}

    @property
    def value(self) -> Any:
        """The value as small as it is by now."""
        return self._top[""]

    def shrink(self) -> None:
        """Makes the value smaller, and what lies in it. Raises TooMany where its parts are right, and all of them are
        not."""
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
        value = holder[key]
        if isinstance(value, dict | list):
            inner = cast("Any", value)
            names: list[Any] = [*inner] if isinstance(value, dict) else [*range(len(inner))]
            for name in names:
                self._shrink(inner, name, (*path, name))

    def places(self, path: Iterable[str | int]) -> Path:
        """Where a place of the smaller body is in the whole one."""
        here: Path = ()
        real: Path = ()
        for part in path:
            real = (*real, part + self._moved.get(here, 0) if isinstance(part, int) else part)
            here = (*here, part)
        return real

    def _halve(
        self, holder: Any, key: str | int, items: list[Any], kind: Callable[[Any], Any], path: Path, stay: int = 0
    ) -> int:
        """Leaves one item, the first that makes it wrong, behind those that `stay`; its place."""
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
    """An error about a smaller value, with its place in the whole one, and those that it is made of."""

    def __init__(self, error: Any, places: Callable[[Iterable[str | int]], Path]) -> None:
        self._of = error
        self.instance_path = list(places(error.instance_path))
        self.kind = _Kind(error.kind, places)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


class _Kind:
    """The kind of such an error."""

    def __init__(self, kind: Any, places: Callable[[Iterable[str | int]], Path]) -> None:
        self._of, self._places = kind, places

    @property
    def context(self) -> list[list[RelocatedError]]:
        return [[RelocatedError(error, self._places) for error in branch] for branch in self._of.context]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)
