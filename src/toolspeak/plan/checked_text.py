"""Asks for text until a transform accepts it. A transform returns a value or raises; its error message is sent back to
the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..errors import ToolspeakError
from ..tool_results import message_of
from ..types import Reply, Request
from .effects import Plan, ask
from .reask import Attempts, ReaskStrategy, usual

T = TypeVar("T")

REJECTED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError, ToolspeakError)
"""Exceptions with which a transform rejects a text. Any other is a bug in the transform and is raised as it is."""


def generate(request: Request) -> Plan[Reply]:
    """One reply as text."""
    return (yield from ask(request, live=True))


def generate_checked(
    request: Request,
    transform: Callable[[str], T],
    tries: int,
    *,
    strategies: Sequence[ReaskStrategy] = usual(()),
    tokens: int | None = None,
) -> Plan[T]:
    """`transform(text)` of the first reply that it accepts. Raises GenerationError with every attempt."""
    trying = Attempts(request, strategies, tries, tokens)
    while True:
        reply = yield from trying.ask()
        try:
            return transform(reply.text)
        except REJECTED as error:
            why = f"{type(error).__name__}: {reason}" if (reason := message_of(error)) else type(error).__name__
        order = f"That answer was not accepted: {why}\nAnswer again, and correct that."
        yield from trying.wrong(reply, why, [{"role": "user", "content": order}])
