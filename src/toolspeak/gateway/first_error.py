"""The first thing that is wrong with a body, found without looking at all that is wrong.

A validator that tells errors makes all of them first, each with a copy of what it is about: a body of 300,000 wrong messages took it
twenty seconds. That a body is wrong it knows at once. So the body is made smaller while it stays wrong: of a long list the shortest
beginning that is wrong is sought by halves, and its last item alone is kept. What is left is a body with one item in each list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from ..errors import Refused
from ..schema.check import check
from ..schema.judge import judge
from ..types import Schema, Tool

FEW = 8
"""Items of a list that are all looked at."""

Path = tuple[str | int, ...]


def first_error(body: dict[str, Any], schema: Schema) -> Refused:
    """The refusal of a body that does not fit a schema: what was expected where, and what came."""
    made = _Smaller(body, judge(schema).is_valid)
    try:
        made.shrink(made.top, "body", ())
    except _TooMany as error:
        where = _dotted(made.places(error.path))
        said = f"{where}: expected at most {error.most:,} items, got {error.came:,}"
        return Refused(said, code="invalid_value", param=where)
    problem = check(Tool("body", parameters=schema), made.top["body"])[0]
    parts = problem.path.removeprefix("/").split("/") if problem.path else []
    param = _dotted(made.places(int(part) if part.isdecimal() else part for part in parts))
    said = f"{param or 'the body'}: expected {problem.expected}, got {problem.received}"
    return Refused(said, code="invalid_value", param=param or None)


class _TooMany(Exception):
    """Nothing is wrong with any item of a list but their number."""

    def __init__(self, path: Path, most: int, came: int) -> None:
        self.path, self.most, self.came = path, most, came


class _Smaller:
    """A copy of a body, as far as it is changed. `top["body"]` holds it, and stays wrong."""

    def __init__(self, body: dict[str, Any], right: Callable[[Any], bool]) -> None:
        self.top: dict[Any, Any] = {"body": body}
        self._right = right
        self._moved: dict[Path, int] = {}

    def shrink(self, holder: Any, key: str | int, path: Path) -> None:
        """Makes what `holder` holds smaller, and what lies in it."""
        value = holder[key]
        if isinstance(value, dict):
            holder[key] = value = dict(cast("dict[str, Any]", value))
            if len(value) > FEW * FEW:
                self._halve(holder, key, list(value.items()), dict, path)
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            holder[key] = list(items)
            if len(items) > FEW:
                self._moved[path] = self._halve(holder, key, items, list, path)
        value = holder[key]
        if isinstance(value, dict | list) and len(cast("Any", value)) <= FEW * FEW:
            inner = cast("Any", value)
            names: list[Any] = [*inner] if isinstance(value, dict) else [*range(len(inner))]
            for name in names:
                self.shrink(inner, name, (*path, name))

    def places(self, path: Iterable[str | int]) -> Path:
        """Where a place of the smaller body is in the whole one."""
        here: Path = ()
        real: Path = ()
        for part in path:
            real = (*real, part + self._moved.get(here, 0) if isinstance(part, int) else part)
            here = (*here, part)
        return real

    def _halve(self, holder: Any, key: str | int, items: list[Any], kind: Callable[[Any], Any], path: Path) -> int:
        """Leaves one item, the first that makes it wrong; its place."""
        holder[key] = kind(items[:1])
        if not self._right(self.top["body"]):
            return 0
        right, wrong = 1, len(items)
        while wrong - right > 1:
            half = (right + wrong) // 2
            holder[key] = kind(items[:half])
            if self._right(self.top["body"]):
                right = half
            else:
                wrong = half
        holder[key] = kind(items[wrong - 1 : wrong])
        if self._right(self.top["body"]):
            raise _TooMany(path, right, len(items))
        return wrong - 1


def _dotted(path: Path) -> str:
    return ".".join(str(part).replace("~1", "/").replace("~0", "~") for part in path)
