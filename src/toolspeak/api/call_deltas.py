"""Assembles calls from the deltas that servers send, and emits them one call after another.

Deltas of several calls may be interleaved, while our events describe one call at a time: the first call streams, and
the others wait until its JSON is complete. Servers leave out different fields. So a delta is matched to its call by
index if the server's indexes distinguish calls, else by id, else by whether the last call can continue.

Some servers send the arguments as a JSON text in a JSON text, or `null` for none. What begins so is held back until it is
complete, and then becomes the object that it stands for. Anything else that is no object stays as it is, and is refused
with that reason.

The limits of a reply count events (`wire.reading.reply_size_limits`). Deltas that wait here are not events yet, so they have
a limit of their own: `hold` counts them, and refuses a server that sends more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import ServerFailed
from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Noted
from ..schema import nonblocking_json
from ..types import Note
from .json_balance import Balance
from .sse_parser import LONGEST

ENTRY = 60
"""The overhead of a waiting delta besides its text, in characters."""
CALL = 1_000
"""The overhead of a call, in characters."""
ENCODED = ('"', "n")
"""How arguments begin that are a text in a text, or null."""


@dataclass(slots=True, eq=False)
class _StreamedCall:
    id: str = ""
    name: str = ""
    pending: list[str] = field(default_factory=list[str])
    text: bool = False
    first: str = ""
    started: bool = False
    sent_id: str = ""
    ended: bool = False
    message: int = 0
    contradicted: bool = False
    balance: Balance = field(default_factory=Balance)

    def append(self, text: str) -> None:
        """Adds a piece of the arguments."""
        self.text = True
        if not self.first:
            self.first = text.lstrip()[:1]
        self.pending.append(text)
        self.balance.feed(text)


class CallStream:
    """Turns deltas into events: `add` each delta, and `end` at the end of the reply. Both return the events that are
    due.

    `ids` makes an id for a call without one.
    """

    def __init__(self, ids: Callable[[], str] | None = None) -> None:
        self.count = 0
        self._created = 0
        self._message = 0
        self._ids = ids
        self._by_index: dict[int, _StreamedCall] = {}
        self._by_id: dict[str, _StreamedCall] = {}
        self._queue: deque[_StreamedCall] = deque()
        self._last: _StreamedCall | None = None
        self._notes: list[Event] = []
        self._buffered = 0

    def hold(self, characters: int) -> None:
        """Counts characters that are kept until later. Raises ServerFailed for more than LONGEST."""
        self._buffered += characters
        if self._buffered > LONGEST:
            raise ServerFailed(f"the server sent more than {LONGEST:,} characters of calls that it did not end")

    def note(self, note: Note) -> None:
        """Keeps a note until the end of the reply."""
        self.hold(len(note.detail) + ENTRY)
        self._notes.append(Noted(note))

    def add(
        self, *, index: Any = None, key: Any = None, name: Any = None, arguments: Any = None, fresh: bool = False
    ) -> list[Event]:
        """Add one delta as the server sent it; `key` is the id.

        `fresh`: the delta is in the same message as the one before. Without an index it continues no call that this
        message has had: two calls of a message are two, also if the server gave them one id.
        """
        self._message += not fresh
        key, name, text = key if isinstance(key, str) else "", _name(name), _text(arguments)
        call = self._find(index, key, name, text, fresh)
        if key and not call.id:
            self.hold(len(key))
            call.id = key
            self._by_id[key] = call
        if call.ended:
            if text.strip():
                self.note(Note("late-arguments", text))
            return []
        if call.started:
            call.contradicted = call.contradicted or not call.name.endswith(name)
        elif name:
            _rename(call, name)
            self.hold(len(call.name))  # of each piece, for each copies the name
        call.contradicted |= self._is_of_another(call, key, name, text)
        if text:
            call.append(text)
        events = self._advance()
        if call.pending:
            self.hold(len(text) + ENTRY)
        return events

    def contradict(self, index: int) -> None:
        """Note that the server begins the call of this index anew. In the middle of its arguments, it is not whole then."""
        if call := self._by_index.get(index):
            call.contradicted = call.text and not call.balance.complete

    def settle(self) -> list[Event]:
        """End the open call if it is complete, because other content follows."""
        if self._queue and self._queue[0].balance.complete:
            return [*self._finish(self._queue.popleft()), *self._advance()]
        return []

    def end(self, *, cut: bool) -> list[Event]:
        """End every call. `cut`: the model was stopped, so an incomplete call is marked as not whole."""
        events: list[Event] = []
        while self._queue:
            call = self._queue.popleft()
            if not call.text and not cut and call.name:
                call.pending.append("{}")  # many servers send no arguments for a tool without parameters
            events += self._finish(call, cut=cut)
        return events + self._notes

    def _without_index(self, key: str, name: str, fresh: bool) -> _StreamedCall | None:
        """Return the call that a delta without an index continues: the one with its id, or the last one if it names no
        other."""
        call = self._by_id.get(key) if key else None
        if call and not (fresh and call.message == self._message):
            return call
        return None if fresh or (key and name) else self._last

    def _find(self, index: Any, key: str, name: str, text: str, fresh: bool) -> _StreamedCall:
        call = self._by_index.get(index) if isinstance(index, int) else self._without_index(key, name, fresh)
        if call is None or _begins_another(call, key, name, text, indexed=isinstance(index, int)):
            self.hold(CALL)
            call = _StreamedCall()
            self.count += 1
            self._queue.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        self._last, call.message = call, self._message
        return call

    def _is_of_another(self, call: _StreamedCall, key: str, name: str, text: str) -> bool:
        """Whether a delta with another id may belong to another call, though it comes among the arguments of this one. Some
        servers make a new id for every delta, so the id alone says nothing."""
        if key in ("", call.id) or not call.text:
            return False
        return any((name, key in self._by_id, text.strip() if call.balance.complete else ""))

    def _advance(self) -> list[Event]:
        events: list[Event] = []
        while self._queue:
            call = self._queue[0]
            events += self._flush(call)
            if len(self._queue) == 1 or not call.balance.complete:
                break
            events += self._finish(self._queue.popleft())
        return events

    def _flush(self, call: _StreamedCall, *, last: bool = False) -> list[Event]:
        """Start the call once its arguments begin; before that, more of its name may arrive."""
        if not last and not all((call.name, call.pending, call.first not in ENCODED)):
            return []
        events: list[Event] = []
        if not call.started:
            call.started = True
            call.sent_id = call.id or self._make_id()
            events.append(CallStart(call.name, call.sent_id))
        events += [ArgumentsDelta(text) for text in call.pending]
        call.pending.clear()
        return events

    def _make_id(self) -> str:
        self._created += 1
        return self._ids() if self._ids else f"call_{self._created}"

    def _finish(self, call: _StreamedCall, *, cut: bool = False) -> list[Event]:
        encoded = _decode(call) if call.first in ENCODED else False
        events = self._flush(call, last=True)  # start it first, even if its name never came: each end needs a start
        events += [Noted(Note("encoded-arguments"))] if encoded else []
        call.ended = True
        complete = call.balance.complete or not cut
        doubled = call.balance.doubled
        if doubled is not None:
            events.append(Noted(Note("doubled-key", doubled)))
        whole = all((call.name, call.balance.closed, complete, not call.contradicted, doubled is None))
        late = call.id if call.id and call.id != call.sent_id else None
        if not call.name:
            self.note(Note("call-without-name", call.sent_id))
        return [*events, CallEnd(whole, late)]


def _name(name: Any) -> str:
    """The name of a tool; "" for a blank text, and for anything else."""
    return name if isinstance(name, str) and not name.isspace() else ""


def _text(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else nonblocking_json.dumps(arguments)


def _decode(call: _StreamedCall) -> bool:
    """Puts the object in place of arguments that are its text, encoded once more, or of null. Returns whether they were
    encoded."""
    text = "".join(call.pending)
    inner = "{}" if text.strip() == "null" else nonblocking_json.loads_or(text, None)
    plain = inner if isinstance(inner, str) else text
    if not isinstance(nonblocking_json.loads_or(plain, None), dict):
        return False
    call.pending, call.balance = [plain], Balance()
    call.balance.feed(plain)
    return call.first == '"'


def _rename(call: _StreamedCall, name: str) -> None:
    """Add to the name. Servers send it whole, repeat it in every delta, or send it in pieces."""
    if name.startswith(call.name):
        call.name = name
    elif name:
        call.name += name


def _begins_another(call: _StreamedCall, key: str, name: str, text: str, *, indexed: bool) -> bool:
    """Whether a delta that points at `call` starts a new call: some servers give every call the index 0."""
    if not name:
        return False
    if key and call.id:
        return key != call.id and (call.balance.complete or not call.text)
    if call.balance.complete:
        return bool(text.strip()) or name != call.name
    return not indexed and call.text and name != call.name
