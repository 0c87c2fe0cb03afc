"""Responses in SQLite. Each belongs to one owner; the oldest are dropped when they expire or there are too many.

A response is stored with the new items of its request and a link to the response that it continues, so a conversation
of N turns takes the bytes of N turns. A conversation is put together when it is read: turn by turn along the links,
within a limit of bytes and items, in the store's thread. References to items stay references, and are resolved when
they are read. So each text is in one row only, and deleting that row removes it.

No link leads to a response that was dropped for room or age. Whenever a response is stored, the responses read for it
become as young as it is (`at`, `used`), and among equally old ones the latest is dropped first. So a broken link means
that somebody deleted the response (docs/decisions/025-deleting-a-response.md).

Several processes may share the file.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ...api.json_stream import dumped
from ...api.openai_responses import is_reference
from ...errors import Refused, UsageError
from ...schema import nonblocking_json
from ..config.settings import StoreSettings
from .response_migration import migrate
from .sqlite import Database

T = TypeVar("T")
Items = list[dict[str, Any]]

log = logging.getLogger(__name__)

TABLES = """
PRAGMA secure_delete = ON;  -- what is dropped is wiped
CREATE TABLE IF NOT EXISTS turn (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, previous TEXT, at REAL NOT NULL,
    used INTEGER NOT NULL, size INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS turn_text (number INTEGER PRIMARY KEY, body TEXT NOT NULL, input TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS turn_at ON turn (at);
CREATE INDEX IF NOT EXISTS turn_used ON turn (used, number DESC, size);  -- a clock may stand still or go back
CREATE TABLE IF NOT EXISTS turn_total (one INTEGER PRIMARY KEY CHECK (one = 1), size INTEGER NOT NULL);
INSERT OR IGNORE INTO turn_total VALUES (1, 0);
CREATE TRIGGER IF NOT EXISTS turn_added AFTER INSERT ON turn BEGIN
    UPDATE turn_total SET size = size + new.size;
END;
CREATE TRIGGER IF NOT EXISTS turn_dropped AFTER DELETE ON turn BEGIN
    DELETE FROM turn_text WHERE number = old.number;
    UPDATE turn_total SET size = size - old.size;
END;
"""
ROW = 512
"""Bytes of overhead of a response, besides its text."""
MANY = 10_000
"""The most items of a conversation, as many as of a body."""


@dataclass(frozen=True, slots=True)
class StoredItems:
    """What a request continues: the items of all earlier turns, and the items that it refers to, by id.

    `turns` are the ids of all responses that were read for it, `size` their stored bytes.
    """

    items: Items = field(default_factory=list[dict[str, Any]])
    named: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    turns: tuple[str, ...] = ()
    size: int = 0


class ResponseStore:
    """Stores, finds and drops responses. `clock` returns seconds since 1970. Raises Refused (503) if the file fails."""

    def __init__(self, settings: StoreSettings, *, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self._clock = clock
        self._database = Database(settings.path, TABLES, "toolspeak-store")

    def prepare(self) -> None:
        """Create the file and its tables. Leaves nothing open, so that the process may fork. Raises UsageError."""
        try:
            with suppress(FileExistsError):  # readable by this user only; SQLite gives its other files the same mode
                os.close(os.open(self.settings.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with self._database.transaction() as database:
                migrate(database, ROW)
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"the store {self.settings.path} cannot be used: {error}") from None
        self._database.disconnect()

    async def save(
        self, owner: str, body: dict[str, Any], new: Items | Callable[[], Items], earlier: StoredItems | None = None
    ) -> None:
        """Store a response under its id, with the new items of its request and the conversation that it continues.

        `new` is called, and the JSON is written, in the thread. Raises Refused (413).
        """
        await self._run(self._save, owner, body, new, earlier or StoredItems())

    async def body(self, owner: str, key: str) -> bytes | None:
        """Return a response of this owner as JSON; None if it is missing, another owner's, or expired."""
        return await self._run(self._body, owner, key)

    async def inputs(self, owner: str, key: str) -> StoredItems | None:
        """Return the items that a response answers, as far back as they are stored; None if it is missing."""
        return await self._run(self._inputs, owner, key)

    async def conversation(self, owner: str, previous: str, names: Sequence[str], most: int) -> StoredItems:
        """Return what a request continues: the turns up to `previous` ("": none), and the items with these names, if
        stored.

        Raises Refused if a turn is missing, or if it is more than `most` bytes or too many items.
        """
        return await self._run(self._conversation, owner, previous, names, most)

    async def drop(self, owner: str, key: str) -> bool:
        """Delete a response. Return whether it existed."""
        return await self._run(self._drop, owner, key)

    def close(self) -> None:
        """End the thread, after its pending work."""
        self._database.close()

    async def _run(self, work: Callable[..., T], owner: str, *args: object) -> T:
        try:
            return await asyncio.wrap_future(self._database.submit(work, owner, *args, owner=owner))
        except sqlite3.Error as error:
            log.error("the store of responses fails: %s", error)
            message = "the store of responses is unavailable at the moment; store: false does without it"
            raise Refused(message, status=503, code="store_unavailable", retry_after=5) from None

    # ------------------------------------------------------------------ in the thread

    def _save(
        self, owner: str, response: dict[str, Any], new: Items | Callable[[], Items], earlier: StoredItems
    ) -> None:
        key = str(response["id"])
        body, texts = dumped(response), dumped(new() if callable(new) else new)
        size = len(body.encode()) + len(texts.encode()) + ROW
        if size + earlier.size > self.settings.size:
            message = f"a conversation of {size + earlier.size:,} bytes is larger than the whole store"
            raise Refused(f"{message}; store: false does without it", status=413, code="store_too_small")
        previous = response.get("previous_response_id")
        with self._database.transaction() as database:
            now = self._clock()
            database.execute("DELETE FROM turn WHERE at < ?", (now - self.settings.age,))
            (used,) = database.execute("SELECT coalesce(max(used), 0) + 1 FROM turn").fetchone()
            touching = "UPDATE turn SET at = max(at, ?), used = ? WHERE id = ? AND owner = ?"
            database.executemany(touching, ((now, used, turn, owner) for turn in earlier.turns))
            (total,) = database.execute("SELECT size FROM turn_total").fetchone()
            _make_room(database, total + size - self.settings.size)
            adding = "INSERT INTO turn (id, owner, previous, at, used, size) VALUES (?, ?, ?, ?, ?, ?)"
            number = database.execute(adding, (key, owner, previous, now, used, size)).lastrowid
            database.execute("INSERT INTO turn_text VALUES (?, ?, ?)", (number, body, texts))

    def _reading(self, owner: str, most: int | None = None) -> _TurnReader:
        return _TurnReader(self._database.connected(), owner, self._clock() - self.settings.age, most)

    def _body(self, owner: str, key: str) -> bytes | None:
        text = self._reading(owner).text(key)
        return text.body.encode() if text else None

    def _inputs(self, owner: str, key: str) -> StoredItems | None:
        reading = self._reading(owner)
        turn = reading.turn(key)
        if turn is None:
            return None
        earlier = reading.chain(turn.previous, whole=False) if turn.previous else []
        items = reading.resolved([*earlier, *turn.input])
        return StoredItems(items, turns=tuple(reading.turns), size=reading.size)

    def _conversation(self, owner: str, previous: str, names: Sequence[str], most: int) -> StoredItems:
        reading = self._reading(owner, most)
        items = reading.resolved(reading.chain(previous)) if previous else []
        if missing := next((item for item in items if is_reference(item)), None):
            message = (
                f"previous_response_id: the conversation contains the item {missing['id'][:100]!r}, which was deleted"
            )
            raise Refused(message, code="previous_response_not_found", param="previous_response_id")
        named = {name: item for name in dict.fromkeys(names) if (item := reading.item(name)) is not None}
        return StoredItems(items, named, tuple(reading.turns), reading.size)

    def _drop(self, owner: str, key: str) -> bool:
        with self._database.transaction() as database:
            fresh = self._clock() - self.settings.age
            done = database.execute("DELETE FROM turn WHERE id = ? AND owner = ? AND at >= ?", (key, owner, fresh))
            deleted = done.rowcount > 0
        if deleted:  # the write-ahead log still has the deleted data; if others read it now, it is truncated later
            database.execute("PRAGMA busy_timeout = 50")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return deleted


def _make_room(database: sqlite3.Connection, wanted: int) -> None:
    """Drop the least recently used turns until `wanted` bytes are free; within a conversation the latest turn first."""
    gone: list[tuple[int]] = []
    for number, size in database.execute("SELECT number, size FROM turn ORDER BY used, number DESC"):
        if wanted <= 0:
            break
        gone.append((number,))
        wanted -= size
    database.executemany("DELETE FROM turn WHERE number = ?", gone)


# ------------------------------------------------------------------ turns, put together


@dataclass(frozen=True, slots=True)
class _TurnText:
    previous: str | None
    body: str
    input: str


@dataclass(frozen=True, slots=True)
class _Saved:
    previous: str | None
    input: Items
    output: Items


class _TurnReader:
    """Reads turns of one owner, each once, `most` bytes in all (None: no limit)."""

    def __init__(self, database: sqlite3.Connection, owner: str, fresh: float, most: int | None) -> None:
        self._database = database
        self._owner = owner
        self._fresh = fresh
        self._most = most
        self.turns: dict[str, _Saved] = {}
        self.size = 0
        self._items: dict[str, dict[str, dict[str, Any]]] = {}  # by turn, then by their ids

    def text(self, key: str) -> _TurnText | None:
        """Return a turn as it is stored. Its size is checked before its text is read."""
        row = self._database.execute(
            "SELECT number, previous, size FROM turn WHERE id = ? AND owner = ? AND at >= ?",
            (key, self._owner, self._fresh),
        ).fetchone()
        if row is None:
            return None
        number, previous, size = row
        self.size += size
        if self._most is not None and self.size > self._most:
            raise too_long()
        texts = self._database.execute("SELECT body, input FROM turn_text WHERE number = ?", (number,)).fetchone()
        return _TurnText(previous, *texts) if texts else None  # None if another process has just dropped it

    def turn(self, key: str) -> _Saved | None:
        """Return a turn; None if it is missing."""
        if key not in self.turns and (text := self.text(key)):
            self.turns[key] = _Saved(text.previous, _loads(text.input), _loads(text.body)["output"])
        return self.turns.get(key)

    def chain(self, last: str, *, whole: bool = True) -> Items:
        """Return the items of a turn and of all turns before it, in order. With `whole`, raises Refused if one is
        missing."""
        turns: list[_Saved] = []
        key: str | None = last
        count = 0
        while key is not None:
            turn = self.turn(key)
            if turn is None:
                if whole:
                    raise _missing(last, key)
                break
            count += len(turn.input) + len(turn.output)
            if count > MANY or len(turns) > MANY:
                raise too_long()
            turns.append(turn)
            key = turn.previous
        return [item for turn in reversed(turns) for item in (*turn.input, *turn.output)]

    def resolved(self, items: Items) -> Items:
        """Return the items, with references replaced by the stored items."""
        return [(self.item(str(item["id"])) or item) if is_reference(item) else item for item in items]

    def item(self, name: str) -> dict[str, Any] | None:
        """Return an item by its id, which contains the id of its response."""
        key = f"resp_{name.rpartition('_')[0].rpartition('_')[2]}"
        if key not in self._items:
            turn = self.turn(key)
            items = [*turn.input, *turn.output] if turn else []
            self._items[key] = {str(item.get("id")): item for item in items if not is_reference(item)}
        return self._items[key].get(name)


def too_long() -> Refused:
    """Return the refusal of a conversation that exceeds the limits."""
    message = "previous_response_id: the conversation has become too long; start another one"
    return Refused(message, code="conversation_too_long", param="previous_response_id")


def _missing(last: str, key: str) -> Refused:
    message = f"previous_response_id: there is no response {last[:100]!r} here"
    if key != last:
        message = (
            f"previous_response_id: {last[:100]!r} continues {key[:100]!r}, which was deleted: send the conversation "
            "as input"
        )
    return Refused(message, code="previous_response_not_found", param="previous_response_id")


def _loads(text: str) -> Any:
    """Parse what was stored, which was checked when it came."""
    return nonblocking_json.loads(text, values=len(text))
