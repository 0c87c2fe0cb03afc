"""Converts a whole reply into the events of a stream."""

from __future__ import annotations

from dataclasses import replace

from ...events import (
    ArgumentsDelta,
    CallEnd,
    CallResult,
    CallStart,
    Event,
    Finished,
    Logprobs,
    Noted,
    TextDelta,
    ThoughtDelta,
)
from ...types import Reply, ToolCall


def reply_events(reply: Reply) -> list[Event]:
    """Return the events of a stream with this reply."""
    events: list[Event] = []
    for step in reply.steps:
        results = {result.id: result for result in step.results}
        events += reply_events(replace(step.reply, notes=(), calls=()))[:-1]
        for call in step.reply.calls:
            events += [*_call_events(call), CallResult(results[call.id])]
    events += [Noted(note) for note in reply.notes]
    if reply.thought:
        events.append(ThoughtDelta(reply.thought))
    if reply.logprobs:
        events.append(Logprobs([dict(token) for token in reply.logprobs]))
    if reply.text:
        events.append(TextDelta(reply.text))
    for call in reply.calls:
        events += _call_events(call)
    return [*events, Finished(reply.finish, reply.usage)]


def _call_events(call: ToolCall) -> list[Event]:
    return [CallStart(call.name, call.id), ArgumentsDelta(call.json), CallEnd(call.whole)]
