"""Migrates a store of responses from an earlier version, once, in one transaction.

In the earlier version each row of the table `response` held all earlier items besides the new ones. If the input of a
row begins with the whole conversation of the response before it, the row becomes a link to that response and the new
items. Any other row stays complete, as the first turn of a conversation. The old table is dropped at the end of the
transaction, so a crash leaves the file unchanged.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from ...api.json_stream import dumped
from ...api.openai_responses import stored_items

FINISH = """
DROP TABLE response;
DROP TABLE response_total;
"""
Items = list[dict[str, Any]]


def migrate(database: sqlite3.Connection, row: int) -> None:
    """Move responses out of the old table, if it exists. `row` is the overhead of a response in bytes. Must run inside
    a transaction."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'response'").fetchone():
        return
    for (number,) in database.execute("SELECT rowid FROM response ORDER BY rowid").fetchall():
        _move(database, number, row)
    # A turn makes all turns before it as young as itself: propagate from the latest to the first.
    links = "SELECT previous, at, used FROM turn WHERE previous IS NOT NULL ORDER BY number DESC"
    younger = "UPDATE turn SET at = max(at, ?), used = max(used, ?) WHERE id = ?"
    for previous, at, used in database.execute(links).fetchall():
        database.execute(younger, (at, used, previous))
    for statement in FINISH.split(";"):
        database.execute(statement)


def _move(database: sqlite3.Connection, number: int, row: int) -> None:
    reading = "SELECT id, owner, at, body, input FROM response WHERE rowid = ?"
    key, owner, at, body, text = database.execute(reading, (number,)).fetchone()
    previous = json.loads(body).get("previous_response_id")
    earlier = _whole(database, previous, owner, number) if previous else None
    if earlier is None or (new := _rest(json.loads(text), earlier)) is None:
        previous = None
    else:
        text = dumped(new)
    size = len(body.encode()) + len(text.encode()) + row
    adding = "INSERT OR IGNORE INTO turn (id, owner, previous, at, used, size) VALUES (?, ?, ?, ?, ?, ?)"
    done = database.execute(adding, (key, owner, previous, at, number, size))
    if done.rowcount > 0:
        database.execute("INSERT INTO turn_text VALUES (?, ?, ?)", (done.lastrowid, body, text))


def _whole(database: sqlite3.Connection, key: str, owner: str, before: int) -> Items | None:
    """Return all items that an old row stands for; None if there is no such row before this one."""
    reading = "SELECT body, input FROM response WHERE id = ? AND owner = ? AND rowid < ?"
    row = database.execute(reading, (key, owner, before)).fetchone()
    if row is None:
        return None
    body, text = row
    return [*json.loads(text), *json.loads(body)["output"]]


def _rest(items: Items, earlier: Items) -> Items | None:
    """Return the items after the earlier ones; None if the items do not begin with those."""
    size = len(earlier)
    # Items that were stored again got fields that were missing at first: their status, an empty summary.
    return items[size:] if items[:size] == stored_items(earlier, "") else None
