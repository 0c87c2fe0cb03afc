"""Counts the use of each key in the memory of one process, on the event loop.

Requests and tokens are buckets that fill up evenly, a minute's worth deep. The tokens of a request are known only after
it: they are taken then, and a bucket in debt lets nobody in until it has filled again. Several processes that share the
rates of their keys count in a file: see `shared_rates`.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ...errors import Refused
from ..config.settings import Key, Rates
from ..context import Headers

MINUTE = 60.0


@dataclass(slots=True)
class Spent:
    """What a request has used; whoever answers it adds the tokens."""

    tokens: int = 0


@dataclass(slots=True)
class Bucket:
    """What is left of a rate: `level` at a time; below zero it is in debt."""

    limit: int
    level: float
    at: float

    def filled(self, now: float) -> float:
        """What is left by now. A clock that was set back adds nothing."""
        return min(float(self.limit), self.level + max(0.0, now - self.at) * self.limit / MINUTE)


@dataclass(slots=True)
class Lines:
    """The lines of batches that a key has under way, and the `tokens` that one of them lately took."""

    running: int = 0
    tokens: float | None = None

    def refusal(self, rates: Rates, levels: Mapping[str, float]) -> Refused | None:
        """Why one more has to wait, by what is left of each rate: lines leave half of it to requests, for which somebody
        waits. What those under way will take is counted as if it was taken."""
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
    lines: Lines = field(default_factory=Lines)


class Counter:
    """The counts of all keys in this process alone."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._uses: dict[str, _Use] = {}

    @asynccontextmanager
    async def counted(self, key: Key, headers: Headers, *, background: bool = False) -> AsyncGenerator[Spent]:
        """Counts the request inside. Adds to `headers` what is left. Raises Refused: 429 where a rate is used up, for one
        in the `background`, a line of a batch, where half of it is."""
        spent = Spent()
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
        """There is nothing to let go of."""

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
    """The rates of a minute that a key has, each with its limit."""
    both = (("requests", rates.requests), ("tokens", rates.tokens))
    return [(what, limit) for what, limit in both if limit is not None]


def empty_bucket(what: str, limit: int, level: float) -> Refused:
    """The refusal where a rate of a minute is used up."""
    return _used_up(f"{limit:,} {what} a minute", (1 - level) * MINUTE / limit)


def all_running(limit: int) -> Refused:
    """The refusal where a key has as many requests under way as it may."""
    return _used_up(f"{limit:,} requests at once", 1)


def _used_up(rate: str, wait: float) -> Refused:
    said = f"this key may use {rate}, and has; try again in {math.ceil(wait)} s"
    return Refused(said, status=429, code="rate_limit_exceeded", retry_after=math.ceil(wait))


def rate_headers(what: str, limit: int, level: float) -> Headers:
    """What is left, as OpenAI's headers tell it."""
    full = math.ceil((limit - level) * MINUTE / limit)
    values = {"limit": str(limit), "remaining": str(max(0, math.floor(level))), "reset": f"{full}s"}
    return [(f"x-ratelimit-{name}-{what}".encode(), value.encode()) for name, value in values.items()]
