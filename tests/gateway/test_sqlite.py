"""One thread that works at a file for many owners, while another process may have locked it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path

import pytest

from toolspeak.gateway.storage import sqlite
from toolspeak.gateway.storage.sqlite import Database

FOREVER = 3600.0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(str(tmp_path / "one.sqlite"), "CREATE TABLE IF NOT EXISTS t (x);", "test")
    yield made
    made.close()


def test_owners_take_turns(database: Database) -> None:
    begin, order = threading.Event(), list[str]()
    futures: list[Future[object]] = [database.submit(begin.wait)]
    futures += [database.submit(order.append, f"a{i}", owner="a") for i in range(3)]
    futures += [database.submit(order.append, f"{name}0", owner=name) for name in "bc"]
    begin.set()
    for future in futures:
        future.result()
    assert order == ["a0", "b0", "c0", "a1", "a2"]


def test_what_waits_for_a_locked_file_waits_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first transaction waits. Those that were submitted meanwhile fail at once, and later ones wait again."""

    def write() -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO t VALUES (1)")

    assert sqlite.WAIT <= 5
    monkeypatch.setattr(sqlite, "WAIT", 0.05)
    statements: list[str] = []
    database.submit(lambda: database.connected().set_trace_callback(statements.append)).result()
    with closing(sqlite3.connect(database._path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        started, begin = threading.Event(), threading.Event()
        database.submit(lambda: (started.set(), begin.wait()))
        started.wait()  # else the other owners would have their turn before the first transaction
        first, *rest = [database.submit(write), *(database.submit(write, owner=str(i)) for i in range(20))]
        begin.set()
        for future in (first, *rest):
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                future.result()
        waits = [int(one.rpartition(" ")[2]) for one in statements if "busy_timeout" in one]
        assert waits == [50, *[0] * 20]
        monkeypatch.setattr(sqlite, "WAIT", FOREVER)
        later = database.submit(write)
        assert not later.done()
        other.execute("COMMIT")
    later.result()
