"""Budgets of keys: tokens and money per day, counted in the store's file, which all processes share.

The cost of a reply is known when it ends. So the cost of each model request is added to the file at its end, in a
transaction that adds and never overwrites. Before a model is asked, the gateway looks at the sum of all processes: a
key that has used up its budget is refused until midnight UTC. Requests in progress then still end, and may exceed the
budget. Requests that come at the same time share one look.

`metered` counts whole, failed and cut replies alike, by the usage that the model reports, or by an estimate.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from ...errors import ModelError, Refused
from ...events import ArgumentsDelta, CallStart, Event, Finished, TextDelta, ThoughtDelta
from ...models.base import Model
from ...models.wrapper import Wrapper
from ...plan.token_estimate import LETTERS, about, about_request
from ...types import Request, Usage
from ..config.settings import Budget, GatewaySettings, Key, Price
from ..storage.sqlite import Database

log = logging.getLogger(__name__)

TABLES = """
CREATE TABLE IF NOT EXISTS key_spent (
    key TEXT, day TEXT, tokens INTEGER, money REAL, PRIMARY KEY (key, day)
) WITHOUT ROWID;
"""
REMEMBERED = 31
"""Days for which daily sums are kept."""
MILLION = 1_000_000
Spend = Callable[[Callable[[], Usage]], None]
"""Is called with a function that computes what a model request cost."""


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What a key has used in a day."""

    tokens: int = 0
    money: float = 0.0


class Budgets:
    """What the keys with budgets have spent, in the file at `path`."""

    def __init__(self, path: str, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._database = Database(path, TABLES, "toolspeak-budgets")
        self._looking: dict[str, asyncio.Task[DayUsage | None]] = {}
        self._unwritten: dict[tuple[str, str], DayUsage] = {}
        """What could not be written yet, by key and day."""

    async def check(self, key: Key) -> None:
        """Raises Refused: 429 if the key has used up its budget for today, 503 if that cannot be read."""
        if not key.budget:
            return
        looking = self._looking.get(key.name)
        if looking is None:  # a read that began earlier would miss what ended since
            looking = self._looking[key.name] = asyncio.create_task(self._look(key.name))
        spent = await asyncio.shield(looking)
        if spent is None:
            message = "the budget of this key cannot be read at the moment"
            raise Refused(message, status=503, code="unavailable", retry_after=5)
        if refusal := _refusal(key.budget, spent, self._clock()):
            raise refusal

    def spend(self, key: Key, price: Price | None, usage: Callable[[], Usage]) -> None:
        """Add the cost of a model request, without waiting. The estimate runs in the thread, because it takes long for
        a large request. Later reads in this process see it."""
        self._database.submit(self._add, key.name, _day(self._clock()), price, usage)

    async def spent(self, keys: Sequence[Key]) -> dict[str, DayUsage]:
        """Return what each key has spent today, by name; nothing if that cannot be read."""
        return await self._looked_up([key.name for key in keys]) or {}

    def close(self) -> None:
        """Write what is pending, and end the thread."""
        self._database.submit(self._write)
        self._database.close()

    async def _look(self, name: str) -> DayUsage | None:
        looking = self._looked_up([name])
        self._looking.pop(name, None)  # later requests read again
        return (await looking or {}).get(name)

    def _looked_up(self, names: Sequence[str]) -> asyncio.Future[dict[str, DayUsage] | None]:
        """Read what keys have spent today, after what was spent before."""
        return asyncio.wrap_future(self._database.submit(self._read, names, _day(self._clock())))

    # ------------------------------------------------------------------ in the thread

    def _read(self, names: Sequence[str], day: str) -> dict[str, DayUsage] | None:
        """Return what keys have spent on a day, by name; None, with a log line, if that cannot be read."""
        reading = "SELECT key, tokens, money FROM key_spent WHERE key IN (SELECT value FROM json_each(?)) AND day = ?"
        try:
            rows = self._database.connected().execute(reading, (json.dumps(names), day)).fetchall()
        except sqlite3.Error as error:
            log.error("the budgets of keys cannot be read: %s", error)
            return None
        spent = dict.fromkeys(names, DayUsage()) | {name: DayUsage(tokens, money) for name, tokens, money in rows}
        for name in names:
            if more := self._unwritten.get((name, day)):
                spent[name] = DayUsage(spent[name].tokens + more.tokens, spent[name].money + more.money)
        return spent

    def _add(self, name: str, day: str, price: Price | None, usage: Callable[[], Usage]) -> None:
        spent = usage()
        tokens = spent.prompt_tokens + spent.completion_tokens
        if not tokens:
            return
        earlier = self._unwritten.get((name, day), DayUsage())
        self._unwritten[name, day] = DayUsage(earlier.tokens + tokens, earlier.money + cost(spent, price))
        self._write()

    def _write(self) -> None:
        """Write what was spent. If the file fails, it is written with what is spent next, and counts in memory until then."""
        adding = (
            "INSERT INTO key_spent VALUES (?, ?, ?, ?) ON CONFLICT (key, day) "
            "DO UPDATE SET tokens = tokens + excluded.tokens, money = money + excluded.money"
        )
        oldest = _day(self._clock() - REMEMBERED * 86_400)
        if not self._unwritten:
            return
        try:
            with self._database.transaction() as database:
                rows = [(*place, spent.tokens, spent.money) for place, spent in self._unwritten.items()]
                database.executemany(adding, rows)
                database.execute("DELETE FROM key_spent WHERE day < ?", (oldest,))
        except sqlite3.Error as error:
            log.error(
                "what keys have spent cannot be written yet (%s): %s",
                ", ".join(sorted({k for k, _ in self._unwritten})),
                error,
            )
        else:
            self._unwritten.clear()


def budgets_of(settings: GatewaySettings) -> Budgets | None:
    """Return the budgets of a gateway's keys; None if no key has one."""
    counted = any(key.budget for key in settings.keys)
    return Budgets(settings.store.path) if settings.store and counted else None


def cost(usage: Usage, price: Price | None) -> float:
    """Return the price of a model request."""
    if price is None:
        return 0.0
    cached = min(usage.cached_tokens, usage.prompt_tokens)
    read = (usage.prompt_tokens - cached) * price.input + cached * (
        price.input if price.cached is None else price.cached
    )
    return (read + usage.completion_tokens * price.output) / MILLION


def _day(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")


def _refusal(budget: Budget, spent: DayUsage, now: float) -> Refused | None:
    over: list[str] = []
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        over.append(f"{budget.tokens:,} tokens a day, and has used {spent.tokens:,}")
    if budget.money is not None and spent.money >= budget.money:
        over.append(f"{budget.money:g} a day, and has spent {spent.money:.6g}")
    if not over:
        return None
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    end = today + timedelta(days=1)
    wait = max(1, math.ceil(end.timestamp() - now))
    message = (
        f"this key may use {'; it may use '.join(over)}. The budget is reset at {end:%Y-%m-%dT%H:%M:%SZ}, in {wait:,} s"
    )
    return Refused(message, status=429, code="insufficient_quota", retry_after=wait)


# ------------------------------------------------------------------ the cost of a request


class Metered(Wrapper[Model]):
    """A model that reports the cost of each request to `spend`, also of failed and cut ones."""

    def __init__(self, model: Model, spend: Spend) -> None:
        super().__init__(model)
        self._spend = spend

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        measured = _Measured()
        stream: Any = self.model.stream(request)
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    measured.take(event)
                    yield event
        except ModelError:
            measured.failed = not measured.begun  # no event: the server refused it or could not be reached
            raise
        finally:
            self._spend(partial(measured.usage, request))

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        scores = await super().score(prompt, continuations)
        self._spend(lambda: Usage(about(prompt) + sum(map(about, continuations))))
        return scores


class _Measured:
    """Collects the usage of one reply."""

    __slots__ = ("_letters", "_reported", "_wide", "begun", "failed")

    def __init__(self) -> None:
        self._letters = self._wide = 0
        self._reported = Usage()
        self.begun = self.failed = False

    def take(self, event: Event) -> None:
        self.begun = True
        match event:
            case TextDelta(text) | ThoughtDelta(text) | ArgumentsDelta(text):
                pass
            case CallStart(text):
                pass
            case Finished(_, usage):
                self._reported = usage
                return
            case _:
                return
        wide = 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))
        self._wide += wide
        self._letters += len(text) - wide

    def usage(self, request: Request) -> Usage:
        """Return the usage that the model reported, else an estimate."""
        if self.failed:
            return Usage()
        reported = self._reported
        prompt_tokens = reported.prompt_tokens or about_request(request)
        completion_tokens = reported.completion_tokens or self._wide - -self._letters // LETTERS
        return Usage(prompt_tokens, completion_tokens, reported.cached_tokens)
