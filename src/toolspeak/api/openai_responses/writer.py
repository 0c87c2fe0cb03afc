"""Writes replies of the Responses API: events into the bytes of a stream, or a reply into a body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...errors import Refused
from ...events import Event
from ...types import Reply
from ..incoming import IncomingRequest, Stamp
from ..json_stream import Payload
from ..openai_chat import write_error as write_error
from ..openai_chat.writer import KEEP_ALIVE
from ..sse_parser import CONTENT_TYPE
from .response_events import Building
from .whole_reply_events import reply_events


class ReplyWriter:
    """Writes events as a stream: `begin`, `feed` each, then `close` or `error`. `response` is whole after the last one."""

    keep_alive = KEEP_ALIVE
    content_type = CONTENT_TYPE

    def __init__(self, incoming: IncomingRequest, stamp: Stamp) -> None:
        self._building = Building(incoming, stamp)
        self.response: Payload = {}

    def begin(self) -> bytes:
        return (self._building.begin() + self._building.list_tools()).encode()

    def due(self, event: Event | None, choice: int = 0) -> int:
        """Return about how many characters `feed` of an event, or `close` for None, has to write besides the event."""
        return self._building.due(event)

    def feed(self, event: Event, choice: int = 0) -> bytes:
        return self._building.feed(event).encode()

    def close(self) -> bytes:
        data = self._building.end()
        self.response = self._building.response(self._building.status)
        return data.encode() + b"data: [DONE]\n\n"

    def error(self, error: Refused) -> bytes:
        return self._building.fail(error).encode()


def write_reply(replies: Sequence[Reply], incoming: IncomingRequest, stamp: Stamp) -> Payload:
    """Return the body of the reply; the API has only one."""
    building = Building(incoming, stamp)
    building.list_tools()
    steps = incoming.visible_steps(replies[0])
    for event in reply_events(replace(replies[0], steps=steps)):
        building.feed(event)
    building.end()
    return building.response(building.status)
