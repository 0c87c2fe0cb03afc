"""What models reply in the tests, and what a conversation must keep to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import toolspeak as ts
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, TextDelta
from toolspeak.types import Message


def calls(*wanted: tuple[str, Any], text: str = "", whole: bool = True) -> list[Event]:
    """The events of a reply that calls; arguments are an object, or the text that the model wrote."""
    events: list[Event] = [TextDelta(text)] if text else []
    for i, (name, arguments) in enumerate(wanted):
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        events += [CallStart(name, f"c{i}"), ArgumentsDelta(written), CallEnd(whole)]
    return [*events, Finished("tool_calls" if wanted else "stop")]


def native(*replies: str | Sequence[Event], repeat: bool = False) -> ts.Scripted:
    return ts.Scripted(replies, capabilities=["tools"], repeat=repeat)


def answered(messages: Sequence[Message]) -> bool:
    """Whether every call has exactly one answer, right after it, as OpenAI's API demands."""
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls
            open_calls = [call["id"] for call in message.get("tool_calls", [])]
            assert len(set(open_calls)) == len(open_calls)
    return not open_calls


def hermes_call(name: str, /, **arguments: Any) -> str:
    """A call as hermes writes it."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def frames(*payloads: Any) -> bytes:
    """Payloads as server-sent events: a text as it is, anything else as JSON."""
    lines = (payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False) for payload in payloads)
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk of a streamed chat completion."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def events_in(reader: Any, data: bytes, size: int | None = None) -> list[Event]:
    """What a reader of replies makes of bytes that come in pieces of a size, by default in one piece."""
    step = size or max(1, len(data))
    events = [event for i in range(0, len(data), step) for event in reader.feed(data[i : i + step])]
    return events + reader.close()
