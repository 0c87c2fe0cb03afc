"""Events to one reply."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Logprobs, Noted, TextDelta, ThoughtDelta
from ..types import Finish, Message, Note, Reply, ToolCall, Usage
from .scan import Decoded


@dataclass(slots=True)
class _Open:
    name: str
    id: str
    pieces: list[str] = field(default_factory=list[str])
    notes: list[Note] = field(default_factory=list[Note])
    whole: bool = False


def collect(events: Iterable[Event], decoded: Decoded | None = None) -> Reply:
    """The reply that the events are. Its `messages` hold the one assistant message, in OpenAI's form.

    `decoded` holds, by the id of a text, that text and the value it is as JSON, where somebody knows it.
    A call whose JSON is no object has no arguments and is not whole. Of a run, the text of all turns.
    """
    text: list[str] = []
    thought: list[str] = []
    opened: list[_Open] = []
    notes: list[Note] = []
    finish: Finish = "stop"
    usage = Usage()
    logprobs: list[dict[str, Any]] = []
    for event in events:
        match event:
            case TextDelta(piece):
                text.append(piece)
            case ThoughtDelta(piece):
                thought.append(piece)
            case CallStart(name, id):
                opened.append(_Open(name, id))
            case ArgumentsDelta(piece):
                opened[-1].pieces.append(piece)
            case CallEnd(whole, id):
                opened[-1].whole = whole
                opened[-1].id = id or opened[-1].id
            case Noted(note):
                (opened[-1].notes if opened else notes).append(note)
                notes.append(note) if opened else None
            case Logprobs(tokens):
                logprobs += tokens
            case Finished(finish, more):
                usage = add_usage(usage, more)
            case _:
                pass
    calls = tuple(_call(o, decoded or {}) for o in opened)
    notes += [note for call in calls for note in call.notes if note.rule == "not-an-object"]
    said, reasoned = "".join(text), "".join(thought)
    message = assistant(said, reasoned, calls)
    return Reply(said, reasoned, calls, finish, tuple(notes), usage, [message], logprobs=tuple(logprobs))


def assistant(text: str, thought: str = "", calls: Iterable[ToolCall] = ()) -> Message:
    """The message of an assistant that said, thought and called this. Calls that are not whole are left out."""
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


def _call(o: _Open, decoded: Decoded) -> ToolCall:
    text = "".join(o.pieces)
    try:
        value = decoded[id(text)][1] if id(text) in decoded else json.loads(text or "{}")
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return ToolCall(o.id, o.name, cast("dict[str, Any]", value), text or "{}", tuple(o.notes), o.whole)
    if o.whole:
        o.notes.append(Note("not-an-object", text[:200]))
    return ToolCall(o.id, o.name, {}, text, tuple(o.notes), whole=False)


def add_usage(a: Usage, b: Usage) -> Usage:
    """What two replies cost together."""
    return Usage(
        a.prompt_tokens + b.prompt_tokens,
        a.completion_tokens + b.completion_tokens,
        a.cached_tokens + b.cached_tokens,
        a.reasoning_tokens + b.reasoning_tokens,
        a.estimated or b.estimated,
    )
