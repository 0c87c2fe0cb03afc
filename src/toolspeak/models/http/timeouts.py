"""Settings of one HTTP exchange: the timeouts, the retries and the API key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from ...errors import UsageError


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait for a connection, for the start of the reply, and for each further part of it.

    A keep-alive comment does not count as a part. For a reply in one piece, the last two are added.
    """

    connect: float = 10.0
    first: float = 300.0
    between: float = 120.0


def timeouts(value: float | Timeouts | None) -> Timeouts:
    """Return Timeouts from one number, for all waits, or unchanged. Raises UsageError."""
    if value is None:
        return Timeouts()
    waits = value if isinstance(value, Timeouts) else Timeouts(value, value, value)
    for seconds in (waits.connect, waits.first, waits.between):
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < inf:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"timeout: expected a number of seconds above 0, received {seconds!r:.80}")
    return waits if waits is value else replace(waits, connect=min(waits.connect, 10.0))


def tries_again(value: int) -> int:
    """Return how often a request may be sent again. Raises UsageError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"retries: expected a whole number from 0 to 100, received {value!r:.80}")
    return value


def clean_key(key: str) -> str:
    """Return a key without the line break at the end of a file. Raises UsageError for characters that no header can
    carry."""
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"key: expected a text, received {type(key).__name__}")
    key = key.strip()
    if not key.isascii() or not key.isprintable():
        raise UsageError(
            "the key contains a character that is not allowed in a key (a line break, a blank, a letter beyond ASCII)"
        )
    return key
