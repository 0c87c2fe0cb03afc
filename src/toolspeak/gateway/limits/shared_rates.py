"""Rates of keys that several processes share: counted in SQLite, and leased to each process in batches.

A transaction per request would double the cost of a request. So a process draws a share of a key's rates from the file
in advance: credits for requests and tokens, and places for running requests. It spends them on the event loop, and
draws again when they are used up.

- No limit is exceeded because of this: drawn credits were taken out of the bucket, and no bucket fills above its limit
  less what others have drawn (`key_lease`). Only tokens are known after a reply, as without a file; a debt is written
  at once.
- Unused credits go back after `HOLD` seconds without a request, and at the end. A process that dies loses its credits,
  and its places are freed. So another process may refuse a little early: see `SHARE` and `SPARE`.
- One thread makes all transactions, in order. Whatever it is to write is taken out of the lease first. A draw is a task
  of its own, which all waiting requests share: a client that leaves in the middle loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sqlite3
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from ...errors import Refused
from ..config.settings import Key
from ..http_exchange import Headers
from ..storage.sqlite import Database
from .rates import BatchLines, Bucket, RequestTokens, all_running, empty_bucket, limits_of, rate_headers

log = logging.getLogger(__name__)

TABLES = """
DROP TABLE IF EXISTS key_running;  -- an earlier version's
CREATE TABLE IF NOT EXISTS key_use (key TEXT, what TEXT, level REAL, at REAL, PRIMARY KEY (key, what)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS key_lease (
    key TEXT, what TEXT, process TEXT, host TEXT, pid INTEGER, amount REAL, until REAL, PRIMARY KEY (key, what, process)
) WITHOUT ROWID;
"""
HOST = socket.gethostname()
SHARE = 32
"""A process draws at most this part of a rate per minute, and at most a quarter of what is left."""
SPARE = 16
"""A process keeps at most this part of a key's places unused; none if that is less than one."""
HOLD = 1.0
"""Seconds for which unused credits are held."""
AGAIN = 0.25
"""Seconds for which a refusal stands before the file is read again."""
Credits = dict[str, float]


@dataclass(slots=True)
class _Lease:
    """What this process has drawn for one key. `places` may be filled by requests, `running` of them are."""

    key: Key
    credits: Credits = field(default_factory=dict[str, float])
    until: float = 0.0
    places: int = 0
    places_until: float = 0.0
    running: int = 0
    lines: BatchLines = field(default_factory=BatchLines)
    left: dict[str, Bucket] = field(default_factory=dict[str, Bucket])
    """The levels in the file after the last draw."""
    refusal: Callable[[], Refused] | None = None
    stands: float | None = None
    """The time of the last refusal, which stands for `AGAIN` seconds."""
    drawing: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    busy: bool = False

    def cover(self, now: float, longest: float) -> bool:
        """Whether the lease covers one more request."""
        if any(self.credits.get(what, 0.0) < 1 or now >= self.until for what, _ in limits_of(self.key.rates)):
            return False
        return self.key.rates.running is None or (self.running < self.places and now + longest <= self.places_until)

    def give(self) -> Credits:
        """Return all credits, removing them from the lease."""
        credits_, self.credits = self.credits, {}
        return credits_


@dataclass(slots=True)
class _Drawn:
    """The result of a draw."""

    now: float = 0.0
    credits: Credits = field(default_factory=dict[str, float])
    places: int | None = None
    left: dict[str, Bucket] = field(default_factory=dict[str, Bucket])
    refusal: Callable[[], Refused] | None = None
    stands: bool = False
    """Whether the refusal stands for a moment: a bucket refills slowly, but a place may be free at once."""


class SharedCounter:
    """The counters of all keys in the file at `path`. `longest` is the longest time of a request in seconds."""

    def __init__(self, path: str, *, longest: float = 600.0, clock: Callable[[], float] = time.time) -> None:
        self._longest = longest
        self._clock = clock
        self._database = Database(path, TABLES, "toolspeak-rates")
        self._process = uuid.uuid4().hex
        self._leases: dict[str, _Lease] = {}

    @asynccontextmanager
    async def counted(self, key: Key, headers: Headers, *, background: bool = False) -> AsyncGenerator[RequestTokens]:
        """Like `Counter.counted`. The use by other processes is known as of the last draw."""
        spent = RequestTokens()
        if not key.rates:
            yield spent
            return
        lease = self._leases.setdefault(key.name, _Lease(key))
        if background and (refusal := lease.lines.refusal(key.rates, self._levels(lease))):
            raise refusal
        try:
            await self._covered(lease)
        finally:
            headers += self._headers(lease)
        if background:
            lease.lines.begin()
        try:
            yield spent
        finally:
            if background:
                lease.lines.end(spent.tokens)
            self._end(lease, spent)

    def close(self) -> None:
        """Give back unused credits, and end the thread."""
        for lease in self._leases.values():
            if lease.timer:
                lease.timer.cancel()
            self._give_back(lease)
        self._database.close()

    # ------------------------------------------------------------------ on the event loop

    async def _covered(self, lease: _Lease) -> None:
        """Start a request with the credits of the lease, after a draw if they are not enough."""
        while not lease.cover(self._clock(), self._longest):
            if lease.refusal and lease.stands is not None and 0 <= self._clock() - lease.stands < AGAIN:
                raise lease.refusal()
            if lease.drawing is None:
                lease.drawing = asyncio.create_task(self._draw_for(lease))
            await asyncio.shield(lease.drawing)
            if lease.refusal:
                raise lease.refusal()
        lease.running += 1
        lease.busy = True
        if "requests" in lease.credits:
            lease.credits["requests"] -= 1
        self._look_later(lease)

    async def _draw_for(self, lease: _Lease) -> None:
        lease.refusal, lease.busy = None, True
        try:
            drawing = self._database.submit(self._draw, lease.key, lease.give(), lease.running)
            drawn = await asyncio.wrap_future(drawing)
        finally:
            lease.drawing = None
        for what, amount in drawn.credits.items():  # what was spent meanwhile is in the lease as a debt
            lease.credits[what] = lease.credits.get(what, 0.0) + amount
        lease.until = drawn.now + HOLD * 2
        if drawn.places is not None:
            lease.places, lease.places_until = drawn.places, drawn.now + self._longest * 2
        lease.left = drawn.left
        lease.refusal, lease.stands = drawn.refusal, drawn.now if drawn.stands else None
        self._look_later(lease)

    def _end(self, lease: _Lease, spent: RequestTokens) -> None:
        """End a request, without waiting: the thread writes in order, even if the client left."""
        lease.running -= 1
        rates = lease.key.rates
        if rates.running is not None:
            lease.refusal = None
            # During a draw its result is unknown: the request that waits for it settles it.
            if lease.drawing is None and lease.places - lease.running > rates.running // SPARE:
                lease.places = lease.running
                self._database.submit(self._settle, lease.key, {}, lease.places)
        if rates.tokens is not None:
            lease.credits["tokens"] = lease.credits.get("tokens", 0.0) - spent.tokens
            if lease.credits["tokens"] < 0:
                debt = lease.credits.pop("tokens")
                self._database.submit(self._settle, lease.key, {"tokens": debt}, None)

    def _look_later(self, lease: _Lease) -> None:
        if lease.timer is None:
            lease.timer = asyncio.get_running_loop().call_later(HOLD, self._look, lease)

    def _look(self, lease: _Lease) -> None:
        """Give back what was not used since the last check, and check again later if anything was used."""
        lease.timer = None
        if lease.busy or lease.drawing:
            lease.busy = False
            self._look_later(lease)
        else:
            self._give_back(lease)

    def _give_back(self, lease: _Lease) -> None:
        lease.places = lease.running
        self._database.submit(self._settle, lease.key, lease.give(), lease.places)

    def _headers(self, lease: _Lease) -> Headers:
        levels = self._levels(lease)
        return [line for what, bucket in lease.left.items() for line in rate_headers(what, bucket.limit, levels[what])]

    def _levels(self, lease: _Lease) -> Credits:
        """Return the rest of each rate, as far as this process knows."""
        now, credits_ = self._clock(), lease.credits
        return {
            what: min(float(bucket.limit), bucket.filled(now) + credits_.get(what, 0.0))
            for what, bucket in lease.left.items()
        }

    # ------------------------------------------------------------------ in the thread

    def _draw(self, key: Key, back: Credits, running: int) -> _Drawn:
        """Give back credits and draw new ones, and places for one request more."""
        try:
            with self._database.transaction() as database:
                return _Ledger(database, self._process, key, self._clock()).draw(back, running, self._longest * 2)
        except sqlite3.Error as error:
            log.error("the rates of keys cannot be counted: %s", error)
            return _Drawn(refusal=_unavailable)

    def _settle(self, key: Key, back: Credits, places: int | None) -> None:
        """Give back credits, or write a debt; `places` are kept."""
        try:
            with self._database.transaction() as database:
                ledger = _Ledger(database, self._process, key, self._clock())
                for what, limit in limits_of(key.rates):
                    if what in back:
                        level = ledger.level(what, limit, back[what])
                        ledger.keep(what, level, None if back[what] < 0 else 0)
                if places is not None and key.rates.running is not None:
                    ledger.lease("running", places, self._longest * 2)
        except sqlite3.Error as error:
            log.error("the rates of keys cannot be counted: %s", error)


class _Ledger:
    """The rows of one key, within a transaction."""

    def __init__(self, database: sqlite3.Connection, process: str, key: Key, now: float) -> None:
        self._database = database
        self._process = process
        self._key = key
        self._now = now

    def draw(self, back: Credits, running: int, longest: float) -> _Drawn:
        drawn = _Drawn(self._now)
        levels: list[tuple[str, int, float]] = []
        for what, limit in limits_of(self._key.rates):
            level = self.level(what, limit, back.get(what, 0.0))
            levels.append((what, limit, level))
            if level < 1:
                drawn.refusal, drawn.stands = drawn.refusal or partial(empty_bucket, what, limit, level), True
        at_once = self._key.rates.running
        if drawn.refusal is None and at_once is not None:
            drawn.places = self._places(running, at_once, longest)
            if drawn.places <= running:
                drawn.refusal = partial(all_running, at_once)
        for what, limit, level in levels:
            amount = 0 if drawn.refusal else max(1, min(limit // SHARE, int(level) // 4))
            drawn.credits[what] = amount
            drawn.left[what] = Bucket(limit, level - amount, self._now)
            self.keep(what, level - amount, amount)
        return drawn

    def level(self, what: str, limit: int, back: float) -> float:
        """Return the level of a bucket now, including the credits that come back. It fills up to its limit less all
        that is drawn, which can still be spent."""
        reading = "SELECT level, at FROM key_use WHERE key = ? AND what = ?"
        row = self._database.execute(reading, (self._key.name, what)).fetchone()
        bucket = Bucket(limit, *row) if row else Bucket(limit, float(limit), self._now)
        level = min(bucket.filled(self._now), limit - self._drawn(what)) + back
        return min(level, limit - self._drawn(what, but=self._process))  # leases may have expired since

    def keep(self, what: str, level: float, amount: float | None) -> None:
        """Write the level of a bucket, and what this process has drawn of it (None: unchanged)."""
        writing = "INSERT OR REPLACE INTO key_use VALUES (?, ?, ?, ?)"
        self._database.execute(writing, (self._key.name, what, level, self._now))
        if amount is not None:
            self.lease(what, amount, HOLD * 2)

    def lease(self, what: str, amount: float, seconds: float) -> None:
        """Write what this process has drawn, and until when."""
        place = (self._key.name, what, self._process)
        if amount > 0:
            row = (*place, HOST, os.getpid(), amount, self._now + seconds)
            self._database.execute("INSERT OR REPLACE INTO key_lease VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        else:
            self._database.execute("DELETE FROM key_lease WHERE key = ? AND what = ? AND process = ?", place)

    def _places(self, running: int, limit: int, longest: float) -> int:
        """Return how many requests this process may run. If that is no more than now, leases of dead processes are
        dropped."""
        free = limit - self._drawn("running", but=self._process)
        if free <= running:
            self._drop_the_dead()
            free = limit - self._drawn("running", but=self._process)
        places = max(running, min(int(free), running + max(1, limit // SPARE)))
        self.lease("running", places, longest)
        return places

    def _drawn(self, what: str, *, but: str = "") -> float:
        """Return what all processes have drawn, or all but one."""
        summing = (
            "SELECT coalesce(sum(amount), 0) FROM key_lease WHERE key = ? AND what = ? AND process <> ? AND until >= ?"
        )
        (drawn,) = self._database.execute(summing, (self._key.name, what, but, self._now)).fetchone()
        return drawn

    def _drop_the_dead(self) -> None:
        self._database.execute("DELETE FROM key_lease WHERE until < ?", (self._now,))
        for (pid,) in self._database.execute("SELECT DISTINCT pid FROM key_lease WHERE host = ?", (HOST,)).fetchall():
            if not _lives(pid):
                self._database.execute("DELETE FROM key_lease WHERE host = ? AND pid = ?", (HOST, pid))


def _unavailable() -> Refused:
    message = "the rates of this key cannot be counted at the moment"
    return Refused(message, status=503, code="unavailable", retry_after=5)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
