"""Makes a dataclass report unknown parameters as a UsageError with similar names."""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import Any, TypeVar, cast

from ..errors import UsageError
from .phrases import clipped
from .suggestions import did_you_mean, listed, near

T = TypeVar("T")


def clear_names(kind: type[T]) -> type[T]:
    """The dataclass, changed to raise UsageError with similar names for an unknown parameter."""
    usual: Any = kind.__init__
    known = [field.name for field in fields(cast("Any", kind)) if field.init]

    @functools.wraps(usual)
    def begin(self: T, *arguments: Any, **named: Any) -> None:
        if unknown := [name for name in named if name not in known]:
            meant = did_you_mean(near(unknown[0], known)) or f" There are {listed(known)}"
            raise UsageError(f"{kind.__name__} takes no {clipped(unknown[0], 80)!r}.{meant}")
        usual(self, *arguments, **named)

    kind.__init__ = begin
    return kind
