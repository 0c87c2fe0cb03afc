"""Text until it passes: a transform returns a value or raises, and what it raised goes back to the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ..errors import Attempt, GenerationError, ToolspeakError
from ..schema.result import message_of
from ..types import Reply, Request
from .calls import assistant
from .effects import Plan, ask

T = TypeVar("T")

REJECTED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError, ToolspeakError)
"""What a transform may raise to refuse a text. Anything else is a fault of the transform and goes up as it is."""


def generate(request: Request) -> Plan[Reply]:
    """One reply in words."""
    return (yield from ask(request, live=True))


def generate_checked(request: Request, transform: Callable[[str], T], tries: int) -> Plan[T]:
    """`transform(text)` of the first reply that it takes. Raises GenerationError with every attempt."""
    attempts: list[Attempt] = []
    messages = list(request.messages)
    while len(attempts) < tries:
        reply = yield from ask(replace(request, messages=messages))
        try:
            return transform(reply.text)
        except REJECTED as error:
            why = f"{type(error).__name__}: {said}" if (said := message_of(error)) else type(error).__name__
            attempts.append(Attempt(reply, why))
            asked = f"That answer was not accepted: {why}\nAnswer again, and correct that."
            messages = [*messages, assistant(reply), {"role": "user", "content": asked}]
    raise GenerationError(
        f"no accepted answer in {len(attempts)} tries; the last one was refused with {attempts[-1].error}",
        attempts=attempts,
    )
