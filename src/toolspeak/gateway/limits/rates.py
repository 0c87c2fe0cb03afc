"""Counts the use of each key in the memory of one process, on the event loop.

Requests and tokens are token buckets that hold one minute's worth and refill evenly. The tokens of a request are known
only at its end. They are taken then, and a bucket in debt admits nothing until it has refilled. Several processes that
share the rates of keys count in a file: see `shared_rates`.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ...errors import Refused
from ..config.settings import Key, Rates
from ..http_exchange import Headers

MINUTE = 60.0


@dataclass(slots=True)
class RequestTokens:
    """The tokens that a request has used; the handler sets them."""

    tokens: int = 0


@dataclass(slots=True)
class Bucket:
    """The `level` of a bucket at a time; below zero it is in debt."""

    limit: int
    level: float
    at: float

    def filled(self, now: float) -> float:
        """Return the level now. A clock that was set back adds nothing."""
        return min(float(self.limit), self.level + max(0.0, now - self.at) * self.limit / MINUTE)


@dataclass(slots=True)
class BatchLines:
    """The lines of batches that a key has running, and the `tokens` that one of them took lately."""

    running: int = 0
    tokens: float | None = None

    def refusal(self, rates: Rates, levels: Mapping[str, float]) -> Refused | None:
        """Return why a further line must wait, given the level of each rate; None if it need not.

        Lines leave half of each rate to interactive requests. The expected tokens of running lines count as used.
        """
        for what, limit in limits_of(rates):
            least = (limit + 1) / 2
            level = levels.get(what, float(limit))
            if what == "tokens":
                level -= self.running * (limit / 4 if self.tokens is None else self.tokens)
            if level < least:
                return empty_bucket(what, limit, level - least + 1)
        if rates.running is not None and self.running >= max(1, rates.running // 2):
            return all_running(rates.running)
        return None

    def begin(self) -> None:
        self.running += 1

    def end(self, tokens: int) -> None:
        self.running -= 1
        self.tokens = tokens if self.tokens is None else self.tokens + (tokens - self.tokens) / 4


@dataclass(slots=True)
class _Use:
    """What one key has used."""

    buckets: dict[str, Bucket] = field(default_factory=dict[str, Bucket])
    running: int = 0
    lines: BatchLines = field(default_factory=BatchLines)


class Counter:
    """The counters of all keys, for a single process."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._uses: dict[str, _Use] = {}

    @asynccontextmanager
    async def counted(self, key: Key, headers: Headers, *, background: bool = False) -> AsyncGenerator[RequestTokens]:
        """Count the request inside the context, and add the remaining rates to `headers`. Raises Refused (429) if a
        rate is used up; for a line of a batch (`background`), if half of it is."""
        spent = RequestTokens()
        if not key.rates:
            yield spent
            return
        use = self._uses.setdefault(key.name, _Use())
        if background:
            now = self._clock()
            levels = {what: bucket.filled(now) for what, bucket in use.buckets.items()}
            if refusal := use.lines.refusal(key.rates, levels):
                raise refusal
        self._take(use, key.rates, headers)
        if background:
            use.lines.begin()
        try:
            yield spent
        finally:
            if background:
                use.lines.end(spent.tokens)
            use.running -= 1
            if bucket := use.buckets.get("tokens"):
                now = self._clock()
                bucket.level, bucket.at = bucket.filled(now) - spent.tokens, now

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _take(self, use: _Use, rates: Rates, headers: Headers) -> None:
        now = self._clock()
        refusal: Refused | None = None
        for what, limit in limits_of(rates):
            bucket = use.buckets.setdefault(what, Bucket(limit, float(limit), now))
            bucket.level, bucket.at = bucket.filled(now), now
            if bucket.level < 1:
                refusal = refusal or empty_bucket(what, limit, bucket.level)
        if refusal is None and rates.running is not None and use.running >= rates.running:
            refusal = all_running(rates.running)
        if refusal is None:
            use.running += 1
            if "requests" in use.buckets:
                use.buckets["requests"].level -= 1
        for what, bucket in use.buckets.items():
            headers += rate_headers(what, bucket.limit, bucket.level)
        if refusal:
            raise refusal


def limits_of(rates: Rates) -> list[tuple[str, int]]:
    """Return the per-minute rates of a key, each with its limit."""
    both = (("requests", rates.requests), ("tokens", rates.tokens))
    return [(what, limit) for what, limit in both if limit is not None]


def empty_bucket(what: str, limit: int, level: float) -> Refused:
    """Return the refusal for a per-minute rate that is used up."""
    return _used_up(
        f"{limit:,} {what.removesuffix('s') if limit == 1 else what} a minute", (1 - level) * MINUTE / limit
    )


def all_running(limit: int) -> Refused:
    """Return the refusal for a key with too many running requests."""
    return _used_up(f"{limit:,} request{'s' * (limit != 1)} at once", 1)


def _used_up(rate: str, wait: float) -> Refused:
    message = f"this key has used up its limit of {rate}; try again in {math.ceil(wait)} s"
    return Refused(message, status=429, code="rate_limit_exceeded", retry_after=math.ceil(wait))


def rate_headers(what: str, limit: int, level: float) -> Headers:
    """Return the remaining rate in OpenAI's headers."""
    full = math.ceil((limit - level) * MINUTE / limit)
    values = {"limit": str(limit), "remaining": str(max(0, math.floor(level))), "reset": f"{full}s"}
    return [(f"x-ratelimit-{name}-{what}".encode(), value.encode()) for name, value in values.items()]
