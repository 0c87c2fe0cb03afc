"""Parses server-sent events from bytes in arbitrary pieces.

Follows the WHATWG rules for `text/event-stream` (fields, comments, three line ends, one BOM, several `data` lines),
with one extension: the last event counts even if the stream ends without its blank line. Bytes that are not UTF-8
become U+FFFD.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from ..errors import ServerFailed

CONTENT_TYPE = b"text/event-stream; charset=utf-8"
UTF_8 = codecs.getincrementaldecoder("utf-8")
LINE_END = re.compile(r"\r\n|\n|\r")
LONGEST = 16_000_000
"""The most characters of one event; more is an error."""


class ServerEvent(NamedTuple):
    """One event: its `data`, its type (default `message`), and the last id seen."""

    data: str
    event: str = "message"
    id: str = ""


class EventParser:
    """Parses events: `feed` bytes or text to get complete events; `close` returns an unfinished one."""

    def __init__(self) -> None:
        self._decoder = UTF_8("replace")
        self._started = False
        self._after_cr = False
        self._line: list[str] = []
        self._data: list[str] = []
        self._event = ""
        self._id = ""
        self._unfinished = 0  # characters of the line that is still arriving
        self._size = 0  # characters of the whole lines of this event

    def feed(self, chunk: bytes | str) -> list[ServerEvent]:
        text = chunk if isinstance(chunk, str) else self._decoder.decode(chunk)
        return self._lines(text)

    def close(self) -> list[ServerEvent]:
        """Return the last events: an unfinished line, and an event without its blank line, count as complete."""
        events = self._lines(self._decoder.decode(b"", True))
        return events + self._lines("\n\n")

    def _lines(self, text: str) -> list[ServerEvent]:
        if not text:
            return []
        if not self._started:
            self._started = True
            text = text.removeprefix("\ufeff")
        if self._after_cr:  # the line ended at the end of the previous piece; this is the rest of its CRLF
            text = text.removeprefix("\n")
        self._after_cr = text.endswith("\r")
        lines = LINE_END.split(text) if "\r" in text else text.split("\n")
        rest = lines.pop()
        if lines and self._line:
            lines[0] = "".join((*self._line, lines[0]))
            self._line.clear()
            self._unfinished = 0
        events: list[ServerEvent] = []
        for line in lines:
            if line:
                self._field(line)
                continue
            if self._data:
                events.append(ServerEvent("\n".join(self._data), self._event or "message", self._id))
                self._data.clear()
            self._event, self._size = "", 0
        if rest:
            self._line.append(rest)
            self._unfinished += len(rest)
            self._check_size()
        return events

    def _field(self, line: str) -> None:
        if line.startswith("data: "):
            name, value = "data", line[6:]
        else:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._grow(line)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        # comments (an empty name), `retry` and unknown fields are ignored

    def _grow(self, piece: str) -> None:
        self._size += len(piece)
        self._check_size()

    def _check_size(self) -> None:
        if self._size + self._unfinished > LONGEST:
            raise ServerFailed(f"the server sent an event of more than {LONGEST:,} characters without an end")
