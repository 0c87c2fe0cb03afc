"""Ends a reply that streams on beyond a limit of tokens.

A server reports its tokens at the end, so the tokens so far are estimated, and a reply is ended at twice the limit. A limit
is not sent as `max_tokens`: servers refuse one that is above the context of their model.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..events import ArgumentsDelta, Event, Finished, TextDelta, ThoughtDelta
from ..types import Usage
from .effects import Reads
from .token_estimate import about

MARGIN = 2
"""How far an estimate may be from the tokens that a server counts."""


def ended_at(tokens: int) -> Reads:
    """Passes events on, and ends the reply at `MARGIN` times so many estimated tokens."""
    spent = 0.0

    def read(event: Event | None) -> Iterable[Event]:
        nonlocal spent
        if event is None:
            return ()
        if isinstance(event, TextDelta | ThoughtDelta):
            spent += _estimated(event.text)
        elif isinstance(event, ArgumentsDelta):
            spent += _estimated(event.json)
        if spent < MARGIN * tokens:
            return (event,)
        if isinstance(event, Finished):
            return (event,)
        return (event, Finished("length", Usage(completion_tokens=int(spent), estimated=True)))

    return read


def _estimated(text: str) -> float:
    """The estimated tokens of a piece. Many pieces are shorter than a token."""
    return about(text) if len(text) > 100 else about(text * 8) / 8
