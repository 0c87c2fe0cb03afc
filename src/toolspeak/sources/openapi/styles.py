"""Encodes OpenAPI parameters in their styles: `simple`, `label` and `matrix` in paths, `form` and others in queries,
after RFC 6570."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import quote, unquote

from ...errors import ToolError

Place = Literal["path", "query", "header", "cookie", "field", "body"]

DEFAULTS: dict[str, str] = {"path": "simple", "query": "form", "header": "simple", "cookie": "form", "field": "form"}
STYLES: dict[str, frozenset[str]] = {
    "path": frozenset({"simple", "label", "matrix"}),
    "query": frozenset({"form", "spaceDelimited", "pipeDelimited", "deepObject"}),
    "header": frozenset({"simple"}),
    "cookie": frozenset({"form"}),
    "field": frozenset({"form", "spaceDelimited", "pipeDelimited", "deepObject"}),
}
SEPARATORS = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
RESERVED = ":/?@!$'()*,"
"""Characters that `allowReserved` leaves unencoded. &, =, +, # and ; are not among them: for some servers, they end a value."""
DEEP = 10
"""The most levels of a deepObject."""


@dataclass(frozen=True, slots=True)
class ArgumentSlot:
    """The place of an argument: `argument` is its name for the model, `name` the one for the server.

    `json`: the value is written as JSON, whatever the style. `file`: it is sent as a file.
    """

    argument: str
    place: Place
    name: str
    style: str = ""
    explode: bool = False
    reserved: bool = False
    json: bool = False
    file: bool = False


def path_part(slot: ArgumentSlot, value: Any) -> str:
    """Return a parameter encoded as one path segment. Raises ToolError if it would change the path, as an empty value
    would: it turns an item's path into that of the list."""
    if isinstance(value, (list, dict)) and not value and not slot.json:
        raise _not_a_part(slot)
    if slot.json:
        return _one_segment(slot, _json(value))
    if slot.style == "label":
        return "." + _joined(slot, value, "." if slot.explode else ",")
    return _matrix(slot, value) if slot.style == "matrix" else _joined(slot, value, ",")


def _matrix(slot: ArgumentSlot, value: Any) -> str:
    name = quote(slot.name, safe="")
    if slot.explode and isinstance(value, (list, dict)):
        return "".join(f";{one}" for one in _listed(slot, value, name))
    return f";{name}={_joined(slot, value, ',')}"


def is_dots(part: str) -> bool:
    """Whether a segment is `.` or `..`, also with blanks around it: some servers, such as those on Windows, drop them."""
    return part.strip() in (".", "..")


def whole_segments(path: str) -> bool:
    """Whether no path segment is empty, `.` or `..`, even if a server decodes it first."""
    plain = path.removeprefix("/").removesuffix("/")
    for _ in range(3):
        # Some servers remove everything after a semicolon from a segment first.
        parts = plain.replace("\\", "/").split("/")
        if any(is_dots(part.partition(";")[0]) or not part.strip() for part in parts):
            return not plain  # the root has no segments
        plain = unquote(plain)
    return True


def climbs(path: str) -> bool:
    """Whether a path leaves the folder in which it begins, even if a server decodes it first."""
    for _ in range(3):
        if any(is_dots(part.partition(";")[0]) for part in path.replace("\\", "/").split("/")):
            return True
        path = unquote(path)
    return False


def own_names(slot: ArgumentSlot, value: Any) -> list[str]:
    """Return the parameter names that a value introduces: the field names of an exploded object."""
    if slot.json or not slot.explode or slot.style == "deepObject" or not isinstance(value, dict):
        return []
    return list(cast("dict[str, Any]", value))


def deep_names(slot: ArgumentSlot, value: Any) -> list[str]:
    """Return the names that a deepObject is sent under, such as `filter[owner]`."""
    if slot.json or slot.style != "deepObject" or not isinstance(value, (dict, list)):
        return []
    return [unquote(name) for name, _ in _deep(slot.name, value)]


def would_set(slot: ArgumentSlot, names: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return those of the names which a value is sent under that set one of the `others`. A deepObject's names are inside
    its own, so they can only set a parameter that has levels too."""
    if slot.style == "deepObject":
        inside = [levels for levels in map(_levels, others) if len(levels) > 1]
        return [name for name in names if any(_overlap(_levels(name), levels) for levels in inside)]
    plain = set(map(plain_name, others))
    return [name for name in names if plain_name(name) in plain]


def _overlap(levels: Sequence[str], others: Sequence[str]) -> bool:
    """Whether one of two names with brackets or dots, such as `filter[owner]`, stands for a value in the other."""
    return all(map(operator.eq, levels, others))


def _levels(name: str) -> list[str]:
    """Return the levels of a name as the most lenient server reads them."""
    plain = unquote(name).partition("\0")[0].lower()
    return [part for part in map(str.strip, re.split(r"[\[\].]+", plain)) if part]


def plain_name(name: str) -> str:
    """Return a parameter's name as the most lenient server reads it: cut at a bracket or NUL, dots and blanks as
    underscores."""
    return (
        unquote(name)
        .partition("\0")[0]
        .partition("[")[0]
        .strip()
        .lower()
        .replace(".", "_")
        .replace(" ", "_")
        .replace("-", "_")
    )


def header_text(slot: ArgumentSlot, value: Any) -> str:
    """Return a header's text. Raises ToolError for characters that a header cannot carry, such as a line break."""
    text = _json(value) if slot.json else _simple(value, slot.explode, ",", _text)
    if not all(0x20 <= ord(c) < 0x7F or 0xA0 <= ord(c) <= 0xFF for c in text):
        raise ToolError(
            f"the argument {slot.argument!r} goes into a header, which must not contain a line break or control character"
        )
    return text.strip()


def query_pairs(slot: ArgumentSlot, value: Any) -> Iterator[str]:
    """Yield the encoded `name=value` pairs of a query, a cookie or a form."""
    name = quote(slot.name, safe="[]")
    encode = _encoder(slot)
    if slot.json:
        yield f"{name}={encode(_json(value))}"
    elif slot.style == "deepObject" and isinstance(value, (dict, list)):
        yield from (f"{inner}={encode(text)}" for inner, text in _deep(name, value))
    elif slot.explode and isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        yield from (f"{quote(key, safe='[]')}={encode(_text(part))}" for key, part in fields)
    elif slot.explode and isinstance(value, list):
        yield from (f"{name}={encode(_text(part))}" for part in cast("list[Any]", value))
    else:
        yield f"{name}={_simple(value, False, SEPARATORS.get(slot.style, ','), lambda part: encode(_text(part)))}"


def _encoder(slot: ArgumentSlot) -> Callable[[str], str]:
    return lambda text: quote(text, safe=RESERVED if slot.reserved else "")


def _joined(slot: ArgumentSlot, value: Any, separator: str) -> str:
    return _simple(value, slot.explode, separator, lambda part: _one_segment(slot, _text(part)))


def _listed(slot: ArgumentSlot, value: Any, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in cast("dict[str, Any]", value).items():
            yield f"{_one_segment(slot, key)}={_one_segment(slot, _text(part))}"
    else:
        for part in cast("list[Any]", value):
            yield f"{name}={_one_segment(slot, _text(part))}"


def _simple(value: Any, explode: bool, separator: str, write: Callable[[Any], str]) -> str:
    if isinstance(value, list):
        return separator.join(map(write, cast("list[Any]", value)))
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        if explode:
            return separator.join(f"{write(key)}={write(part)}" for key, part in fields)
        return separator.join(write(one) for pair in fields for one in pair)
    return write(value)


def _deep(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, str]]:
    if depth < DEEP and isinstance(value, dict):
        for key, part in cast("dict[str, Any]", value).items():
            yield from _deep(f"{name}[{quote(key, safe='')}]", part, depth + 1)
    elif depth < DEEP and isinstance(value, list):
        for index, part in enumerate(cast("list[Any]", value)):
            yield from _deep(f"{name}[{index}]" if isinstance(part, (dict, list)) else f"{name}[]", part, depth + 1)
    else:
        yield name, _text(value)


def _one_segment(slot: ArgumentSlot, text: str) -> str:
    """Return a text as part of one path segment. `..` is refused, because servers and proxies decode before they check."""
    plain = text
    for _ in range(3):
        parts = plain.replace("\\", "/").split("/")
        if any(is_dots(part) or not part.strip() for part in parts) or not plain.isprintable():
            raise _not_a_part(slot)
        plain = unquote(plain)
    return quote(text, safe="")


def _not_a_part(slot: ArgumentSlot) -> ToolError:
    return ToolError(
        f"the argument {slot.argument!r} is a part of a path: it must not be empty, nor contain a part "
        "that is empty, `.` or `..`"
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
