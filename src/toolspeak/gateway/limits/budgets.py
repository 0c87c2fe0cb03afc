"""The budgets of keys: tokens and money a day, counted in the store's file, which all processes share.

What a reply costs is known when it is over. So each question to a model is added to the file as it ends, in one
transaction that adds and never overwrites, and each request looks at the sum of all processes before its model is asked:
a key that has used up its budget is refused until the day ends, at midnight UTC. What is under way then ends, and may
exceed the budget. Requests that come at the same time share one look.

`metered` counts the questions: whole, failed and cut ones alike, by what the model tells, or by an estimate.
"""

from __future__ import annotations

import asyncio
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
from ..config.settings import Budget, Key, Price, Settings
from ..storage.sqlite import Database

log = logging.getLogger(__name__)

TABLES = """
CREATE TABLE IF NOT EXISTS key_spent (
    key TEXT, day TEXT, tokens INTEGER, money REAL, PRIMARY KEY (key, day)
) WITHOUT ROWID;
"""
REMEMBERED = 31
"""Days for which the sums of a day are kept."""
MILLION = 1_000_000
Spend = Callable[[Callable[[], Usage]], None]
"""Is told what a question cost, by something that works it out."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a key has used in a day."""

    tokens: int = 0
    money: float = 0.0


class Budgets:
    """What the keys with budgets have spent, in the file at `path`."""

    def __init__(self, path: str, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._database = Database(path, TABLES, "toolspeak-budgets")
        self._looking: dict[str, asyncio.Task[Spent | None]] = {}

    async def check(self, key: Key) -> None:
        """Raises Refused (429) where the key has used up what it may use today, 503 where that cannot be read."""
        if not key.budget:
            return
        looking = self._looking.get(key.name)
        if looking is None:  # one that began earlier would not know what ended since
            looking = self._looking[key.name] = asyncio.create_task(self._look(key.name))
        spent = await asyncio.shield(looking)
        if spent is None:
            said = "the budget of this key cannot be read at the moment"
            raise Refused(said, status=503, code="unavailable", retry_after=5)
        if refusal := _refusal(key.budget, spent, self._clock()):
            raise refusal

    def spend(self, key: Key, price: Price | None, usage: Callable[[], Usage]) -> None:
        """Adds what a question cost, which takes long to estimate where it was large, and so is done in the thread. Not
        waited for: what is read later in this process is read after it."""
        self._database.submit(self._add, key.name, _day(self._clock()), price, usage)

    async def spent(self, keys: Sequence[Key]) -> dict[str, Spent]:
        """What each of the keys has spent today, by name; those of which that cannot be read are left out."""
        found = await asyncio.gather(*(self._look(key.name) for key in keys))
        return {key.name: spent for key, spent in zip(keys, found, strict=True) if spent is not None}

    def close(self) -> None:
        """Writes what is still to be written, and ends the thread."""
        self._database.close()

    async def _look(self, name: str) -> Spent | None:
        asking = self._database.submit(self._read, name, _day(self._clock()))
        self._looking.pop(name, None)  # whoever comes from now on looks again
        return await asyncio.wrap_future(asking)

    # ------------------------------------------------------------------ in the thread

    def _read(self, name: str, day: str) -> Spent | None:
        reading = "SELECT tokens, money FROM key_spent WHERE key = ? AND day = ?"
        try:
            row = self._database.connected().execute(reading, (name, day)).fetchone()
        except sqlite3.Error as error:
            log.error("the budgets of keys cannot be read: %s", error)
            return None
        return Spent(*row) if row else Spent()

    def _add(self, name: str, day: str, price: Price | None, usage: Callable[[], Usage]) -> None:
        told = usage()
        tokens, money = told.prompt_tokens + told.completion_tokens, cost(told, price)
        if not tokens:
            return
        adding = (
            "INSERT INTO key_spent VALUES (?, ?, ?, ?) ON CONFLICT (key, day) "
            "DO UPDATE SET tokens = tokens + excluded.tokens, money = money + excluded.money"
        )
        oldest = _day(self._clock() - REMEMBERED * 86_400)
        try:
            with self._database.transaction() as database:
                database.execute(adding, (name, day, tokens, money))
                database.execute("DELETE FROM key_spent WHERE day < ?", (oldest,))
        except sqlite3.Error as error:
            log.error("what the key %s has spent cannot be counted (%d tokens): %s", name, tokens, error)


def budgets_of(settings: Settings) -> Budgets | None:
    """What counts the budgets of a gateway's keys; None where no key has one."""
    counted = any(key.budget for key in settings.keys)
    return Budgets(settings.store.path) if settings.store and counted else None


def cost(usage: Usage, price: Price | None) -> float:
    """What a question costs, by the prices of a million tokens."""
    if price is None:
        return 0.0
    cached = min(usage.cached_tokens, usage.prompt_tokens)
    read = (usage.prompt_tokens - cached) * price.input + cached * (
        price.input if price.cached is None else price.cached
    )
    return (read + usage.completion_tokens * price.output) / MILLION


def _day(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")


def _refusal(budget: Budget, spent: Spent, now: float) -> Refused | None:
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
    said = f"this key may use {'; it may use '.join(over)}. That begins anew at {end:%Y-%m-%dT%H:%M:%SZ}, in {wait:,} s"
    return Refused(said, status=429, code="insufficient_quota", retry_after=wait)


# ------------------------------------------------------------------ what a question costs


class Metered(Wrapper[Model]):
    """A model of which `spend` is told what each question cost, one that failed or was cut too."""

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
            measured.failed = not measured.begun  # nothing came: it was refused, or nobody was there
            raise
        finally:
            self._spend(partial(measured.usage, request))

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        scores = await super().score(prompt, continuations)
        self._spend(lambda: Usage(about(prompt) + sum(map(about, continuations))))
        return scores


class _Measured:
    """What came of one reply."""

    __slots__ = ("_letters", "_told", "_wide", "begun", "failed")

    def __init__(self) -> None:
        self._letters = self._wide = 0
        self._told = Usage()
        self.begun = self.failed = False

    def take(self, event: Event) -> None:
        self.begun = True
        match event:
            case TextDelta(text) | ThoughtDelta(text) | ArgumentsDelta(text):
                pass
            case CallStart(text):
                pass
            case Finished(_, usage):
                self._told = usage
                return
            case _:
                return
        wide = 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))
        self._wide += wide
        self._letters += len(text) - wide

    def usage(self, request: Request) -> Usage:
        """What the question cost: what the model told, else an estimate."""
        if self.failed:
            return Usage()
        told = self._told
        asked = told.prompt_tokens or about_request(request)
        said = told.completion_tokens or self._wide - -self._letters // LETTERS
        return Usage(asked, said, told.cached_tokens)
