"""Reads a reply from a server with Ollama's API: JSON lines into events, and the list of its models."""

from __future__ import annotations

from collections.abc import Callable

from ...events import Event
from ...types import Finish, Usage
from ..json_stream import Payload, entries, record, records
from ..stream_reader import StreamReader, count

FINISH: dict[str, Finish] = {"stop": "stop", "length": "length", "limit": "length"}


class ReplyReader(StreamReader):
    """Reads events from the bytes of a reply. It ends with `"done": true`."""

    missing = 'no "done": true'

    def __init__(self, ids: Callable[[], str] | None = None) -> None:
        super().__init__(ids, lines=True)

    def _payload(self, payload: Payload) -> list[Event]:
        events = self._message(record(payload.get("message")))
        return events + self._end(payload) if payload.get("done") else events

    def _message(self, message: Payload) -> list[Event]:
        events = self._words(message.get("thinking"), message.get("content"))
        for call in entries(message.get("tool_calls")):
            function = record(call.get("function"))
            events += self._calls.add(
                key=call.get("id"), name=function.get("name"), arguments=function.get("arguments"), fresh=True
            )
        return events

    def _end(self, payload: Payload) -> list[Event]:
        usage = Usage(count(payload.get("prompt_eval_count")), count(payload.get("eval_count")))
        return self._finished(str(payload.get("done_reason") or "stop"), FINISH, usage)


def read_models(payload: Payload) -> list[str]:
    """Return the names of the models in the response of `GET /api/tags`."""
    names = [model.get("name") or model.get("model") for model in records(payload.get("models"))]
    return [name for name in names if isinstance(name, str)]
