"""A SQLite database that one thread of a process uses, so that the event loop never waits for the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

T = TypeVar("T")


class Database:
    """The file at `path`, which several processes may share, or a database in memory. `script` creates its tables.

    `submit` runs work in the thread `name`; `transaction`, `connected` and `disconnect` are for use there. Thread and
    connection are created on first use, so that a process may fork before.
    """

    def __init__(self, path: str | None, script: str, name: str) -> None:
        self._path = path or ":memory:"
        self._script = script
        self._name = name
        self._lock = Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None

    def submit(self, work: Callable[..., T], *args: object) -> Future[T]:
        """Run `work` in the thread, after earlier work."""
        with self._lock:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, self._name)
            return self._thread.submit(work, *args)

    def close(self) -> None:
        """End the thread, after its pending work."""
        if self._thread is not None:
            self._thread.submit(self.disconnect)
            self._thread.shutdown()
            self._thread = None

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """Return the database inside a transaction; no other process writes meanwhile."""
        database = self.connected()
        with database:
            database.execute("BEGIN IMMEDIATE")
            yield database

    def connected(self) -> sqlite3.Connection:
        """Return the open database. Raises sqlite3.Error."""
        if self._connection is None:
            connection = sqlite3.connect(self._path, timeout=5, isolation_level=None)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(self._script)
            self._connection = connection
        return self._connection

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
