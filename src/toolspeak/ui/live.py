"""Keeps the last requests that passed through a gateway, in memory, to be seen as they happen.

Each is kept within bounds: its body, what the model was asked and wrote, and what the client got. Headers, and so keys, are
not kept. Nothing is kept where the page is off or no requests are to be.
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
from .prompt_parts import Conversation

LONGEST = 100_000
"""Characters, or bytes, of each text that is kept."""
MOST_ASKS = 20
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class BoundedText:
    """A text of which the beginning is kept, and how long it is."""

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


class Entry:
    """One request: a listener to its model, and to its client's line."""

    def __init__(self, number: int, version: Callable[[], int], path: str, id_: str, owner: Callable[[], str]) -> None:
        self.number = number
        self.owner = owner
        self.version = version()
        self._next = version
        self._facts: Row = {"number": number, "id": id_, "time": time(), "path": path, "done": False}
        self._began = perf_counter()
        self._body, self._raw, self._sent = BoundedText(), BoundedText(), BoundedText()
        self._asks: list[Row] = []
        self._notes: list[Row] = []
        self._conversation: Conversation | None = None
        self._case: Form | None = None
        self._calls: list[Row] | None = None

    # -------------------------------------------------------------- what happens

    def understood(self, request: Request, model: str, strategy: str, d: Dialect | None) -> None:
        """What the client asks for, of which model, and how that is asked."""
        self._conversation = Conversation(request.messages, request.tools or (), d)
        self._case = canonical(request)
        self._facts |= {"model": model, "strategy": strategy}
        self._changed()

    def request(self, model: Model, request: Request) -> None:
        if len(self._asks) < MOST_ASKS:
            told = self._conversation.question(request) if self._conversation else {}
            row = request_row(model, request, told)
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
        """An event is passed on to the client."""
        if isinstance(event, Noted):
            self._notes += note_rows([event.note])

    def replied(self, reply: Reply) -> None:
        """The reply is whole, with its calls as the client gets them."""
        self._calls = [{"name": call.name, "arguments": call.arguments} for call in reply.calls]

    def receiving(self, receive: Receive) -> Receive:
        """The same, the body of the request being kept."""

        async def received() -> Message:
            message = await receive()
            self._body.add(message.get("body", b"")[:LONGEST].decode("utf-8", "replace"))
            return message

        return received

    def sending(self, send: Send) -> Send:
        """The same, what the client is sent being kept."""

        async def sent(message: Message) -> None:
            self._sent.add(message.get("body", b"")[:LONGEST].decode("utf-8", "replace"))
            await send(message)

        return sent

    def end(self, facts: Row) -> None:
        """The request is over."""
        self._facts |= facts | {"done": True}
        self._changed()

    def _changed(self) -> None:
        self.version = self._next()

    # -------------------------------------------------------------- what is told

    def summary(self) -> Row:
        """A line of it."""
        seconds = {} if self._facts["done"] else {"seconds": perf_counter() - self._began}
        return {**self._facts, **seconds, "notes": len(self._notes)}

    def detail(self) -> Row:
        """All that is kept of it."""
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
        """A line of a file of cases for `toolspeak eval`: what was asked, and the calls that came; None without tools."""
        if self._case is None or self._calls is None or "tools" not in self._case:
            return None
        row = {"id": f"live-{self.number}", "messages": self._case["messages"], "tools": self._case["tools"]}
        return json.dumps(row | {"calls": self._calls}, ensure_ascii=False)


class Ring:
    """The last requests, at most so many."""

    def __init__(self, size: int) -> None:
        self._entries: deque[Entry] = deque(maxlen=size)
        self._version = 0
        self._count = 0

    def begin(self, path: str, id_: str, owner: Callable[[], str]) -> Entry:
        """A request has come; the oldest makes room for it. `owner` tells whose it is, once that is known."""
        self._count += 1
        entry = Entry(self._count, self._next, path, id_, owner)
        self._entries.append(entry)
        return entry

    def _next(self) -> int:
        self._version += 1
        return self._version

    def changes(self, after: int, owner: str | None) -> Row:
        """Lines of the requests that changed after that version; an owner sees its own, None all."""
        rows = [entry.summary() for entry in self._visible(owner) if entry.version > after]
        return {"version": self._version, "requests": rows}

    def find(self, number: int, owner: str | None) -> Entry | None:
        """The request of that number, if it is still here and may be seen."""
        return next((entry for entry in self._visible(owner) if entry.number == number), None)

    def _visible(self, owner: str | None) -> Iterator[Entry]:
        return (entry for entry in self._entries if owner in (None, entry.owner()))
