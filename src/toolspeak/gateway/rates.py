"""How much each key has used, counted in SQLite: in memory, or in a file that all processes of a machine share.

Requests and tokens are buckets that fill up evenly, a minute's worth deep. The tokens of a request are known only
after it: they are taken then, and a bucket in debt lets nobody in until it has filled again. Requests at once are
leases: one of a process that died is dropped, and any after the longest that a request may take.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
import sqlite3
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ..errors import Refused
from .database import Database
from .exchange import Headers
from .settings import Key

log = logging.getLogger(__name__)

MINUTE = 60.0
TABLES = """
CREATE TABLE IF NOT EXISTS key_use (key TEXT, what TEXT, level REAL, at REAL, PRIMARY KEY (key, what)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS key_running (id TEXT PRIMARY KEY, key TEXT, host TEXT, pid INTEGER, until REAL);
CREATE INDEX IF NOT EXISTS key_running_key ON key_running (key);
"""
HOST = socket.gethostname()


@dataclass(slots=True)
class Spent:
    """What a request has used; whoever answers it adds the tokens."""

    tokens: int = 0


@dataclass(slots=True)
class Taken:
    """What taking from a key's rates gave: the headers that tell what is left, and the refusal if nothing was."""

    headers: Headers = field(default_factory=list[tuple[bytes, bytes]])
    refusal: Refused | None = None


class Counter:
    """The counts of all keys. `path` None: in this process alone. `lease` is the longest that a request may take, in
    seconds."""

    def __init__(
        self, path: str | None = None, *, lease: float = 600.0, clock: Callable[[], float] = time.time
    ) -> None:
        self._lease = lease
        self._clock = clock
        self._database = Database(path, TABLES, "toolspeak-rates")

    @asynccontextmanager
    async def counted(self, key: Key | None, headers: Headers) -> AsyncGenerator[Spent]:
        """Counts the request inside. Adds to `headers` what is left. Raises Refused: 429 where a rate is used up."""
        spent = Spent()
        if key is None or not key.rates:
            yield spent
            return
        lease = uuid.uuid4().hex
        try:
            taken = await asyncio.wrap_future(self._database.submit(self._take, key, lease))
            headers += taken.headers
            if taken.refusal:
                raise taken.refusal
            yield spent
        finally:  # not waited for: the thread does it after what it was asked before, even if the client has left
            self._database.submit(self._give_back, key, lease, spent)

    def close(self) -> None:
        """Ends the thread, after what it still has to do."""
        self._database.close()

    # ------------------------------------------------------------------ in the thread

    def _take(self, key: Key, lease: str) -> Taken:
        try:
            with self._database.transaction() as database:
                return self._judged(database, key, lease)
        except sqlite3.Error as error:
            log.error("the rates of keys cannot be counted: %s", error)
            said = "the rates of this key cannot be counted at the moment"
            return Taken(refusal=Refused(said, status=503, code="unavailable", retry_after=5))

    def _judged(self, database: sqlite3.Connection, key: Key, lease: str) -> Taken:
        now = self._clock()
        taken = Taken()
        levels: dict[str, float] = {}
        for what, limit, price in (("requests", key.rates.requests, 1.0), ("tokens", key.rates.tokens, 0.0)):
            if limit is None:
                continue
            level = _level(database, key.name, what, limit, now)
            if level < 1 and taken.refusal is None:
                taken.refusal = _used_up(f"{limit:,} {what} a minute", (1 - level) * MINUTE / limit)
            levels[what] = level - (price if level >= 1 else 0)
            taken.headers += _told(what, limit, levels[what])
        at_once = key.rates.running
        if taken.refusal is None and at_once is not None and _running(database, key.name, at_once, now) >= at_once:
            taken.refusal = _used_up(f"{at_once:,} requests at once", 1)
        if taken.refusal is None:
            for what, level in levels.items():
                _keep(database, key.name, what, level, now)
            if at_once is not None:
                row = (lease, key.name, HOST, os.getpid(), now + self._lease)
                database.execute("INSERT INTO key_running VALUES (?, ?, ?, ?, ?)", row)
        return taken

    def _give_back(self, key: Key, lease: str, spent: Spent) -> None:
        try:
            with self._database.transaction() as database:
                if key.rates.running is not None:
                    database.execute("DELETE FROM key_running WHERE id = ?", (lease,))
                if key.rates.tokens is not None and spent.tokens:
                    now = self._clock()
                    level = _level(database, key.name, "tokens", key.rates.tokens, now)
                    _keep(database, key.name, "tokens", level - spent.tokens, now)
        except sqlite3.Error as error:
            log.error("the rates of keys cannot be counted: %s", error)


def _level(database: sqlite3.Connection, key: str, what: str, limit: int, now: float) -> float:
    """What is in a bucket by now; below zero it is in debt."""
    row = database.execute("SELECT level, at FROM key_use WHERE key = ? AND what = ?", (key, what)).fetchone()
    if row is None:
        return float(limit)
    level, at = row
    return min(float(limit), level + max(0.0, now - at) * limit / MINUTE)


def _keep(database: sqlite3.Connection, key: str, what: str, level: float, now: float) -> None:
    database.execute("INSERT OR REPLACE INTO key_use VALUES (?, ?, ?, ?)", (key, what, level, now))


def _running(database: sqlite3.Connection, key: str, at_once: int, now: float) -> int:
    """How many requests of a key are being answered. Where that is too many, those of dead processes are dropped."""
    database.execute("DELETE FROM key_running WHERE until < ?", (now,))
    counting = "SELECT count(*) FROM key_running WHERE key = ?"
    (count,) = database.execute(counting, (key,)).fetchone()
    if count < at_once:
        return count
    for (pid,) in database.execute("SELECT DISTINCT pid FROM key_running WHERE host = ?", (HOST,)).fetchall():
        if not _lives(pid):
            database.execute("DELETE FROM key_running WHERE host = ? AND pid = ?", (HOST, pid))
    (count,) = database.execute(counting, (key,)).fetchone()
    return count


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _used_up(rate: str, wait: float) -> Refused:
    said = f"this key may use {rate}, and has; try again in {math.ceil(wait)} s"
    return Refused(said, status=429, code="rate_limit_exceeded", retry_after=math.ceil(wait))


def _told(what: str, limit: int, level: float) -> Headers:
    """What is left, as OpenAI's headers tell it."""
    full = math.ceil((limit - level) * MINUTE / limit)
    told = {"limit": str(limit), "remaining": str(max(0, math.floor(level))), "reset": f"{full}s"}
    return [(f"x-ratelimit-{name}-{what}".encode(), value.encode()) for name, value in told.items()]
