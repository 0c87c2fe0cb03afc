"""Converts a tool's result to the text that a model reads: strings as they are, everything else as JSON, within a
limit.

A result that is too long keeps its head and its tail, stays valid JSON, and says how much was left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, cast

from .errors import CallError, ToolError
from .result_tables import table_rows, unique_names
from .schema.nonblocking_json import LARGE, dumps
from .schema.phrases import beginning

LIMIT = 16_000
"""The default limit of a result in characters."""
EACH = 10
"""Characters of JSON that a member of an object or a list counts besides its text."""
PROBED = 1_000

_PASSWORD = re.compile(r"(?<=://)([^\s/@:]{0,256}):(?!\d{1,5}[/?#])\S{1,1024}@")
"""The user and password in a URL. A password may contain a slash, though it should not, and an @."""
_TOKEN = re.compile(r"(?<=://)[^\s/@:]{16,1024}@")
"""A user in a URL that is so long that it may be a token, such as that of a Git server."""

_DEPTH = 50
_OBJECT = 16
"""The levels of depth that an object with fields counts: an object may refer to many others, and these to it."""


def result_text(value: Any, limit: int | None = LIMIT) -> str:
    """`value` as a model should read it, in at most `limit` characters (never fewer than 200). None sets no limit.

    A string stays a string. Dataclasses, models, enums, dates, sets, bytes and the like become the closest JSON, and an
    object without a text of its own its public fields. NaN becomes "NaN", a cycle "<cycle>", and an object without a
    JSON form its `str`.
    """
    bound = max(limit, 200) if limit is not None else None
    if isinstance(value, str) and type(value) is str:
        text = _clean(value)
        return text if bound is None or len(text) <= bound else _cut(text, bound)
    data = jsonable(value)
    text = dumps(data, plain_size(data))
    if bound is None or len(text) <= bound:
        return text
    text = _dump(_shrink(data, bound))
    return text if len(text) <= bound else _dump(_cut_json(text, bound))


def plain_size(value: Any) -> int:
    """About how many characters of JSON plain data takes, at least; 0 if it contains another object, whose own code may
    depend on the thread. Of the values in it, PROBED are examined."""
    size, rest = 0, [value]
    for _ in range(PROBED):
        if not rest:
            break
        one = rest.pop()
        kind = cast("type[Any]", type(one))
        if kind is str:
            size += len(one)
        elif kind in (dict, list, tuple):
            size += EACH * len(one)
            rest += islice(one.values() if kind is dict else one, PROBED)
        elif kind not in (int, float, bool, type(None)):
            return 0
    return size


def jsonable(value: Any, _inside: tuple[int, ...] = ()) -> Any:
    """`value` as plain JSON data. Never raises."""
    simple = _simple(value)
    if simple is not _NOT_SIMPLE:
        return simple
    if id(value) in _inside:
        return "<cycle>"
    if len(_inside) > _DEPTH:
        return "<too deep>"
    inside = (*_inside, id(value))
    try:
        plain = _open(value)
    except Exception:  # noqa: BLE001 - whatever a result's own code does, the run goes on
        return _own_text(value)
    if isinstance(plain, _Fields):
        inside += (id(value),) * (_OBJECT - 1)
    if isinstance(plain, dict):
        return _named(cast("dict[Any, Any]", plain), inside)
    if isinstance(plain, list):
        return [jsonable(part, inside) for part in cast("list[Any]", plain)]
    return plain if isinstance(plain, str) else jsonable(plain, inside)


_NOT_SIMPLE = object()


def _simple(value: Any) -> Any:
    if value is None or value is True or value is False:
        return value
    kind = cast("type[Any]", type(value))
    if kind is str:
        return _clean(value)
    if kind is int:
        return value if value.bit_length() < 10_000 else f"<an integer of {value.bit_length()} bits>"
    if kind is float:
        return value if math.isfinite(value) else str(value).replace("nan", "NaN").replace("inf", "Infinity")
    return _NOT_SIMPLE


def _open(value: Any) -> Any:
    """`value` with one level converted: a dict, a list, a string, or something to convert further."""
    import dataclasses
    import datetime
    import enum
    import uuid
    from decimal import Decimal
    from pathlib import PurePath

    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _of_bytes(bytes(cast("Any", value)))
    if isinstance(value, (datetime.date, datetime.time)):
        return _date(value)
    if isinstance(value, (datetime.timedelta, Decimal, uuid.UUID, PurePath, complex)):
        return str(value)
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, BaseException):
        return {"type": type(value).__name__, "message": message_of(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    return _open_by_form(value)


def _date(value: Any) -> str | None:
    """A date in ISO format; None for NaT, a missing date of pandas, which is unequal to itself."""
    return value.isoformat() if value == value else None


def _open_by_form(value: Any) -> Any:
    """Converts types by their methods: tables, models, named tuples, arrays, sets and lists."""
    if isinstance(value, type):
        return _own_text(value)
    if (rows := table_rows(value)) is not None:
        return rows
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "_asdict"):
        return dict(value._asdict())
    if isinstance(value, (list, tuple)):
        return list(cast("Iterable[Any]", value))
    if isinstance(value, (set, frozenset)):
        parts = list(cast("Iterable[Any]", value))
        return sorted(parts, key=lambda part: (type(part).__name__, repr(part)))
    for reader in ("tolist", "to_list", "as_py", "to_dict"):  # arrays, columns and their scalars
        if callable(getattr(value, reader, None)):
            return getattr(value, reader)()
    if isinstance(value, Iterable) and hasattr(cast("Any", value), "__len__"):
        return list(cast("Iterable[Any]", value))
    return _fields(value) or _own_text(value)


class _Fields(dict[str, Any]):
    """The public fields of an object."""


def _fields(value: Any) -> _Fields:
    """The public fields of an object that is like a record: of attrs, a SimpleNamespace, or any object without a text of
    its own. Of other objects none."""
    from types import SimpleNamespace

    kind = cast("type[Any]", type(value))
    slots = [name for base in kind.__mro__ for name in _names(getattr(base, "__slots__", ()))]
    if not any((hasattr(kind, "__attrs_attrs__"), isinstance(value, SimpleNamespace), _without_text(kind))):
        return _Fields()
    public = [name for name in (*getattr(value, "__dict__", ()), *slots) if name[:1] != "_"]
    return _Fields({name: getattr(value, name) for name in public if hasattr(value, name)})


def _names(slots: str | Iterable[str]) -> Iterable[str]:
    return [slots] if isinstance(slots, str) else slots


def _without_text(kind: type[Any]) -> bool:
    """Whether the text of such objects is only their type and their address."""
    return kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__


def _of_bytes(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(value).decode()}


def message_of(error: BaseException) -> str:
    """`str(error)`, or "" if the exception's own `__str__` fails: that must not end the run."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever a stranger's __str__ raises
        return ""


def _own_text(value: Any) -> str:
    """`str(value)`, or the name of its type: a memory address means nothing to a model."""
    kind = cast("type[Any]", type(value))
    if _without_text(kind):
        return f"<{kind.__qualname__}>"
    try:
        text = _clean(str(value))
    except Exception:  # noqa: BLE001 - a broken __str__ is no reason to lose the run
        return f"<{kind.__qualname__}>"
    return f"<{kind.__qualname__}>" if " at 0x" in text else text


def _named(record: dict[Any, Any], inside: tuple[int, ...]) -> dict[str, Any]:
    """A dict with texts as keys. Of keys with the same text, the later ones get a number: `1`, `1 (2)`."""
    names = unique_names(map(_key, record))
    return {name: jsonable(part, inside) for name, part in zip(names, record.values(), strict=True)}


def _key(key: Any) -> str:
    plain = jsonable(key)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _clean(text: str) -> str:
    """Text that can be encoded: lone surrogates become replacement characters."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _dump(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


def _cut(text: str, bound: int) -> str:
    """The head and the tail of a text, with a line between them that counts what is missing."""
    room = bound - len(f"\n[… {len(text)} characters left out …]\n")
    head, tail = room - room // 3, room // 3
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[len(text) - tail :]}"


def _cut_json(text: str, bound: int) -> str:
    """A cut of `text` whose JSON string has at most `bound` characters."""
    keep = bound
    while len(_dump(cut := _cut(text, keep))) > bound and keep > 100:
        keep -= max(20, (len(_dump(cut)) - bound) // 2)
    return cut


def _fits(data: Any, bound: int) -> bool:
    return plain_size(data) < LARGE and len(_dump(data)) <= bound


def _shrink(data: Any, bound: int) -> Any:
    if _fits(data, bound):
        return data
    if isinstance(data, str):
        return _cut_json(data, bound) if bound >= 100 else f"[… {len(data)} characters left out …]"
    if isinstance(data, dict):
        items = [(len(_dump(key)) + 2, key, part) for key, part in cast("dict[str, Any]", data).items()]
        shrunk, missing = _shrink_items(items, bound)
        head = dict(shrunk[0])
        if missing:
            head["…"] = f"{missing} more fields left out"
        return {**head, **dict(shrunk[1])}
    if isinstance(data, list):
        rows = [(0, "", part) for part in cast("list[Any]", data)]
        shrunk, missing = _shrink_items(rows, bound)
        gap = [f"… {missing} more items left out …"] if missing else []
        return [*(part for _, part in shrunk[0]), *gap, *(part for _, part in shrunk[1])]
    return data


_Pairs = list[tuple[str, Any]]


def _shrink_items(items: list[tuple[int, str, Any]], bound: int) -> tuple[tuple[_Pairs, _Pairs], int]:
    """((head, tail), number of missing items between them): the items that fit, with large ones shrunk themselves."""
    room = bound - 50
    sizes = [extra + len(_dump(part)) + 2 for extra, _, part in items]
    if len(items) <= 12 and room > 100 * len(items):
        share = fair_share(sizes, room)
        return ([(key, _shrink(part, max(share - extra - 2, 20))) for extra, key, part in items], []), 0
    most = max(room // 4, 40)
    head: _Pairs = []
    tail: _Pairs = []
    first, last = 0, len(items) - 1
    for side, allowed in ((head, room - room // 3), (tail, room // 3)):
        while first <= last:
            extra, key, part = items[first if side is head else last]
            if min(sizes[first if side is head else last], most) > allowed:
                break
            part = _shrink(part, max(most - extra - 2, 20))
            allowed -= extra + len(_dump(part)) + 2
            side.append((key, part))
            first, last = (first + 1, last) if side is head else (first, last - 1)
    return (head, tail[::-1]), last - first + 1


def fair_share(sizes: list[int], room: int) -> int:
    """The largest share per item with which all sizes fit into `room`. What small items do not need goes to larger
    ones."""
    share, left, many = 0, room, len(sizes)
    for size in sorted(sizes):
        share = left // many
        if size > share:
            break
        left -= size
        many -= 1
    return share


def without_passwords(text: str) -> str:
    """Return a text without the passwords in URLs."""
    return _TOKEN.sub("[hidden]@", _PASSWORD.sub(r"\1:[hidden]@", text))


def exception_text(error: BaseException, show: bool = True, clean: Callable[[str], str] = str) -> str:
    """An error as a model reads it: JSON with its type, its message and, for a call, its problems. There is no
    traceback.

    Passwords in URLs, and what `clean` removes, are missing in the exceptions of a tool's function. With `show` false
    the whole message is omitted, unless the function itself raised a ToolError, which is meant for the model.
    """
    cause = error.__cause__ if type(error) is ToolError else None
    exception = error if cause is None else cause
    text = message_of(exception)
    if cause is not None and not show and not isinstance(cause, ToolError):
        exception, text = error, "the tool failed"
    if cause is not None:
        text = without_passwords(clean(beginning(text, 20_000)))
    fields: dict[str, Any] = {"type": type(exception).__name__, "message": beginning(text, 2_000)}
    if isinstance(error, CallError) and error.problems:
        fields["problems"] = [
            {"path": p.path, "expected": p.expected, "received": p.received, "message": p.message}
            for p in error.problems
        ]
    return result_text({"error": fields}, 8_000)
