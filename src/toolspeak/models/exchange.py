"""What one exchange over HTTP is given: how long it may take, and a key."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait for a connection, for the reply to begin, and for more of it.

    A keep-alive comment is not more of it. A reply in one piece has the last two together.
    """

    connect: float = 10.0
    first: float = 300.0
    between: float = 120.0


def timeouts(given: float | Timeouts | None) -> Timeouts:
    """The timeouts from one number, for all waits, or as they are."""
    if given is None:
        return Timeouts()
    return given if isinstance(given, Timeouts) else Timeouts(min(given, 10.0), given, given)


def clean_key(key: str) -> str:
    """A key read from a file ends in a line break; one with a character that no header may hold is no key."""
    key = key.strip()
    if not key.isascii() or not key.isprintable():
        raise UsageError("the key holds a character that no key has (a line break, a blank, a letter beyond ASCII)")
    return key
