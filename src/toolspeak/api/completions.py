"""OpenAI's raw completions (`POST /v1/completions`): an exact prompt in, its continuation out.

The client's direction. Servers of one's own speak it still, and it is how a text model behind one is given
the very bytes of a prompt.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from ..errors import ServerFailed, StreamCut, UsageError
from ..events import Event, Finished, Noted, TextDelta
from ..types import Note, Request, Usage
from .failure import excerpt
from .openai_chat import FINISH, read_usage
from .payloads import Payload, Payloads, record, records

TOKENS = 1024
"""The longest reply where the request sets no bound: the API's own default of 16 serves nobody."""


def write_request(request: Request, model: str) -> Payload:
    """The JSON body of a streamed request; it must have a `prompt`."""
    if request.prompt is None:
        raise UsageError("/v1/completions continues a prompt, and the request holds messages: render them first")
    body: Payload = {
        "model": model,
        "prompt": request.prompt,
        "max_tokens": TOKENS if request.max_tokens is None else request.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    sampling = {"temperature": request.temperature, "seed": request.seed}
    body |= {key: value for key, value in sampling.items() if value is not None}
    if request.stop:
        body["stop"] = list(request.stop)
    return body


class ReplyReader:
    """Events from the bytes of a reply, cut anywhere: `feed` each piece, then `close`; see openai_chat."""

    def __init__(self, ids: Callable[[], str] | None = None) -> None:
        del ids  # a text has no calls
        self._payloads = Payloads()
        self._text: list[str] = []
        self._finish: str | None = None
        self._usage = Usage()
        self._over = False

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def received(self) -> int:
        return self._payloads.received

    def feed(self, chunk: bytes) -> list[Event]:
        if self._over:
            return []
        events = self._events(self._payloads.feed(chunk))
        return [*events, self._end()] if self._payloads.done else events

    def close(self) -> list[Event]:
        if self._over:
            return []
        events = self._events(self._payloads.close())
        if self._payloads.done or self._payloads.whole:
            return [*events, self._end()]
        if self._finish is None:
            raise StreamCut("the server ended the reply in the middle: no finish_reason and no [DONE]", text=self.text)
        return [*events, Noted(Note("no-done", "the stream ended without [DONE]")), self._end()]

    def _events(self, payloads: list[Payload]) -> list[Event]:
        events: list[Event] = []
        for payload in payloads:
            if "choices" not in payload and self._payloads.whole:
                raise ServerFailed(f"expected a completion, got: {excerpt(json.dumps(payload, ensure_ascii=False))}")
            if usage := record(payload.get("usage")):
                self._usage = read_usage(usage)
            for choice in records(payload.get("choices"))[:1]:
                if choice.get("index") in (None, 0):
                    events += self._choice(choice)
        return events

    def _choice(self, choice: Payload) -> list[Event]:
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self._finish = reason
        text = choice.get("text")
        if not isinstance(text, str) or not text:
            return []
        self._text.append(text)
        return [TextDelta(text)]

    def _end(self) -> Event:
        self._over = True
        return Finished(FINISH.get(self._finish or "stop", "stop"), self._usage)
