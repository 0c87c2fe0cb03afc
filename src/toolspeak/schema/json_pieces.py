"""JSON text parsed and written in pieces, so that no single step holds the interpreter for long.

`json.loads` is one step of C code: for 250,000 names it takes a fifth of a second on a busy machine, and no other thread gets a turn
meanwhile. Here a first look at the text finds where its large containers begin. Those are walked in Python, member by member, with
the functions that the standard library has for it; everything smaller is read by the C scanner, in one step each. The
values and the errors are the same as those of `json.loads`. It takes about three times as long.
"""

from __future__ import annotations

import json
import json.decoder
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import Any, cast

LARGE, MANY = 100_000, 50_000
"""Characters of a text, and names and lists in it, from which on it is parsed in pieces."""
PIECE = 16_384
"""Characters of a container from which on it is walked."""
ROW = 1_000
"""Values without values in them that are written in one step."""
DEEPEST = 1_000
"""Containers inside one another that nobody reads: as many as the C scanner takes."""
_encode = json.JSONEncoder(ensure_ascii=False).encode
"""What `json.dumps` makes anew in each call."""
STANDARD = cast("Any", json.decoder)
"""Its functions that walk an object and a list, calling another one for each member, have no types."""
STRING = r'"(?:[^"\\]++|\\.)*+"'
TOKEN = re.compile(rf'[\[{{](?:[^\[\]{{}}"]++|{STRING}){{0,64}}+[\]}}]|{STRING}|["\[\]{{}}]', re.DOTALL)
"""A container of a few values with none in it, a string, or a bracket. Nothing is tried twice: no text takes long to match."""


def loads(text: str, **options: Callable[[str], Any]) -> Any:
    """What `json.loads` gives. `options` are `parse_constant` and `parse_float`. Raises ValueError and RecursionError."""
    if len(text) < LARGE or text.count(":") + text.count("[") < MANY:
        return json.loads(text, **cast("Any", options))
    decoder = STANDARD.JSONDecoder(**options)
    decoder.scan_once = _Walker(large_containers(text), decoder.scan_once).scan
    return decoder.decode(text)


def dumps(value: Any, size: int) -> str:
    """What `json.dumps(value, ensure_ascii=False)` gives. `size`: about how many characters that is."""
    if size < LARGE:
        return _encode(value)
    return "".join(_written(value))


def _written(value: Any) -> Iterator[str]:
    """The text of a value in pieces. Its names are texts."""
    if not isinstance(value, dict | list):
        yield json.dumps(value, ensure_ascii=False)
        return
    make: Callable[[Any], Any] = dict if isinstance(value, dict) else list
    members = cast("Iterable[Any]", value.items() if isinstance(value, dict) else value)
    comma, brackets = "", "{}" if isinstance(value, dict) else "[]"
    yield brackets[0]
    for nested, alike in groupby(members, _nests if isinstance(value, list) else _nests_by_name):
        while part := list(islice(alike, 1 if nested else ROW)):
            yield comma
            comma = ", "
            if not nested:
                yield json.dumps(make(part), ensure_ascii=False)[1:-1]
            elif isinstance(value, list):
                yield from _written(part[0])
            else:
                yield f"{json.dumps(part[0][0], ensure_ascii=False)}: "
                yield from _written(part[0][1])
    yield brackets[1]


def _nests(value: Any) -> bool:
    return isinstance(value, dict | list)


def _nests_by_name(member: tuple[str, Any]) -> bool:
    return _nests(member[1])


class _Walker:
    """Reads the value that begins at a place: what is large member by member. It holds nothing that holds it, so that all
    that it has read is let go of at once."""

    def __init__(self, large: set[int], scan_small: Callable[[str, int], tuple[Any, int]]) -> None:
        self._large = large
        self._scan_small = scan_small
        self._names: dict[str, str] = {}

    def scan(self, text: str, at: int) -> tuple[Any, int]:
        if at not in self._large:
            return self._scan_small(text, at)
        if text[at] == "[":
            return STANDARD.JSONArray((text, at + 1), self.scan)
        return STANDARD.JSONObject((text, at + 1), True, self.scan, None, _as_dict, self._names)


def _as_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The last of each name counts."""
    made: dict[str, Any] = {}
    for at in range(0, len(pairs), PIECE):
        made.update(pairs[at : at + PIECE])
    return made


def large_containers(text: str) -> set[int]:
    """Where the objects and lists begin that are longer than PIECE, or never end. Raises RecursionError."""
    begun: list[int] = []
    large: set[int] = set()
    for token in TOKEN.finditer(text):
        at, end = token.span()
        mark = text[at]
        if mark == '"':
            if end - at == 1:  # a string that never ends: whoever reads it will find that, or what is wrong before it
                break
        elif mark in "{[" and end - at == 1:
            begun.append(at)
            if len(begun) > DEEPEST:
                raise RecursionError(f"more than {DEEPEST:,} containers inside one another")
        elif mark in "{[":
            if end - at > PIECE:
                large.add(at)
        elif begun and end - (start := begun.pop()) > PIECE:
            large.add(start)
    return large.union(begun)
