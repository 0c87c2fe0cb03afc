"""Audit log of calls: one line of the logger `toolspeak.audit` for each decision whether a call may run.

A line has who asked, the id of the gateway's request, the digest of the call, the verdict, the rule and the outcome. It
has no argument, and no name that a client invented. The same call has the same digest in the library and in the gateway. While a trace is recorded,
each decision is also an event of its span. `SqliteHandler` writes the lines to a SQLite file, on request with the
arguments.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import ContextVar
from pathlib import Path
from threading import Event, Lock
from typing import Any

from .policy.approval_digests import canonical, digest
from .policy.policy import Decision
from .types import ToolCall

log = logging.getLogger("toolspeak.audit")

EVENT = "toolspeak.call_decision"
FIELDS = ("outcome", "verdict", "rule", "origin", "call", "who", "request")
SCRIPT = (
    f"CREATE TABLE IF NOT EXISTS audit (time REAL, {', '.join(f'{name} TEXT' for name in FIELDS)}, arguments TEXT)",
    "CREATE INDEX IF NOT EXISTS audit_time ON audit (time)",
)
INSERT = f"INSERT INTO audit (time, {', '.join(FIELDS)}, arguments) VALUES (?{', ?' * (len(FIELDS) + 1)})"  # noqa: S608 - of constants
EVERY = 1_000
"""Rows between two deletions of old rows."""
WAITING, TOGETHER = 10_000, 500
"""The most rows that wait, and that are written in one transaction."""
ROOM = 32_000_000
"""The most characters of arguments that wait."""
WAIT = 5.0
"""Seconds for which a transaction waits for another process."""
TRIES, PAUSE = 6, 0.5
"""How often the same rows are tried before the next decision, and the seconds between."""

_Row = tuple[Any, ...]
_error = logging.getLogger("toolspeak")

request_span: ContextVar[Any] = ContextVar("request_span", default=None)
"""The span that gets decisions as events; None means the current span."""
request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the gateway's request (`x-request-id`) in which calls are decided; "" outside of the gateway."""


def audit(call: ToolCall, decision: Decision | None, outcome: str, *, who: str = "") -> None:
    """Logs a decision at level INFO, with its fields in the record's attribute `audit`. `decision` None: no policy
    decided."""
    span = _span()
    if not (span or log.isEnabledFor(logging.INFO)):
        return
    fields = {name: getattr(decision, name, "") for name in ("verdict", "rule", "origin")}
    row = {"outcome": outcome, **fields, "call": digest([call.name, call.arguments]), "who": who}
    row["request"] = request_id.get()
    line = {name: value for name, value in row.items() if value}
    if span:
        span.add_event(EVENT, {f"toolspeak.decision.{name}": value for name, value in line.items()})
    extra: dict[str, Any] = {"audit": row}
    if any(getattr(one, "arguments", False) for one in log.handlers):
        extra["audit_arguments"] = canonical([call.name, call.arguments])
    log.info(" ".join(f"{name}={value}" for name, value in line.items()), extra=extra)


def _span() -> Any:
    """The span that is being recorded; None if there is none. OpenTelemetry is not imported for this."""
    span, trace = request_span.get(), sys.modules.get("opentelemetry.trace")
    if span is None:
        span = trace.get_current_span() if trace else None
    return span if span and span.is_recording() else None


class SqliteHandler(logging.Handler):
    """Writes each decision to the table `audit` of a SQLite file, which several processes may share.

    With `arguments` a row also has the tool's name and the call's arguments as JSON. Rows older than `age` seconds are
    deleted (None: never). A separate thread writes, in order. If it cannot, it tries again: six times, then with
    the next decision, and once in `close`. At most 10,000 rows wait, with 32 million characters of arguments in all; beyond
    them, a row is written without its arguments. Errors, lost rows and lost arguments are logged.
    """

    def __init__(self, path: str | os.PathLike[str], *, arguments: bool = False, age: float | None = None) -> None:
        super().__init__()
        self.path, self.arguments, self.age = Path(path).expanduser(), arguments, age
        self._thread: ThreadPoolExecutor | None = None
        self._rows: list[_Row] = []
        self._changing = Lock()
        self._writing = False
        self._closing = Event()
        self._lost = self._without = self._waiting = 0
        self._until_deletion = 0

    def emit(self, record: logging.LogRecord) -> None:
        row: dict[str, str] | None = getattr(record, "audit", None)
        if row is None:
            return
        arguments = getattr(record, "audit_arguments", None) if self.arguments else None
        with self._changing:
            if self._waiting + _length(arguments) > ROOM:
                arguments = None
                self._without += 1
            if len(self._rows) < WAITING:
                self._waiting += _length(arguments)
                self._rows.append((record.created, *(row[name] for name in FIELDS), arguments))
            else:
                self._lost += 1
            if not self._writing:
                self._writing = True
                self._thread = self._thread or ThreadPoolExecutor(1, "toolspeak-audit")
                self._thread.submit(self._write_rows)

    def close(self) -> None:
        """Waits until all rows are written, or a last try to write them fails: seconds if the file is locked."""
        self._closing.set()
        with self._changing:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()
        self._write_rows()
        self._closing.clear()
        with self._changing:
            lost, without = len(self._rows) + self._lost, self._without
            self._rows, self._lost, self._without, self._waiting = [], 0, 0, 0
        if lost:
            _error.error("%d decisions were not written to %s", lost, self.path)
        if without:
            _error.error("the arguments of %d decisions were not written to %s", without, self.path)
        super().close()

    # ------------------------------------------------------------------ in the thread, the last time in `close`

    def _write_rows(self) -> None:
        """Write all rows that wait, also those that come meanwhile."""
        tries = 0
        while True:
            with self._changing:
                rows = self._rows[:TOGETHER]
                if not rows or tries == TRIES:
                    self._writing = False
                    return
            if self._write(rows):
                tries = 0
                with self._changing:
                    del self._rows[: len(rows)]
                    self._waiting -= sum(_length(row[-1]) for row in rows)
                continue
            tries = TRIES if self._closing.is_set() else tries + 1
            self._closing.wait(0 if tries == TRIES else PAUSE)

    def _write(self, rows: list[_Row]) -> bool:
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)) as database:
                database.execute("PRAGMA journal_mode = WAL")
                with database:
                    database.execute("BEGIN IMMEDIATE")
                    _create(database)
                    if self.age is not None and self._until_deletion <= 0:
                        database.execute("DELETE FROM audit WHERE time < ?", (rows[-1][0] - self.age,))
                    database.executemany(INSERT, rows)
        except (OSError, sqlite3.Error) as error:
            _error.error("%d decisions wait to be written to %s: %s", len(self._rows), self.path, error)
            return False
        self._until_deletion = EVERY if self._until_deletion <= 0 else self._until_deletion - len(rows)
        return True


def _length(arguments: str | None) -> int:
    return 0 if arguments is None else len(arguments)


def _create(database: sqlite3.Connection) -> None:
    """Create the table, with the columns that a file of an earlier version lacks."""
    for statement in SCRIPT:
        database.execute(statement)
    known = {row[1] for row in database.execute("PRAGMA table_info(audit)")}
    for name in FIELDS:
        if name not in known:
            database.execute(f"ALTER TABLE audit ADD COLUMN {name} TEXT")
