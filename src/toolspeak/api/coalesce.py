"""Pieces that came together, as one: what passes them on works once for all of them."""

from __future__ import annotations

from collections.abc import Sequence

from ..events import ArgumentsDelta, Event, TextDelta, ThoughtDelta


def joined(events: Sequence[Event]) -> Sequence[Event]:
    """The same events, neighbouring pieces of text, thought or arguments made one. Where pieces are cut means
    nothing."""
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
