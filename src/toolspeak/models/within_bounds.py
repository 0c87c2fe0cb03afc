"""A model's events, as many as one reply may hold."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from ..events import Event
from ..wire.reply_bounds import ReplyBounds


async def within_bounds(stream: AsyncIterator[Event]) -> AsyncGenerator[Event, None]:
    """The events of a reply, ended where it holds more than a reply may; see `wire.reply_bounds`."""
    bounds = ReplyBounds()
    takes = bounds.takes
    try:
        async for event in stream:
            if not takes(event):
                for last in bounds.ending():
                    yield last
                return
            yield event
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()  # pyright: ignore[reportUnknownMemberType]
