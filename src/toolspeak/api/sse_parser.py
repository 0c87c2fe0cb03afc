"""Parses server-sent events from bytes in arbitrary pieces.

Follows the WHATWG rules for `text/event-stream` (fields, comments, three line ends, one BOM, several `data` lines),
with one extension: the last event counts even if the stream ends without its blank line. Bytes that are not UTF-8
become U+FFFD.
"""

from __future__ import annotations

import codecs
import re

from ..errors import ServerFailed

CONTENT_TYPE = b"text/event-stream; charset=utf-8"
UTF_8 = codecs.getincrementaldecoder("utf-8")
LINE_END = re.compile(r"\r\n|\n|\r")
LONGEST = 16_000_000
"""The most characters of one event; more is an error."""


ServerEvent = tuple[str, str, str]
"""The data of an event, its type (`message` if it names none), and the last id seen. Each chunk of a reply is one, and a
plain tuple is created in a fourth of the time of a named one."""


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
        events: list[ServerEvent] = []
        for line in self._complete(text):
            if line.startswith("data: "):  # nearly all are such
                self._data.append(line[6:])
                self._size += len(line)
            elif line:
                self._field(line)
            else:
                if self._size > LONGEST:
                    raise _too_long()
                if self._data:
                    events.append(("\n".join(self._data), self._event or "message", self._id))
                    self._data.clear()
                self._event, self._size = "", 0
        if self._size + self._unfinished > LONGEST:
            raise _too_long()
        return events

    def _complete(self, text: str) -> list[str]:
        """Return the lines that are complete with this piece of the text."""
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
        if rest:
            self._line.append(rest)
            self._unfinished += len(rest)
        return lines

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(line)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        # comments (an empty name), `retry` and unknown fields are ignored


def _too_long() -> ServerFailed:
    return ServerFailed(f"the server sent an event of more than {LONGEST:,} characters without an end")
