"""A request's body, within bounds: read, parsed, and held against the schema of its API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NoReturn, cast

from ..api.payloads import paired
from ..errors import Refused
from ..schema.check import check
from ..schema.judge import judge
from ..types import Schema, Tool
from .settings import Limits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


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


def parse_body(raw: bytes, limits: Limits) -> dict[str, Any]:
    """The JSON object that a body is. A name given twice takes its last value; half of a surrogate pair is U+FFFD."""
    try:
        value: Any = json.loads(paired(raw.decode("utf-8-sig")), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise _malformed(f"it is not UTF-8 (byte 0x{raw[error.start]:02x} at {error.start})") from None
    except RecursionError:
        raise _malformed(f"it nests deeper than {limits.depth} levels") from None
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError as error:
        raise _malformed(str(error)) from None
    if not isinstance(value, dict):
        raise _malformed("expected an object")
    # A small body cannot hold more than its brackets say.
    if raw.count(b"{") + raw.count(b"[") > limits.depth:
        _walk(cast("dict[str, Any]", value), limits)
    return cast("dict[str, Any]", value)


def check_body(body: dict[str, Any], schema: Schema) -> None:
    """Raises Refused, which says what was expected where, when the body does not fit. A count given as 3.0 becomes 3."""
    if judge(schema).is_valid(body):
        _count(body, schema)
        return
    problem = check(Tool("body", parameters=schema), body)[0]
    param = problem.path.removeprefix("/").replace("/", ".")
    said = f"{param or 'the body'}: expected {problem.expected}, got {problem.received}"
    raise Refused(said, code="invalid_value", param=param or None)


def _count(body: dict[str, Any], schema: Schema) -> None:
    """Makes whole numbers of those that the schema wants whole: to JSON Schema 3.0 is one."""
    properties: dict[str, Any] = schema["properties"]
    for name, value in body.items():
        if isinstance(value, float) and "integer" in properties.get(name, {}).get("type", ()):
            body[name] = int(value)


def _walk(value: Any, limits: Limits) -> None:
    """Refuses what nests too deep or holds too many values."""
    level: list[Any] = [value]
    seen = 0
    for _ in range(limits.depth):
        seen += len(level)
        if seen > limits.values:
            raise _malformed(f"it holds more than {limits.values:,} values")
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner += cast("dict[str, Any]", item).values()
            elif isinstance(item, list):
                inner += cast("list[Any]", item)
        if not inner:
            return
        level = inner
    raise _malformed(f"it nests deeper than {limits.depth} levels")


def _too_large(limits: Limits) -> Refused:
    return Refused(f"the body is larger than {limits.body:,} bytes", status=413, code="request_too_large")


def _malformed(why: str) -> Refused:
    return Refused(f"the body is not JSON as it is expected: {why}", code="invalid_json")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
