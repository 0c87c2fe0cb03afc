"""Splits a reply's bytes into JSON payloads, from server-sent events, JSON lines or one JSON body.

The format is recognized by the first character, not by the content type, which servers and proxies get wrong: `{` or
`[` starts JSON, `<` an HTML page that a proxy sent instead, and anything else is an event stream.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from ..errors import ModelError, ServerFailed
from ..schema.nonblocking_json import LARGE, VALUES, as_list, dumps, loads
from ..schema.value_count import has_more
from .sse_parser import LONGEST, UTF_8, EventParser, ServerEvent
from .upstream_errors import excerpt, failure

TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL | re.IGNORECASE)

ESCAPE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.")
"""An escape in JSON text; the group is half a surrogate pair. The second alternative is never one that the first
takes."""

Payload = dict[str, Any]

JSON_LINES = b"application/x-ndjson"
"""The content type of JSON lines."""


def records(value: Any) -> list[Payload]:
    """Return the objects in a JSON list; nothing for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def entries(value: Any) -> list[Payload]:
    """Return the objects in a JSON list, with an empty one in place of each other value; a value that is no list counts as
    a list of one. None and other empty values have none."""
    if not value:
        return []
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [item if isinstance(item, dict) else {} for item in items]


def record(value: Any) -> Payload:
    """Return a JSON object; an empty one for any other value."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] - a cast takes time


def first_record(value: Any) -> Payload | None:
    """Return the first object in a JSON list; None without one."""
    for item in value if isinstance(value, list) else ():  # pyright: ignore[reportUnknownVariableType]
        if isinstance(item, dict):
            return item  # pyright: ignore[reportUnknownVariableType]
    return None


class Payloads:
    """Yields complete JSON objects: `feed` it bytes. An error that the server sends is raised.

    `lines`: JSON is one object per line; otherwise it is one body. `done` says that `[DONE]` arrived, `whole` that one
    body arrived instead of a stream. `received` counts payloads, or the characters of a body: while it grows, the
    server makes progress. `unread` are the characters of which nothing has come yet: whoever reads a part of the reply
    in them sets it to 0, and more than LONGEST are an error.
    """

    def __init__(self, *, lines: bool = False) -> None:
        self.done = False
        self.whole = False
        self.received = 0
        self.unread = 0
        self._failed: ModelError | None = None
        self._lines = lines
        self._kind = ""
        self._decoder = UTF_8("replace")
        self._parser = EventParser()
        self._text: list[str] = []

    def feed(self, chunk: bytes) -> list[Payload]:
        """Return the payloads that are complete. An error after some of them is raised by the next call, such as
        `feed(b"")`."""
        if self._failed:
            raise self._failed
        return self._take(self._decoder.decode(chunk)) if chunk else []

    def close(self) -> list[Payload]:
        """Return the last payloads. Whether the reply may end here is for the codec to decide."""
        if self._failed:
            raise self._failed
        payloads = self._take(self._decoder.decode(b"", True))
        if self._kind == "events":
            return payloads + self._events([event for event in self._parser.close() if not self._cut(event[0])])
        rest = "".join(self._text).strip()
        self._text.clear()
        if self._lines and self._cut(rest):
            return payloads
        if self._kind == "page":
            raise ServerFailed(f"the server sent a web page instead of an answer: {page_title(rest)}")
        if rest:
            payloads.append(self._parse(rest))
            self.whole = not self._lines
        return payloads

    def _cut(self, text: str) -> bool:
        """Whether the last event of a stream broke off. The codec reports that best, by the missing end."""
        return self.received > 0 and text.strip() != "[DONE]" and not _is_json(text)

    def _take(self, text: str) -> list[Payload]:
        self.unread += len(text)
        if self.unread > LONGEST:
            raise ServerFailed(f"the server sent more than {LONGEST:,} characters without an end, or a part of a reply")
        if not self._kind:
            text = text.lstrip("\ufeff \t\r\n")
            if not text:
                return []
            self._kind = "json" if text[0] in "{[" else "page" if text[0] == "<" else "events"
        if self._kind == "events":
            return self._events(self._parser.feed(text))
        return self._json(text)

    def _json(self, text: str) -> list[Payload]:
        if self._kind == "json" and not self._lines:
            self.received += len(text)
        self._text.append(text)
        if not self._lines or self._kind == "page" or "\n" not in text:
            return []
        *whole, rest = "".join(self._text).split("\n")
        self._text = [rest]
        return self._events([(line, "", "") for line in whole])

    def _events(self, events: list[ServerEvent]) -> list[Payload]:
        """Parse the data of events. An error waits until the payloads before it were returned."""
        payloads: list[Payload] = []
        try:
            for data, kind, _ in events:
                if self.done:
                    break
                text = data.strip()
                if text == "[DONE]" and self._kind == "events":
                    self.done = True
                elif text:
                    payloads.append(self._parse(data, error=kind == "error"))
        except ModelError as error:
            if not payloads:
                raise
            self._failed = error
        return payloads

    def _parse(self, text: str, *, error: bool = False) -> Payload:
        self.received += 1
        try:
            value = _decoded(text) if len(text) < LARGE else _decoded_in_steps(text)
        except (ValueError, RecursionError):
            if error:
                raise failure(500, text) from None
            raise ServerFailed(f"the server sent something that is not JSON: {excerpt(text)}") from None
        payload: Payload = value if isinstance(value, dict) else record(first_record(value))  # pyright: ignore[reportUnknownVariableType]
        if error or payload.get("error"):
            raise failure(0, value)
        if payload is not value:
            raise ServerFailed(f"expected a JSON object from the server, got: {excerpt(text)}")
        return payload


@cache
def _fast_parser() -> Callable[[str], Any]:
    from pydantic_core import from_json

    return from_json


def _decoded(text: str) -> Any:
    """Parse JSON. The fast parser refuses lone surrogates, and more than 200 levels; such texts go to the standard
    library's."""
    try:
        return _fast_parser()(text)
    except ValueError:
        return json.loads(paired(text))


def _decoded_in_steps(text: str) -> Any:
    """Parse a long JSON text. Raises ServerFailed for too many values."""
    if has_more(text, VALUES):
        raise ServerFailed(f"the server sent more than {VALUES:,} values in one piece")
    return loads(paired(text))


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=as_list).encode

LINE_ENDS = ("\x85", "\u2028", "\u2029")
"""Characters at which some clients wrongly split lines of an event stream."""


def dumped(value: Any, size: int = 0) -> str:
    """Return a value as JSON on one line, for bodies and events. One of a large `size`, in characters, is written in steps,
    so that a thread that writes it does not block others."""
    text = _encode(value) if size < LARGE else dumps(value, size)
    if not text.isascii():
        for end in LINE_ENDS:
            text = text.replace(end, f"\\u{ord(end):04x}")
    return text


def paired(text: str) -> str:
    """Replace lone surrogates in JSON text, which could be neither shown nor sent."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return ESCAPE.sub(lambda match: r"\ufffd" if match[1] else match[0], text)


def sound(body: Payload) -> Payload:
    """Return a body with lone surrogates replaced by U+FFFD."""
    text = json.dumps(body)
    whole = paired(text)
    return body if whole == text else json.loads(whole)


def _is_json(text: str) -> bool:
    """Whether a text is JSON, or has so many values that it is refused without being parsed."""
    if has_more(text, VALUES):
        return True
    try:
        loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def page_title(page: str) -> str:
    """Return the title of an HTML page, or its beginning."""
    match = TITLE.search(page[:65536])
    return excerpt(" ".join(match[1].split()) if match else page)
