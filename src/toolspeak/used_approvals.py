"""Records used approvals in a SQLite file, so that each approval permits one run.

An approval is marked as used before its call runs, and the call's result is stored as soon as it exists. If the
process dies in between, the call may have run or not. Nothing can tell which, so it is not run again and a person has
to check. If the process dies later, or the model fails, the next attempt continues with the stored result.

A call that a person refused or answered before it ran is closed: it cannot be approved any more.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import ToolError, UsageError
from .files import state_folder
from .types import ToolResult

VARIABLE = "TOOLSPEAK_APPROVALS"
MARGIN = 30 * 86_400.0
"""Seconds for which a used approval or a closed call is remembered after it expires, because clocks can be set back."""
_SCRIPT = """
CREATE TABLE IF NOT EXISTS used (digest TEXT PRIMARY KEY, expires REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS closed (digest TEXT PRIMARY KEY, expires REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS result (digest TEXT PRIMARY KEY, expires REAL NOT NULL, kept TEXT NOT NULL);
"""
_APPROVED = "SELECT 1 FROM used WHERE digest = ? AND digest NOT IN (SELECT digest FROM closed)"
_HAS_RESULT = "SELECT 1 FROM result WHERE digest = ?"
_CLOSE = "INSERT OR IGNORE INTO closed SELECT :1, :2 WHERE :1 NOT IN (SELECT digest FROM used)"


@dataclass(frozen=True, slots=True)
class StoredResult:
    """The result of an approved call, and the canonical text of the `arguments` that it ran with."""

    arguments: str
    text: str
    failed: str | None
    seconds: float
    origin: str | None

    def result(self, key: str, name: str) -> ToolResult:
        """The ToolResult for the call with this id and name. Its `value` is None: it belonged to the other process."""
        error = None if self.failed is None else ToolError(self.failed)
        return ToolResult(key, name, self.text, None, error, self.seconds, self.origin)  # type: ignore[arg-type]


class ApprovalStore:
    """The used approvals, in a file that several processes may share ($TOOLSPEAK_APPROVALS, by default in the user's
    state folder). It holds results, so only its owner can read it."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        where = path or os.environ.get(VARIABLE)
        self.path = Path(where).expanduser() if where else state_folder() / "approvals.sqlite"

    def consume(self, digest: str, expires: float) -> bool:
        """Marks an approval as used. Returns False if it was used before. The mark is on disk when this returns.

        Raises UsageError if it cannot be stored.
        """
        try:
            with self._writing() as database:
                return database.execute("INSERT OR IGNORE INTO used VALUES (?, ?)", (digest, expires)).rowcount == 1
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"used approvals cannot be stored in {self.path}: {error}. Nothing has run") from error

    def close(self, refused: Mapping[str, float], answered: Mapping[str, float]) -> Collection[str]:
        """Marks calls, each its digest with the time until which it can be approved, as not to be approved any more.

        Returns the digests for which that comes too late; then nothing is marked. A call whose approval was used cannot
        be refused, since it has run or may have. A person who knows its outcome can answer it, unless its result is
        stored. Raises UsageError if the marks cannot be stored.
        """
        rows = [*refused.items(), *answered.items()]
        if not rows:
            return ()
        try:
            with self._writing() as database:
                late = {one for one in refused if database.execute(_APPROVED, (one,)).fetchone()}
                late |= {one for one in answered if database.execute(_HAS_RESULT, (one,)).fetchone()}
                if not late:
                    # An answered call whose approval was used stays used only: it must not look as if it never ran.
                    database.executemany(_CLOSE, rows)
                    database.executemany("INSERT OR IGNORE INTO used VALUES (?, ?)", rows)
                return late
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"refused calls cannot be stored in {self.path}: {error}. Nothing has run") from error

    def keep(self, digest: str, expires: float, arguments: str, result: ToolResult) -> None:
        """Stores the result of an approved call until the approval expires. Raises OSError and sqlite3.Error."""
        failed = None if result.error is None else str(result.error)
        stored = [arguments, result.text, failed, result.seconds, result.origin]
        with self._writing() as database:
            database.execute("INSERT OR REPLACE INTO result VALUES (?, ?, ?)", (digest, expires, json.dumps(stored)))

    def results(self, digests: Iterable[str]) -> dict[str, StoredResult]:
        """The stored results, by the digests of their approvals. Raises UsageError."""
        rows = self._rows("SELECT kept FROM result WHERE digest = ? AND expires >= ?", digests)
        return {digest: StoredResult(*json.loads(row[0])) for digest, row in rows.items()}

    def closed(self, digests: Iterable[str]) -> frozenset[str]:
        """Those of the digests whose calls a person refused or answered. Raises UsageError."""
        return frozenset(self._rows("SELECT 1 FROM closed WHERE digest = ? AND expires >= ?", digests))

    def _rows(self, query: str, digests: Iterable[str]) -> dict[str, tuple[Any, ...]]:
        """The rows that a query finds by a digest, as far as they have not expired. Raises UsageError."""
        if not self.path.exists():
            return {}
        try:
            with self._connected() as database:
                rows = {one: database.execute(query, (one, time.time())).fetchone() for one in digests}
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"used approvals cannot be read in {self.path}: {error}. Nothing has run") from error
        return {digest: row for digest, row in rows.items() if row}

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as database:
            database.execute("PRAGMA synchronous = FULL")
            database.executescript(_SCRIPT)
            yield database

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """A transaction. It is committed to disk at the end of the block, and long-expired rows are deleted."""
        with self._connected() as database:
            database.execute("BEGIN IMMEDIATE")
            now = time.time()
            database.execute("DELETE FROM result WHERE expires < ?", (now,))
            for table in ("used", "closed"):
                database.execute(f"DELETE FROM {table} WHERE expires < ?", (now - MARGIN,))  # noqa: S608 - our own names
            yield database
            database.execute("COMMIT")
