"""Limits the size of a reply, splits long events, makes the ids of its calls unique, and yields to the event loop between
events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from types import AsyncGeneratorType

from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Logprobs, TextDelta, ThoughtDelta
from ..wire.reading.call_ids import CallIds
from ..wire.reading.reply_size_limits import ReplyBounds
from .new_ids import new_id

PIECE = 4_096
"""The most characters of one event; a longer one is split."""
TOKENS = 64
"""The most tokens of one event with their log probabilities."""
GENERATORS = (AsyncGeneratorType, AsyncGenerator)
"""What can be closed. Nearly all are of the first kind; to ask an abstract class takes as long as an event."""
IN_A_ROW = 16
"""Events after which others get their turn: what a server sent at once, or a model that never waits, comes in a row."""


async def within_bounds(stream: AsyncIterator[Event]) -> AsyncGenerator[Event, None]:
    """Yield the events of a reply, and end it if it exceeds the limits of `wire.reading.reply_size_limits`."""
    bounds = ReplyBounds()
    takes = bounds.takes
    ids = CallIds(new_id)
    left = IN_A_ROW
    try:
        async for event in stream:
            left -= 1
            if not left:
                left = IN_A_ROW
                await asyncio.sleep(0)
            short = type(event) is TextDelta and len(event.text) <= PIECE  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
            for piece in (event,) if short else _fitting(event, ids):
                if not takes(piece):
                    for last in bounds.ending():
                        yield last
                    return
                yield piece
                if piece is not event:
                    await asyncio.sleep(0)
    finally:
        if isinstance(stream, GENERATORS):
            await stream.aclose()  # pyright: ignore[reportUnknownMemberType]


def _fitting(event: Event, ids: CallIds) -> Iterable[Event]:
    """Return an event in pieces, or that of a call with its own id."""
    match event:
        case CallStart():
            return ids.start(event)
        case CallEnd():
            return ids.end(event)
        case _:
            return pieces(event)


def pieces(event: Event) -> Iterable[Event]:
    """Return an event, or the pieces of a long one."""
    match event:
        case TextDelta(text) | ThoughtDelta(text) if len(text) > PIECE:
            kind = type(event)
        case ArgumentsDelta(text) if len(text) > PIECE:
            kind = ArgumentsDelta
        case Logprobs(tokens) if len(tokens) > TOKENS:
            return (Logprobs(tokens[at : at + TOKENS]) for at in range(0, len(tokens), TOKENS))
        case _:
            return (event,)
    return (kind(text[at : at + PIECE]) for at in range(0, len(text), PIECE))
