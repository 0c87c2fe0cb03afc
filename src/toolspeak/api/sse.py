"""Server-sent events from bytes as they arrive, cut anywhere.

Follows the WHATWG rules for `text/event-stream` (fields, comments, the three line ends, one BOM, several
`data` lines), with one kindness: an event that the end of the stream left without its blank line counts.
Bytes that are no UTF-8 become U+FFFD.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from ..errors import ServerFailed

LINE_END = re.compile(r"\r\n|\n|\r")
LONGEST = 64_000_000
"""Characters in one event before the sender is taken for broken."""


@dataclass(slots=True, unsafe_hash=True)
class ServerEvent:
    """One event: its `data`, its type (`message` where none was named), the last id seen. Treat it as a value."""

    data: str
    event: str = "message"
    id: str = ""


class EventParser:
    """`feed` bytes (or text), get the events that are complete; `close` gives what the end left open."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._started = False
        self._after_cr = False
        self._line: list[str] = []
        self._data: list[str] = []
        self._event = ""
        self._id = ""
        self._size = 0

    def feed(self, chunk: bytes | str) -> list[ServerEvent]:
        text = chunk if isinstance(chunk, str) else self._decoder.decode(chunk)
        return self._lines(text)

    def close(self) -> list[ServerEvent]:
        """The last events: an unfinished line and an event without its blank line count as finished."""
        events = self._lines(self._decoder.decode(b"", True))
        return events + self._lines("\n\n")

    def _lines(self, text: str) -> list[ServerEvent]:
        if not text:
            return []
        if not self._started:
            self._started = True
            text = text.removeprefix("\ufeff")
        if self._after_cr:  # the line ended at the cut; this is only the rest of its CRLF
            text = text.removeprefix("\n")
        if text.endswith("\n\n") and text.startswith("data: ") and (simple := self._simple(text)) is not None:
            return simple
        self._after_cr = text.endswith("\r")
        *whole, rest = LINE_END.split(text)
        events: list[ServerEvent] = []
        for line in whole:
            self._line.append(line)
            if event := self._field("".join(self._line)):
                events.append(event)
            self._line.clear()
        self._line.append(rest)
        self._grow(len(rest))
        return events

    def _simple(self, text: str) -> list[ServerEvent] | None:
        """The events of a text that is whole ones of one line of data each, which is how nearly all comes; else None."""
        if self._data or self._event or self._after_cr or any(self._line) or "\r" in text:
            return None
        parts = text[6:-2].split("\n\ndata: ")
        if any("\n" in part for part in parts) or len(text) > LONGEST:
            return None
        return [ServerEvent(part, "message", self._id) for part in parts]

    def _field(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._grow(len(value))
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None  # comments (an empty name), `retry` and unknown fields say nothing to us

    def _dispatch(self) -> ServerEvent | None:
        data, event = self._data, self._event
        self._data, self._event, self._size = [], "", 0
        return ServerEvent("\n".join(data), event or "message", self._id) if data else None

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > LONGEST:
            raise ServerFailed(f"the server sent an event of more than {LONGEST:,} characters without an end")
