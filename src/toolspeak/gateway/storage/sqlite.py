"""A SQLite database that one thread of a process uses, so that the event loop never waits for the disk.

The thread works for one owner after the other, so one with long work delays another by one piece of it. If another
process has locked the file, a transaction waits for WAIT seconds. Transactions that were submitted during that time do
not wait again, else each would add its own seconds to those of all behind it.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

T = TypeVar("T")

WAIT = 5.0
"""Seconds for which a transaction waits for another process."""


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
        self._waiting: dict[str, deque[_Work]] = {}
        """By owner, in the order in which they get their turn; none empty."""
        self._submitted = 0.0
        """When the running work was submitted."""
        self._locked = 0.0
        """When a transaction last found the file locked."""

    def submit(self, work: Callable[..., T], *args: object, owner: str = "") -> Future[T]:
        """Run `work` in the thread, after earlier work of the same owner."""
        future = Future[T]()
        with self._lock:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, self._name)
            self._waiting.setdefault(owner, deque()).append((future, monotonic(), work, args))
            self._thread.submit(self._run_next)
        return future

    def close(self) -> None:
        """End the thread, after its pending work."""
        if self._thread is not None:
            self._thread.submit(self.disconnect)
            self._thread.shutdown()
            self._thread = None

    # ------------------------------------------------------------------ in the thread

    def _run_next(self) -> None:
        with self._lock:
            owner = next(iter(self._waiting))
            queue = self._waiting.pop(owner)
            future, self._submitted, work, args = queue.popleft()
            if queue:
                self._waiting[owner] = queue  # behind the others
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work(*args)
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            future.set_exception(error)
        else:
            future.set_result(result)

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """Return the database inside a transaction; no other process writes meanwhile. Raises sqlite3.Error."""
        database = self.connected()
        wait = 0.0 if self._submitted < self._locked else WAIT
        database.execute(f"PRAGMA busy_timeout = {1000 * wait:.0f}")
        with database:
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                self._locked = monotonic()
                raise
            yield database

    def connected(self) -> sqlite3.Connection:
        """Return the open database. Raises sqlite3.Error."""
        if self._connection is None:
            connection = sqlite3.connect(self._path, timeout=WAIT, isolation_level=None)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(self._script)
            self._connection = connection
        return self._connection

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


_Work = tuple[Future[Any], float, Callable[..., Any], tuple[object, ...]]
