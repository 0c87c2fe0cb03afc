"""Reads a request's body within limits, parses it, and checks it against the schema of its API."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, NoReturn, cast

from ..api.json_stream import paired
from ..errors import Refused
from ..schema import nonblocking_json
from ..schema.validators import judge
from ..schema.value_count import marks, outside_strings
from ..types import Schema
from .config.settings import GatewayLimits
from .first_schema_error import first_error

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


NAMED = 4
"""A body may have one object key for so many of its allowed values."""


class Unreadable(ValueError):
    """A value that JSON allows but the gateway does not accept; the text says which."""


class Gone(Exception):
    """The client has closed the connection."""


async def read_body(receive: Receive, length: str | None, limits: GatewayLimits) -> bytes:
    """Return the bytes of a body. Raises Refused if it is too large or too slow, Gone if the client left."""
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
        problem = f"the body did not arrive within {limits.reading:g} s"
        raise Refused(problem, status=408, code="request_timeout") from None


BROWSERS = frozenset((b"origin", b"referer", b"cookie", b"sec-fetch-site", b"sec-fetch-mode"))
"""Headers that only browsers send."""


def check_head(headers: Iterable[tuple[bytes, bytes]], *, any_type: bool = False) -> None:
    """Raises Refused if the headers say that the body is not plain JSON.

    A web page can send other content types, or none, to this machine without a preflight request, so those are refused.
    With `any_type` they are accepted from clients other than browsers.
    """
    headers = tuple(headers)
    named = [value.lower().strip() for name, value in headers if name == b"content-encoding"]
    if any(value not in (b"", b"identity") for value in named):
        message = "a compressed body is not supported: send it without Content-Encoding"
        raise Refused(message, status=415, code="unsupported_media_type")
    if any_type and BROWSERS.isdisjoint(name for name, _ in headers):
        return
    _check_type(headers)


def _check_type(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raises Refused for a body of another type than JSON."""
    kinds = [value.partition(b";")[0].strip().lower() for name, value in headers if name == b"content-type"]
    if len(kinds) != 1 or not (kinds[0] == b"application/json" or kinds[0].endswith(b"+json")):
        got = b", ".join(kinds).decode("latin-1")[:100] or "none"
        message = f"expected the header Content-Type: application/json, got {got}"
        raise Refused(message, status=415, code="unsupported_media_type")


def parse_body(raw: bytes, limits: GatewayLimits) -> dict[str, Any]:
    """Return the JSON object in a body. Of a repeated name the last value counts; a lone surrogate becomes U+FFFD."""
    levels = min(limits.depth, nonblocking_json.DEEPEST)
    try:
        text = paired(raw.decode().removeprefix("\ufeff"))
        # Counted before parsing, because a value takes far more memory than its text. Strings are skipped.
        _check_count(raw, text, limits)
        value: Any = nonblocking_json.loads(
            text, values=len(text), levels=levels, parse_constant=_no_number, parse_float=_finite
        )
    except UnicodeDecodeError as error:
        raise _malformed(f"it is not UTF-8 (byte 0x{raw[error.start]:02x} at {error.start})") from None
    except RecursionError:
        raise _malformed(f"it nests deeper than {levels} levels") from None
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except Unreadable as error:
        raise _malformed(str(error)) from None
    except ValueError:  # Python's limit on the digits of an integer
        raise _malformed("it contains a number with too many digits") from None
    if not isinstance(value, dict):
        raise _malformed("expected an object")
    return cast("dict[str, Any]", value)


def checked_body(raw: bytes, schema: Schema, limits: GatewayLimits) -> dict[str, Any]:
    """Return the body, parsed and checked against the schema of its API. Raises Refused."""
    body = parse_body(raw, limits)
    if b"null" in raw:
        drop_nulls(body, schema)
    check_body(body, schema)
    return body


def check_body(body: dict[str, Any], schema: Schema) -> None:
    """Raises Refused, with what was expected and where, if the body does not match the schema. An integer written as
    3.0 becomes 3."""
    if judge(schema).is_valid(body):
        _count(body, schema)
        return
    raise first_error(body, schema)


def drop_nulls(value: Any, *schemas: Schema) -> None:
    """Remove the fields that are null although the schemas expect something else or do not know them: clients write
    null for fields that they leave out. Values that no schema describes, such as a tool's parameters, are not changed.
    """
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
    """Return the schema for a body before `drop_nulls`, where null stands for a missing field."""
    changed = dict(schema)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in changed:
            changed[word] = [with_nulls(one) for one in changed[word]]
    if isinstance(changed.get("items"), Mapping):
        changed["items"] = with_nulls(changed["items"])
    if "properties" in changed:
        required = changed.get("required", ())
        changed["properties"] = {
            name: _or_null(with_nulls(inner), inner) if name not in required else with_nulls(inner)
            for name, inner in changed["properties"].items()
        }
    return changed


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
    """Turn 3.0 into 3 wherever the schema expects an integer: JSON Schema does not distinguish them."""
    properties: dict[str, Any] = schema["properties"]
    for name, value in body.items():
        if isinstance(value, float) and "integer" in properties.get(name, {}).get("type", ()):
            body[name] = int(value)


def _check_count(raw: bytes, text: str, limits: GatewayLimits) -> None:
    """Raises Refused for too many values or object keys. Keys take ten times as long to read."""
    named = limits.values // NAMED
    if len(raw) <= named:
        return
    if marks(raw) <= limits.values and raw.count(b":") <= named:
        return
    values = names = 0
    for bare in outside_strings(text):
        values += marks(bare)
        names += bare.count(":")
    if values > limits.values:
        raise _malformed(f"it contains more than {limits.values:,} values")
    if names > named:
        raise _malformed(f"it contains more than {named:,} object keys")


def _too_large(limits: GatewayLimits) -> Refused:
    return Refused(f"the body is larger than {limits.body:,} bytes", status=413, code="request_too_large")


def _malformed(why: str) -> Refused:
    return Refused(f"invalid JSON body: {why}", code="invalid_json")


def _no_number(name: str) -> NoReturn:
    raise Unreadable(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Unreadable("it contains a number that is too large")
    return value
