"""Joins adjacent events of the same kind, so that later stages handle them once."""

from __future__ import annotations

from collections.abc import Sequence

from ..events import ArgumentsDelta, Event, TextDelta, ThoughtDelta


def joined(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events with adjacent deltas of text, thought or arguments joined. The boundaries of deltas carry no
    meaning."""
    if len(events) < 2:
        return events
    out: list[Event] = []
    pieces: list[str] = []
    kind: type[Event] | None = None
    for event in events:
        if type(event) is not kind and pieces:
            out.append(_one(kind, pieces))
            pieces = []
        match event:
            case TextDelta(piece) | ThoughtDelta(piece) | ArgumentsDelta(piece):
                pieces.append(piece)
                kind = type(event)
            case _:
                out.append(event)
                kind = None
    if pieces:
        out.append(_one(kind, pieces))
    return out


def _one(kind: type[Event] | None, pieces: list[str]) -> Event:
    text = "".join(pieces)
    if kind is TextDelta:
        return TextDelta(text)
    return ThoughtDelta(text) if kind is ThoughtDelta else ArgumentsDelta(text)
