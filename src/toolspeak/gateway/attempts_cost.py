"""Sums up what the attempts at a reply cost, also if none is valid."""

from __future__ import annotations

from functools import reduce

from ..errors import GenerationError, ToolspeakError
from ..plan.token_estimate import with_estimate
from ..types import Request, Usage
from ..wire.reading.collect import add_usage


class AttemptsUsage:
    """The usage of all attempts at a reply. An error gets it too, estimated from the attempts if it was not reported."""

    def __init__(self, request: Request) -> None:
        self.usage = Usage()
        self._request = request

    def add(self, usage: Usage) -> None:
        """Add the usage of one attempt."""
        self.usage = add_usage(self.usage, usage)

    def __enter__(self) -> AttemptsUsage:
        return self

    def __exit__(self, _: object, error: object, __: object) -> None:
        if isinstance(error, ToolspeakError):
            attempts = error.attempts if isinstance(error, GenerationError) else ()
            costs = [with_estimate(one.reply, self._request) for one in attempts if one.failure is None]
            error.spent = reduce(add_usage, costs) if costs else self.usage
