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
from typing import Any

from .policy.approval_digests import canonical, digest
from .policy.policy import Decision
from .types import ToolCall

log = logging.getLogger("toolspeak.audit")

EVENT = "toolspeak.call_decision"
FIELDS = ("outcome", "verdict", "rule", "origin", "call", "who", "request")
SCRIPT = f"""
CREATE TABLE IF NOT EXISTS audit (time REAL, {", ".join(f"{name} TEXT" for name in FIELDS)}, arguments TEXT);
CREATE INDEX IF NOT EXISTS audit_time ON audit (time);
"""
INSERT = f"INSERT INTO audit (time, {', '.join(FIELDS)}, arguments) VALUES (?{', ?' * (len(FIELDS) + 1)})"  # noqa: S608 - of constants
EVERY = 1_000
"""Rows between two deletions of old rows."""

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
    deleted (None: never). A separate thread writes, in order; `close` waits for it. Write errors are logged.
    """

    def __init__(self, path: str | os.PathLike[str], *, arguments: bool = False, age: float | None = None) -> None:
        super().__init__()
        self.path, self.arguments, self.age = Path(path).expanduser(), arguments, age
        self._thread: ThreadPoolExecutor | None = None
        self._written = 0

    def emit(self, record: logging.LogRecord) -> None:
        row: dict[str, str] | None = getattr(record, "audit", None)
        if row is None:
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "toolspeak-audit")
        arguments = getattr(record, "audit_arguments", None) if self.arguments else None
        values = (row[name] for name in FIELDS)
        self._thread.submit(self._write, (record.created, *values, arguments))

    def close(self) -> None:
        """Waits until all rows are written."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()
        super().close()

    def _write(self, row: tuple[Any, ...]) -> None:
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.executescript(SCRIPT)
                if not self._written:
                    _add_columns(database)
                database.execute(INSERT, row)
                if self.age is not None and self._written % EVERY == 0:
                    database.execute("DELETE FROM audit WHERE time < ?", (row[0] - self.age,))
            self._written += 1
        except (OSError, sqlite3.Error) as error:
            logging.getLogger("toolspeak").error("a decision cannot be written to %s: %s", self.path, error)


def _add_columns(database: sqlite3.Connection) -> None:
    """Add the columns that a file of an earlier version lacks. Other processes may be writing to it."""
    with database:
        database.execute("BEGIN IMMEDIATE")
        known = {row[1] for row in database.execute("PRAGMA table_info(audit)")}
        for name in FIELDS:
            if name not in known:
                database.execute(f"ALTER TABLE audit ADD COLUMN {name} TEXT")
