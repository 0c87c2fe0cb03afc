"""A request's body, within bounds: read, parsed, and held against the schema of its API."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, NoReturn, cast

from ..api.json_stream import paired
from ..errors import Refused
from ..schema import json_pieces
from ..schema.validators import judge
from ..types import Schema
from .config.settings import Limits
from .first_error import first_error

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


NAMED = 4
"""Of so many values that a body may hold, one may have a name."""
PIECE = 262_144
"""Characters that are counted in one step."""
BACKSLASHES = re.compile(r"\\*")


class Unreadable(ValueError):
    """A value that JSON has, and we do not take; the text says which."""


class Gone(Exception):
    """The client has left."""


async def read_body(receive: Receive, length: str | None, limits: Limits) -> bytes:
    """The bytes of a body. Raises Refused when it is too large or too slow, Gone when the client left."""
    if length is not None and length.isdigit() and int(length) > limits.body:
        raise _too_large(limits)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.reading):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                chunk: bytes = message.get("body", b"")
                size += len(chunk)
                if size > limits.body:
                    raise _too_large(limits)
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return b"".join(chunks)
    except TimeoutError:
        said = f"the body did not arrive within {limits.reading:g} s"
        raise Refused(said, status=408, code="request_timeout") from None


BROWSERS = frozenset((b"origin", b"referer", b"cookie", b"sec-fetch-site", b"sec-fetch-mode"))
"""Headers by which a browser is known."""


def check_head(headers: Iterable[tuple[bytes, bytes]], *, any_type: bool = False) -> None:
    """Raises Refused for a body that is not plain JSON by its headers.

    A web page can send other types, or none, to this machine without being asked first: those are refused too. With
    `any_type` they are taken from a client that is no browser. A browser names the `Origin` of every such request.
    """
    headers = tuple(headers)
    named = [value.lower().strip() for name, value in headers if name == b"content-encoding"]
    if any(value not in (b"", b"identity") for value in named):
        said = "a compressed body is not taken: send it without Content-Encoding"
        raise Refused(said, status=415, code="unsupported_media_type")
    if any_type and BROWSERS.isdisjoint(name for name, _ in headers):
        return
    _check_type(headers)


def _check_type(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raises Refused for a body of another type than JSON."""
    kinds = [value.partition(b";")[0].strip().lower() for name, value in headers if name == b"content-type"]
    if len(kinds) != 1 or not (kinds[0] == b"application/json" or kinds[0].endswith(b"+json")):
        got = b", ".join(kinds).decode("latin-1")[:100] or "none"
        said = f"expected the header Content-Type: application/json, got {got}"
        raise Refused(said, status=415, code="unsupported_media_type")


def parse_body(raw: bytes, limits: Limits) -> dict[str, Any]:
    """The JSON object that a body is. A name given twice takes its last value; half of a surrogate pair is U+FFFD."""
    try:
        text = paired(raw.decode().removeprefix("\ufeff"))
        # Before it is parsed, for a value takes far more room than its text; what stands in strings is not counted.
        _check_count(raw, text, limits)
        value: Any = json_pieces.loads(text, parse_constant=_no_number, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise _malformed(f"it is not UTF-8 (byte 0x{raw[error.start]:02x} at {error.start})") from None
    except RecursionError:
        raise _malformed(f"it nests deeper than {min(limits.depth, json_pieces.DEEPEST)} levels") from None
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except Unreadable as error:
        raise _malformed(str(error)) from None
    except ValueError:  # Python's own bound on the digits of a number
        raise _malformed("it holds a number that is too long") from None
    if not isinstance(value, dict):
        raise _malformed("expected an object")
    if json_pieces.too_deep(text, value, limits.depth):
        raise _malformed(f"it nests deeper than {limits.depth} levels")
    return cast("dict[str, Any]", value)


def checked_body(raw: bytes, schema: Schema, limits: Limits) -> dict[str, Any]:
    """The body, parsed and held against the schema of its API. Raises Refused."""
    body = parse_body(raw, limits)
    if b"null" in raw:
        drop_nulls(body, schema)
    check_body(body, schema)
    return body


def check_body(body: dict[str, Any], schema: Schema) -> None:
    """Raises Refused, which says what was expected where, when the body does not fit. A count given as 3.0 becomes
    3."""
    if judge(schema).is_valid(body):
        _count(body, schema)
        return
    raise first_error(body, schema)


def drop_nulls(value: Any, *schemas: Schema) -> None:
    """Takes away the fields that are null where the schemas want something else, or know no such field: clients write
    null for what they leave out. What no schema describes, such as a tool's parameters, stays as it is."""
    every = list(_alternatives(schemas))
    if isinstance(value, list):
        items = [schema["items"] for schema in every if "items" in schema]
        for one in cast("list[Any]", value) if items else ():
            drop_nulls(one, *items)
    elif isinstance(value, dict):
        described: dict[str, list[Schema]] = {}
        for schema in every:
            for name, inner in cast("dict[str, Schema]", schema.get("properties", {})).items():
                described.setdefault(name, []).append(inner)
        if described:
            _drop_null_fields(cast("dict[str, Any]", value), described)


def _drop_null_fields(table: dict[str, Any], described: Mapping[str, list[Schema]]) -> None:
    for name in list(table):
        schemas = described.get(name, [])
        if table[name] is None and not any(map(_takes_null, _alternatives(schemas))):
            del table[name]
        elif schemas:
            drop_nulls(table[name], *schemas)


def with_nulls(schema: Schema) -> dict[str, Any]:
    """The schema as it is for a body whose nulls were not dropped yet: null stands for a field that is left out."""
    made = dict(schema)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in made:
            made[word] = [with_nulls(one) for one in made[word]]
    if isinstance(made.get("items"), Mapping):
        made["items"] = with_nulls(made["items"])
    if "properties" in made:
        required = made.get("required", ())
        made["properties"] = {
            name: _or_null(with_nulls(inner), inner) if name not in required else with_nulls(inner)
            for name, inner in made["properties"].items()
        }
    return made


def _or_null(published: Schema, schema: Schema) -> Schema:
    if any(map(_takes_null, _alternatives((schema,)))):
        return published
    kinds = schema.get("type")
    if isinstance(kinds, str | list) and not {"enum", "const"} & schema.keys():
        return {**published, "type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]}
    return {"anyOf": [published, {"type": "null"}]}


def _alternatives(schemas: Iterable[Schema]) -> Iterator[Schema]:
    for schema in schemas:
        yield schema
        for word in ("anyOf", "oneOf", "allOf"):
            yield from _alternatives(schema.get(word, ()))


def _takes_null(schema: Schema) -> bool:
    kinds = schema.get("type", ())
    return kinds == "null" or (kinds != "" and "null" in kinds) or None in schema.get("enum", ()) or not schema


def _count(body: dict[str, Any], schema: Schema) -> None:
    """Makes whole numbers of those that the schema wants whole: to JSON Schema 3.0 is one."""
    properties: dict[str, Any] = schema["properties"]
    for name, value in body.items():
        if isinstance(value, float) and "integer" in properties.get(name, {}).get("type", ()):
            body[name] = int(value)


def _check_count(raw: bytes, text: str, limits: Limits) -> None:
    """Refuses what holds too many values, or too many names: those of objects take ten times as long to read."""
    named = limits.values // NAMED
    if len(raw) <= named or (_marks(raw) <= limits.values and raw.count(b":") <= named):
        return
    marks = names = 0
    for bare in _outside_strings(text):
        marks += _marks(bare)
        names += bare.count(":")
    if marks > limits.values:
        raise _malformed(f"it holds more than {limits.values:,} values")
    if names > named:
        raise _malformed(f"it holds more than {named:,} names of values")


def _marks(text: Any) -> int:
    """About how many values a text holds: there is one before each comma and in each bracket."""
    return sum(map(text.count, (",", "{", "[") if isinstance(text, str) else (b",", b"{", b"[")))


def _outside_strings(text: str) -> Iterator[str]:
    """What stands outside of the strings of a JSON text, in pieces. One step of C code for all of a text would hold the
    interpreter."""
    at, inside = 0, False
    while at < len(text):
        end = at + PIECE
        if text[end - 1 : end] == "\\":  # an escape is not cut in two
            end = BACKSLASHES.match(text, end).end() + 1  # type: ignore[union-attr]
        parts = text[at:end].replace("\\\\", "").replace('\\"', "").split('"')
        yield "".join(parts[inside::2])
        inside ^= len(parts) % 2 == 0
        at = end


def _too_large(limits: Limits) -> Refused:
    return Refused(f"the body is larger than {limits.body:,} bytes", status=413, code="request_too_large")


def _malformed(why: str) -> Refused:
    return Refused(f"the body is not JSON as it is expected: {why}", code="invalid_json")


def _no_number(name: str) -> NoReturn:
    raise Unreadable(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Unreadable("it holds a number that is too large")
    return value
