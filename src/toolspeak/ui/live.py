"""Keeps the latest requests through a gateway in memory, so that the page can show them live.

Each is kept within limits: its body, the model's prompts and output, and what the client got. Of a request with a large
body, only the beginning of what was sent either way is kept, because its prompts take as long to describe. All together
have a limit too, beyond which the oldest are dropped. Headers, and so keys, are not kept. Nothing is kept if the page is
off or `live` is 0.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from time import perf_counter, time
from typing import Any

from ..events import CallEnd, Event, Noted
from ..models.base import Model
from ..models.exchange import Form, canonical
from ..types import Reply, Request
from ..wire.dialect import Dialect
from .event_rows import Row, note_rows, request_row, score_row
from .playground import written
from .prompt_parts import RequestParts

LONGEST = 100_000
"""The most characters, or bytes, that are kept of each text."""
MOST_ASKS = 20
LARGE = 1_000_000
"""Bytes of a body of which only the beginning is kept."""
ROOM = 50_000_000
"""Bytes of the bodies of all requests that are kept. In memory, a request takes several times its body."""
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class BoundedText:
    """The beginning of a text, and its whole length."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0

    def add(self, piece: str) -> None:
        if self._size < LONGEST:
            self._pieces.append(piece[: LONGEST - self._size])
        self._size += len(piece)

    def __str__(self) -> str:
        more = self._size - LONGEST
        return "".join(self._pieces) + (f"\n… {more:,} more" if more > 0 else "")


class LiveRequest:
    """One request. It listens to the model, and to the client's connection."""

    def __init__(self, number: int, version: Callable[[], int], path: str, id_: str, owner: Callable[[], str]) -> None:
        self.number = number
        self.owner = owner
        self.size = 0
        """Bytes of the body, as far as it is kept."""
        self.version = version()
        self._next = version
        self._facts: Row = {"number": number, "id": id_, "time": time(), "path": path, "done": False}
        self._began = perf_counter()
        self._body, self._raw, self._sent = BoundedText(), BoundedText(), BoundedText()
        self._asks: list[Row] = []
        self._notes: list[Row] = []
        self._conversation: RequestParts | None = None
        self._case: Form | None = None
        self._calls: list[Row] | None = None

    # -------------------------------------------------------------- recording

    def understood(self, request: Request, model: str, strategy: str, d: Dialect | None) -> None:
        """Record the client's request, its model, and how the model is prompted."""
        if self.size < LARGE:
            self._conversation = RequestParts(request.messages, request.tools or (), d)
            self._case = canonical(request)
        self._facts |= {"model": model, "strategy": strategy}
        self._changed()

    def request(self, model: Model, request: Request) -> None:
        if len(self._asks) < MOST_ASKS and self.size < LARGE:
            question = self._conversation.question(request) if self._conversation else {}
            row = request_row(model, request, question)
            self._asks.append({**row, "body": row["body"][:LONGEST]} if "body" in row else row)
        self._raw.add("" if len(self._asks) < 2 else f"\n— question {len(self._asks)} —\n")
        self._changed()

    def event(self, event: Event) -> None:
        self._raw.add(written(event))
        if isinstance(event, CallEnd):
            self._changed()

    def scored(self, prompt: str, continuations: Sequence[str], scores: Sequence[float]) -> None:
        if len(self._asks) < MOST_ASKS and self._conversation:
            self._asks.append(score_row(prompt, continuations, scores, self._conversation.parts(prompt)))

    def passed_on(self, event: Event) -> None:
        """Record an event that the client gets."""
        if isinstance(event, Noted):
            self._notes += note_rows([event.note])

    def replied(self, reply: Reply) -> None:
        """Record the whole reply, with the calls that the client gets."""
        self._calls = [{"name": call.name, "arguments": call.arguments} for call in reply.calls]

    def receiving(self, receive: Receive) -> Receive:
        """Return `receive`, recording the body of the request."""

        async def received() -> Message:
            message = await receive()
            self.size = min(LARGE, self.size + len(message.get("body", b"")))
            self._body.add(message.get("body", b"")[:LONGEST].decode("utf-8", "replace"))
            return message

        return received

    def sending(self, send: Send) -> Send:
        """Return `send`, recording what the client gets."""

        async def sent(message: Message) -> None:
            self._sent.add(message.get("body", b"")[:LONGEST].decode("utf-8", "replace"))
            await send(message)

        return sent

    def end(self, facts: Row) -> None:
        """Record the end of the request."""
        self._facts |= facts | {"done": True}
        self._changed()

    def _changed(self) -> None:
        self.version = self._next()

    # -------------------------------------------------------------- reading

    def summary(self) -> Row:
        """Return the request as a line of the list."""
        seconds = {} if self._facts["done"] else {"seconds": perf_counter() - self._began}
        return {**self._facts, **seconds, "notes": len(self._notes)}

    def detail(self) -> Row:
        """Return everything that is kept of the request."""
        return {
            **self.summary(),
            "asks": self._asks,
            "body": str(self._body),
            "raw": str(self._raw),
            "sent": str(self._sent),
            "notes": self._notes,
            "case": self.case(),
        }

    def case(self) -> str | None:
        """Return a line for a file of cases of `toolspeak eval`: the request, and the calls in its reply; None for a
        request without tools."""
        if self._case is None or self._calls is None or "tools" not in self._case:
            return None
        row = {"id": f"live-{self.number}", "messages": self._case["messages"], "tools": self._case["tools"]}
        return json.dumps(row | {"calls": self._calls}, ensure_ascii=False)


class Ring:
    """The latest requests, up to a number, and up to ROOM."""

    def __init__(self, size: int) -> None:
        self._entries: deque[LiveRequest] = deque(maxlen=size)
        self._version = 0
        self._count = 0

    def begin(self, path: str, id_: str, owner: Callable[[], str]) -> LiveRequest:
        """Add a request, dropping the oldest. `owner` returns its owner, once that is known."""
        self._count += 1
        entry = LiveRequest(self._count, self._next, path, id_, owner)
        self._entries.append(entry)
        return entry

    def _next(self) -> int:
        """Return the version after a change of a request, which may have become larger."""
        while sum(entry.size for entry in self._entries) > ROOM:
            self._entries.popleft()
        self._version += 1
        return self._version

    def changes(self, after: int, owner: str | None) -> Row:
        """Return the requests that changed after a version; an owner sees its own, None sees all."""
        rows = [entry.summary() for entry in self._visible(owner) if entry.version > after]
        return {"version": self._version, "requests": rows}

    def find(self, number: int, owner: str | None) -> LiveRequest | None:
        """Return the request with that number, if it is still kept and visible to the owner."""
        return next((entry for entry in self._visible(owner) if entry.number == number), None)

    def _visible(self, owner: str | None) -> Iterator[LiveRequest]:
        return (entry for entry in self._entries if owner in (None, entry.owner()))
