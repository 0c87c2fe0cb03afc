"""Moves system turns from the middle of a conversation, for chat templates that take one system turn, at the beginning.

Coding agents send such turns: what is known of the environment, or which tools were added. Their text joins the turn before
it if that is the user's or a system turn; otherwise it becomes a user's turn.
"""

from __future__ import annotations

from dataclasses import replace

from ..types import Message, Request
from .messages import with_text
from .prompted import text_of

SYSTEM = ("system", "developer")


def with_one_system_turn(request: Request) -> Request:
    """The request without system turns after the first message; the same request if it has none."""
    if not any(message.get("role") in SYSTEM for message in request.messages[1:]):
        return request
    rows: list[Message] = []
    places: list[int] = []  # of each message among the rows
    for message in request.messages:
        moved = bool(rows) and message.get("role") in SYSTEM
        if moved and rows[-1].get("role") in ("user", *SYSTEM):
            rows[-1] = with_text(rows[-1], text_of(message))
        else:
            rows.append({**message, "role": "user"} if moved else message)
        places.append(len(rows) - 1)
    late = {name: places[at] for name, at in request.late.items() if at < len(places)}
    return replace(request, messages=rows, late=late)
