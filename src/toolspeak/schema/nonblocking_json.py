"""Parses and writes JSON in steps, none of which blocks other threads for long.

`json.loads` is one C call that holds the interpreter lock: for 250,000 names it takes a fifth of a second on a busy
machine. This module first scans the text for the start of large containers. It walks those in Python, member by
member, with the functions of the standard library; everything smaller is one call of the C scanner. Values and errors
are the same as those of `json.loads`. It takes about three times as long.

Text that nests deeper than DEEPEST is refused: code that walks its value calls a function for each level, and Python
takes about a thousand calls inside one another. So is text of more values than VALUES, whose lists would take hundreds of
megabytes and seconds.
"""

from __future__ import annotations

import json
import json.decoder
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import groupby, islice
from typing import Any, cast

from .value_count import has_more

LARGE, MANY = 100_000, 50_000
"""A text with more characters, or with more names and lists, is parsed in pieces."""
PIECE = 16_384
"""A container with more characters is walked in Python, and a text with more is written in pieces."""
ROW = 1_000
"""Scalar values that are written in one step."""
DEEPEST = 200
"""Containers inside one another that a value may have."""
VALUES = 800_000
"""Values, as `value_count` counts them, that a text may have."""
TOO_DEEP = "too many containers inside one another"
SHORT = 2_000
"""The brackets of a text with fewer characters are counted at once."""
MEMBER = 128
"""Of a text with fewer characters for each member its brackets are looked at before its value."""
CONTAINERS = frozenset([dict, list])
AS_LISTS = bytes.maketrans(b"{}", b"[]")
NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))


def as_list(value: Any) -> list[float]:
    """The numbers of an array, for a JSON encoder: it writes them as a list. Raises TypeError for another value."""
    if not isinstance(value, array):
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    return cast("array[float]", value).tolist()


_encode = json.JSONEncoder(ensure_ascii=False, default=as_list).encode
"""The encoder, created once: `json.dumps` creates a new one for each call with options."""
STANDARD = cast("Any", json.decoder)
"""The json.decoder module as Any: its functions that walk objects and lists, with a callback for members, have no
types."""
_Scan = Callable[[str, int], tuple[Any, int]]
STRING = r'"(?:[^"\\]++|\\.)*+"'
TOKEN = re.compile(rf'[\[{{](?:[^\[\]{{}}"]++|{STRING}){{0,64}}+[\]}}]|{STRING}|["\[\]{{}}]', re.DOTALL)
"""Matches a small container of scalars, a string, or a bracket. It never backtracks, so that its time is linear."""


def loads(
    text: str,
    *,
    values: int = VALUES,
    levels: int = DEEPEST,
    piece: int = 0,
    packed: Callable[[Any], Any] | None = None,
    **options: Callable[[Any], Any],
) -> Any:
    """Like `json.loads`. `options` are `parse_constant`, `parse_float` and `object_pairs_hook`. Raises ValueError, also
    for text of more than `values` values, and RecursionError for text that nests deeper than `levels`, which are at most DEEPEST.
    `piece`: containers with more characters are walked, in any large text; without it, only where there are many.
    `packed`: in a text that is walked, what stands for a value that was read in one step, such as one that takes less memory."""
    if has_more(text, values):
        raise ValueError(f"it contains more than {values:,} values")
    if len(text) < LARGE or (not piece and text.count(":") + text.count("[") < MANY):
        value = json.loads(text, **cast("Any", options))
    else:
        decoder = STANDARD.JSONDecoder(**options)
        decoder.scan_once = _Walker(
            large_containers(text, piece or PIECE),
            _packing(decoder.scan_once, packed),
            decoder.object_pairs_hook or _as_dict,
        ).scan
        value = decoder.decode(text)
    if too_deep(text, value, levels):
        raise RecursionError(TOO_DEEP)
    return value


def _packing(scan: _Scan, packed: Callable[[Any], Any] | None) -> _Scan:
    """The scanner, with `packed` called for each value that it reads."""
    if packed is None:
        return scan

    def packing(text: str, at: int) -> tuple[Any, int]:
        value, end = scan(text, at)
        return packed(value), end

    return packing


class Digits(str):
    """A number in a JSON text of which a float would lose digits."""

    __slots__ = ()


def exact_number(text: str) -> float | Digits:
    """The number as a float, or its Digits. For `parse_float`."""
    value = float(text)
    return value if not math.isfinite(value) or Decimal(repr(value)) == Decimal(text) else Digits(text)


def loads_or(text: str, default: Any, *, values: int = VALUES, **options: Callable[[Any], Any]) -> Any:
    """What `loads` gives; `default` for a text that is not JSON, nests too deep or has too many values."""
    try:
        return loads(text, values=values, levels=DEEPEST, piece=0, **options)
    except (ValueError, RecursionError):
        return default


def too_deep(text: str, value: Any, levels: int = DEEPEST) -> bool:
    """Whether the value of a JSON text has more than `levels` containers inside one another."""
    if len(text) < SHORT:
        if text.count("{") + text.count("[") <= levels:
            return False
    elif max(text.rfind("{"), text.rfind("[")) < levels:  # there is no room for so many
        return False
    members: list[Any] = [value]
    few = len(text) // MEMBER
    for _ in range(levels):
        if CONTAINERS.isdisjoint(map(type, members)):
            return False
        if few >= 0 and (few := few - len(members)) < 0 and _shallow(text, levels):
            return False
        inner: list[Any] = []
        for one in members:
            if one.__class__ in CONTAINERS:
                inner += one.values() if isinstance(one, dict) else one
        members = inner
    return not CONTAINERS.isdisjoint(map(type, members))


def _shallow(text: str, levels: int) -> bool:
    """Whether the brackets of a JSON text show that it has no more levels: in no block of them can it get so deep. False
    if they do not show it."""
    if "\\" in text:
        text = text.replace("\\\\", "").replace('\\"', "")
    brackets = text.encode(errors="replace").translate(AS_LISTS, NO_BRACKETS)
    if 2 * brackets.count(b'""') != brackets.count(b'"'):  # strings with brackets
        brackets = b"".join(brackets.split(b'"')[::2])
    depth = 0
    for at in range(0, len(brackets), levels):
        opened = brackets.count(b"[", at, at + levels)
        if depth + opened > levels:
            return False
        depth += opened - brackets.count(b"]", at, at + levels)
    return True


def dumps(value: Any, size: int = LARGE) -> str:
    """Like `json.dumps(value, ensure_ascii=False)`. `size` is the approximate number of characters of the result; without
    it, the result may be large."""
    if size < LARGE:
        return _encode(value)
    return "".join(written(value, _encode))


def first_characters(value: Any, size: int) -> str:
    """The first characters of the JSON text of a value; no more of it is written than a step."""
    text = ""
    for piece in written(value, _encode):
        text += piece
        if len(text) >= size:
            break
    return text[:size]


def written(value: Any, encode: Callable[[Any], str]) -> Iterator[str]:
    """The JSON text of a value, in pieces that `encode` writes, each in one step."""
    if not isinstance(value, dict | list | array):
        yield from _scalar(value, encode)
        return
    make: Callable[[Any], Any] = dict if isinstance(value, dict) else list
    members = cast("Iterable[Any]", value.items() if isinstance(value, dict) else value)
    comma, brackets = "", "{}" if isinstance(value, dict) else "[]"
    yield brackets[0]
    for nested, alike in groupby(members, _nests_by_name if isinstance(value, dict) else _nests):
        while part := list(islice(alike, 1 if nested else ROW)):
            yield comma
            comma = ", "
            if not nested:
                yield encode(make(part))[1:-1]
            elif isinstance(value, dict):
                yield encode({part[0][0]: 0})[1:-2]
                yield from written(part[0][1], encode)
            else:
                yield from written(part[0], encode)
    yield brackets[1]


def _scalar(value: Any, encode: Callable[[Any], str]) -> Iterator[str]:
    if not isinstance(value, str):
        yield encode(value)
        return
    yield '"'
    yield from (encode(value[at : at + PIECE])[1:-1] for at in range(0, len(value), PIECE))
    yield '"'


def _nests(value: Any) -> bool:
    """Whether a value is written in steps of its own: a container, or a long text."""
    return len(value) > PIECE if isinstance(value, str) else isinstance(value, dict | list | array)


def _nests_by_name(member: tuple[str, Any]) -> bool:
    return _nests(member[1])


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of these members, for `object_pairs_hook`. Raises ValueError if a name comes twice: either value could be
    meant."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name comes twice")
    return members


def _as_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The last value of each name counts."""
    values: dict[str, Any] = {}
    for at in range(0, len(pairs), PIECE):
        values.update(pairs[at : at + PIECE])
    return values


class _Walker:
    """Parses a value at a position, with large containers walked member by member.

    It has no reference cycles, so that what it has read is freed at once.
    """

    def __init__(
        self,
        large: set[int],
        scan_small: _Scan,
        as_object: Callable[[Any], Any] = _as_dict,
    ) -> None:
        self._large = large
        self._scan_small = scan_small
        self._as_object = as_object
        self._names: dict[str, str] = {}

    def scan(self, text: str, at: int) -> tuple[Any, int]:
        if at not in self._large:
            return self._scan_small(text, at)
        if text[at] == "[":
            return STANDARD.JSONArray((text, at + 1), self.scan)
        return STANDARD.JSONObject((text, at + 1), True, self.scan, None, self._as_object, self._names)


def large_containers(text: str, piece: int = PIECE) -> set[int]:
    """The positions of objects and lists that are longer than `piece`, or that never end. Raises RecursionError."""
    begun: list[int] = []
    large: set[int] = set()
    for token in TOKEN.finditer(text):
        at, end = token.span()
        mark = text[at]
        if mark == '"':
            if end - at == 1:  # an unterminated string: the parser will report it, or an earlier error
                break
        elif mark in "{[" and end - at == 1:
            begun.append(at)
            if len(begun) > DEEPEST:
                raise RecursionError(TOO_DEEP)
        elif mark in "{[":
            if end - at > piece:
                large.add(at)
        elif begun and end - (start := begun.pop()) > piece:
            large.add(start)
    return large.union(begun)
