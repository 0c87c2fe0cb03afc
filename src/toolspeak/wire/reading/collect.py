"""Collects events into one reply."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, cast

from ...events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Logprobs, Noted, TextDelta, ThoughtDelta
from ...schema import nonblocking_json
from ...schema.value_count import has_more
from ...types import Finish, Message, Note, Reply, ToolCall, Usage
from .doubtful import EARLIER_CALLS, SUPERSEDED
from .reply_size_limits import CALL_VALUES
from .source import Decoded

NO_USAGE = Usage()
TOO_MANY_VALUES = Note("reply-bound", f"the arguments of a call contain more than {CALL_VALUES:,} values")


@dataclass(slots=True)
class _OpenCall:
    name: str
    id: str
    first: str = ""
    rest: StringIO | None = None
    notes: list[Note] = field(default_factory=list[Note])
    whole: bool = False

    def add(self, piece: str) -> None:
        if self.rest is not None:
            self.rest.write(piece)
        elif self.first:
            self.rest = StringIO()
            self.rest.write(self.first + piece)
        else:
            self.first = piece  # kept as the same object: `decoded` finds its value by id

    @property
    def text(self) -> str:
        return self.first if self.rest is None else self.rest.getvalue()

    @property
    def size(self) -> int:
        return len(self.first) if self.rest is None else self.rest.tell()


def collect(events: Iterable[Event], decoded: Decoded | None = None) -> Reply:
    """The reply that consists of the events. Its `messages` have one assistant message, in OpenAI's format.

    `decoded` maps the id of a text to the text and its JSON value, if that is known. A call whose JSON is no object, or
    has more than CALL_VALUES values, has no arguments and is not whole. For a run, the texts of all turns are joined.
    """
    collector = Collector()
    for event in events:
        collector.feed(event)
    return collector.reply(decoded)


class Collector:
    """Collects events one after another into a reply, so that they need not be stored. See `collect`."""

    def __init__(self) -> None:
        self._text = StringIO()  # a list of chunks would take many times the memory of the text
        self._thought = StringIO()
        self._opened: list[_OpenCall] = []
        self._notes: list[Note] = []
        self._finish: Finish = "stop"
        self._usage = NO_USAGE
        self._logprobs: list[dict[str, Any]] = []

    def feed(self, event: Event) -> None:
        kind = type(event)  # the three most frequent kinds by type, in a third of the time of a match
        if kind is TextDelta:
            self._text.write(event.text)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
        elif kind is ArgumentsDelta:
            self._opened[-1].add(event.json)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
        elif kind is ThoughtDelta:
            self._thought.write(event.text)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
        else:
            self._feed_rarer(event)

    def _feed_rarer(self, event: Event) -> None:
        """Events that come once in a call or in a reply."""
        match event:
            case CallStart(name, id):
                self._opened.append(_OpenCall(name, id))
            case CallEnd(whole, id):
                self._opened[-1].whole = whole
                self._opened[-1].id = id or self._opened[-1].id
            case Finished(finish, more):
                self._finish = finish
                self._usage = add_usage(self._usage, more)
            case Noted(note):
                if self._opened:
                    self._opened[-1].notes.append(note)
                if note.rule in EARLIER_CALLS:
                    self._end_doubtful(note)
                elif note.rule == SUPERSEDED:
                    self._take_back(note.detail)
                self._notes.append(note)
            case Logprobs(tokens):
                self._logprobs += tokens
            case _:
                pass

    def _take_back(self, call_id: str) -> None:
        """Drops the last call with this id: a server may use the ids of an earlier turn again."""
        for place in reversed(range(len(self._opened))):
            if self._opened[place].id == call_id:
                del self._opened[place]
                return

    def _end_doubtful(self, note: Note) -> None:
        """None of the calls so far is whole: one of them ended too early, or they were drafts."""
        for call in self._opened:
            call.whole = False
            if note not in call.notes:
                call.notes.append(note)

    @property
    def size(self) -> int:
        """The characters of the arguments so far, which `reply` parses."""
        return sum(one.size for one in self._opened)

    def reply(self, decoded: Decoded | None = None) -> Reply:
        """The reply so far."""
        calls = tuple(_call(o, decoded or {}) for o in self._opened)
        notes = [
            *self._notes,
            *(note for call in calls for note in call.notes if note.rule == "not-an-object" or note == TOO_MANY_VALUES),
        ]
        text, reasoned = self._text.getvalue(), self._thought.getvalue()
        message = assistant(text, reasoned, calls)
        logprobs = tuple(self._logprobs)
        return Reply(text, reasoned, calls, self._finish, tuple(notes), self._usage, [message], logprobs=logprobs)


def assistant(text: str, thought: str = "", calls: Iterable[ToolCall] = ()) -> Message:
    """The assistant's message with this text, thought and calls. Calls that are not whole are left out."""
    message: Message = {"role": "assistant", "content": text or None}
    if thought:
        message["reasoning_content"] = thought
    rows: list[dict[str, Any]] = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.json or json.dumps(call.arguments, ensure_ascii=False)},
        }
        for call in calls
        if call.whole
    ]
    if rows:
        message["tool_calls"] = rows
    elif not text:
        message["content"] = ""
    return message


def _call(o: _OpenCall, decoded: Decoded) -> ToolCall:
    text = o.text
    if has_more(text, CALL_VALUES):
        o.notes.append(TOO_MANY_VALUES)
        return ToolCall(o.id, o.name, {}, text, tuple(o.notes), whole=False)
    try:
        value = _decoded(text, decoded)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return ToolCall(o.id, o.name, cast("dict[str, Any]", value), text or "{}", tuple(o.notes), o.whole)
    if o.whole:
        o.notes.append(Note("not-an-object", text[:200]))
    return ToolCall(o.id, o.name, {}, text, tuple(o.notes), whole=False)


def _decoded(text: str, decoded: Decoded) -> Any:
    if id(text) not in decoded:
        return nonblocking_json.loads(text or "{}")
    value = decoded[id(text)][1]
    return None if nonblocking_json.too_deep(text, value) else value


def add_usage(a: Usage, b: Usage) -> Usage:
    """The sum of two usages."""
    if a == NO_USAGE or b == NO_USAGE:
        return b if a == NO_USAGE else a
    return Usage(
        a.prompt_tokens + b.prompt_tokens,
        a.completion_tokens + b.completion_tokens,
        a.cached_tokens + b.cached_tokens,
        a.reasoning_tokens + b.reasoning_tokens,
        a.estimated or b.estimated,
    )
