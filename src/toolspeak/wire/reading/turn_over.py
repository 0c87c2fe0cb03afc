"""Looks whether a turn is over: whether the marks of its end come next, and nothing else."""

from __future__ import annotations

from ..turn_ends import TURN_ENDS
from .lookahead import ahead
from .source import Scan
from .state import State

MOST = 8
"""The most marks of an end in sequence."""


def turn_over(s: State, offset: int, follow: tuple[str, ...]) -> Scan[bool]:
    """Whether one of `follow`, or the end, comes `offset` characters after the position here, perhaps after marks of an
    end. Consumes nothing."""
    for _ in range(MOST):
        end = yield from ahead(s, offset, (*follow, *TURN_ENDS, *s.stops))
        if end <= 0:
            return not s.text[s.pos + offset :].strip() if end else False
        if s.text[s.pos + offset : s.pos + end].strip() in follow:
            return True
        offset = end
    return False
