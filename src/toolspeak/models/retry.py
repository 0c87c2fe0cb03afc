"""Whether and when to ask a server again."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ..errors import ModelError, ModelUnreachable, RateLimited, ServerFailed, StreamCut

FIRST, LONGEST = 0.5, 8.0
"""Seconds: the bound of the first pause, which doubles, and of every pause that the server did not ask for."""

PATIENCE = 60.0
"""Seconds that a server may ask for and get. One that asks for more is told of to the caller instead."""

LASTING = frozenset({501, 505})
"""The 5xx that will be the same the next time."""


def pause(error: ModelError, tried: int) -> float | None:
    """Seconds to wait before the next try after `tried` tries, None where another would be of no use.

    Full jitter: anything between nothing and the bound, so that many clients do not come back at once.
    """
    if not _passing(error):
        return None
    told = error.retry_after if isinstance(error, (RateLimited, ServerFailed)) else None
    if told is None:
        return random.uniform(0, min(LONGEST, FIRST * 2 ** (tried - 1)))
    return told + random.uniform(0, min(0.25, told)) if told <= PATIENCE else None


def _passing(error: ModelError) -> bool:
    if isinstance(error, ModelUnreachable):
        return not error.timed_out  # a server too slow once is not helped by the same work again
    if isinstance(error, RateLimited):
        return "insufficient_quota" not in str(error) and "exceeded your current quota" not in str(error)
    if isinstance(error, ServerFailed):
        return error.code == 408 or (error.code >= 500 and error.code not in LASTING)
    return isinstance(error, StreamCut)


def retry_after(header: str | None, now: datetime | None = None) -> float | None:
    """Seconds in a `Retry-After` header: a number, or an HTTP date; None where it says nothing sensible."""
    text = (header or "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
        except (ValueError, IndexError):
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (date - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if seconds == seconds and seconds < 1e9 else None
