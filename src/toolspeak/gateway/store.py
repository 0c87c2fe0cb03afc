"""Responses kept in SQLite: each its owner's alone, the oldest dropped first when there are too many or they are old.

Several processes may share the file.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import Refused, UsageError
from .database import Database
from .settings import Store

T = TypeVar("T")
Items = list[dict[str, Any]]

log = logging.getLogger(__name__)

TABLES = """
PRAGMA secure_delete = ON;  -- what is dropped is wiped
CREATE TABLE IF NOT EXISTS response (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, at REAL NOT NULL, size INTEGER NOT NULL,
    body TEXT NOT NULL, input TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS response_at ON response (at, size);
CREATE TABLE IF NOT EXISTS response_total (one INTEGER PRIMARY KEY CHECK (one = 1), size INTEGER NOT NULL);
INSERT OR IGNORE INTO response_total VALUES (1, 0);
CREATE TRIGGER IF NOT EXISTS response_added AFTER INSERT ON response BEGIN
    UPDATE response_total SET size = size + new.size;
END;
CREATE TRIGGER IF NOT EXISTS response_dropped AFTER DELETE ON response BEGIN
    UPDATE response_total SET size = size - old.size;
END;
"""
ROW = 512
"""Bytes that a response takes beside its text."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A response as it is kept: its body, the items that it was made from, and how many bytes both are."""

    body: dict[str, Any]
    input: Items
    size: int


class ResponseStore:
    """Keeps, finds and drops responses. `clock` gives seconds since 1970. Raises Refused (503) where the file fails."""

    def __init__(self, settings: Store, *, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self._clock = clock
        self._database = Database(settings.path, TABLES, "toolspeak-store")

    def prepare(self) -> None:
        """Makes the file and its tables, and leaves nothing open, so that a process may fork. Raises UsageError."""
        try:
            with suppress(FileExistsError):  # for nobody else's eyes; SQLite's other files take the same rights
                os.close(os.open(self.settings.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            self._database.connected()
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"the store {self.settings.path} cannot be used: {error}") from None
        self._database.disconnect()

    async def keep(self, owner: str, body: dict[str, Any], given: Items | Callable[[], Items]) -> None:
        """Keeps a response under the id that its body has. Its JSON is written in the thread, and so is `given` made."""
        await self._run(self._keep, owner, body, given)

    async def find(self, owner: str, key: str) -> Kept | None:
        """A response of this owner's; None where there is none, another's or too old. Its JSON is read in the thread."""
        return await self._run(self._find, owner, key)

    async def drop(self, owner: str, key: str) -> bool:
        """Drops a response; whether there was one."""
        return await self._run(self._drop, owner, key)

    def close(self) -> None:
        """Ends the thread, after what it still has to do."""
        self._database.close()

    async def _run(self, work: Callable[..., T], *args: object) -> T:
        try:
            return await asyncio.wrap_future(self._database.submit(work, *args))
        except sqlite3.Error as error:
            log.error("the store of responses fails: %s", error)
            said = "the store of responses cannot be used at the moment; store: false does without it"
            raise Refused(said, status=503, code="store_unavailable", retry_after=5) from None

    # ------------------------------------------------------------------ in the thread

    def _keep(self, owner: str, response: dict[str, Any], items: Items | Callable[[], Items]) -> None:
        key = str(response["id"])
        both = (response, items() if callable(items) else items)
        body, given = (json.dumps(value, ensure_ascii=False, separators=(",", ":")) for value in both)
        size = len(body.encode()) + len(given.encode()) + ROW
        if size > self.settings.size:
            said = f"a response of {size:,} bytes is larger than the whole store; store: false does without it"
            raise Refused(said, status=413, code="store_too_small")
        with self._database.transaction() as database:
            now = self._clock()
            database.execute("DELETE FROM response WHERE at < ?", (now - self.settings.age,))
            (total,) = database.execute("SELECT size FROM response_total").fetchone()
            self._make_room(database, total + size - self.settings.size)
            row = (key, owner, now, size, body, given)
            database.execute("INSERT OR REPLACE INTO response VALUES (?, ?, ?, ?, ?, ?)", row)

    def _make_room(self, database: sqlite3.Connection, wanted: int) -> None:
        """Drops the oldest until so many bytes are free."""
        gone: list[tuple[int]] = []
        for row, size in database.execute("SELECT rowid, size FROM response ORDER BY at, rowid"):
            if wanted <= 0:
                break
            gone.append((row,))
            wanted -= size
        database.executemany("DELETE FROM response WHERE rowid = ?", gone)

    def _find(self, owner: str, key: str) -> Kept | None:
        wanted = "SELECT body, input FROM response WHERE id = ? AND owner = ? AND at >= ?"
        values = (key, owner, self._clock() - self.settings.age)
        found = self._database.connected().execute(wanted, values).fetchone()
        if found is None:
            return None
        body, given = found
        return Kept(json.loads(body), json.loads(given), len(body) + len(given))

    def _drop(self, owner: str, key: str) -> bool:
        with self._database.transaction() as database:
            fresh = self._clock() - self.settings.age
            done = database.execute("DELETE FROM response WHERE id = ? AND owner = ? AND at >= ?", (key, owner, fresh))
            found = done.rowcount > 0
        if found:  # the log still holds what was wiped; where others read in it, it is wiped later
            database.execute("PRAGMA busy_timeout = 50")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.execute("PRAGMA busy_timeout = 5000")
        return found
