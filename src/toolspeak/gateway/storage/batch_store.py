"""Files and batches of clients: metadata in SQLite, contents in a folder. Each belongs to one owner.

- `index.sqlite` describes every file and every batch, as clients see them.
- `files/ID` is the content of a file.
- `batches/ID/` holds the results of a batch in progress (see `batch.store`); it is deleted at the end.

Content is written before the row that describes it, so whatever has a row is complete. Content without a row, left by a
killed process, is deleted at a later start. Several processes may share the folder.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ...api import batches as api
from ...errors import Refused, UsageError
from ..config.settings import Batches
from .sqlite import Database

T = TypeVar("T")
log = logging.getLogger(__name__)

TABLES = """
CREATE TABLE IF NOT EXISTS file (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, owner TEXT NOT NULL, size INTEGER NOT NULL,
    expires REAL NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS file_owner ON file (owner, number);
CREATE INDEX IF NOT EXISTS file_expires ON file (expires);
CREATE TABLE IF NOT EXISTS batch (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, owner TEXT NOT NULL, open INTEGER NOT NULL,
    input TEXT NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS batch_owner ON batch (owner, number);
CREATE INDEX IF NOT EXISTS batch_open ON batch (number) WHERE open;
"""
INDEX = "index.sqlite"
ENDED = 1000
"""How many finished batches of a key are kept: the latest."""
FRAME = 65_536
"""The most bytes of a form without its file."""
ORPHAN = 3600.0
"""Seconds after which content without a row counts as left by a killed process."""


@dataclass(frozen=True, slots=True)
class Described:
    """A batch and its owner."""

    owner: str
    body: dict[str, Any]

    @property
    def id(self) -> str:
        return self.body["id"]

    @property
    def status(self) -> str:
        return self.body["status"]


class BatchStore:
    """Files and batches. Methods that are not async run in the store's thread: `await store.run(store.file, …)`."""

    def __init__(self, settings: Batches, *, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self.clock = clock
        self.path = Path(settings.path)
        self._database = Database(str(self.path / INDEX), TABLES, "toolspeak-batches")
        self._arriving: dict[str, tuple[str, int]] = {}
        """The owner and the bytes of each upload in progress, by its file."""

    def prepare(self) -> None:
        """Create the folder and delete leftovers of killed processes. Leaves nothing open, so that the process may
        fork. Raises UsageError."""
        try:
            for folder in (self.path, self.path / "files", self.path / "batches"):
                folder.mkdir(mode=0o700, exist_ok=True)  # readable by this user only
            with self._database.transaction() as database:
                self._sweep(database)
            self._drop_orphans()
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"the folder of batches {self.path} cannot be used: {error}") from None
        self._database.disconnect()

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """Run `work` in the thread. Raises Refused, with 503 if the disk fails."""
        with self.available():
            return await asyncio.wrap_future(self._database.submit(work, *args))

    @contextmanager
    def available(self) -> Generator[None]:
        """Use the disk inside of this context. Raises Refused with 503 if it fails."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            log.error("the store of batches fails: %s", error)
            message = "the store of files and batches is unavailable at the moment"
            raise Refused(message, status=503, code="store_unavailable", retry_after=5) from None

    def close(self) -> None:
        """End the thread, after its pending work."""
        self._database.close()

    def content(self, key: str) -> Path:
        """Return the path of a file's content."""
        return self.path / "files" / key

    def folder(self, key: str) -> Path:
        """Return the folder of a batch in progress."""
        return self.path / "batches" / key

    # ------------------------------------------------------------------ files, in the thread

    def reserve(self, owner: str, key: str, size: int | None) -> int:
        """Reserve room for the upload of a file of `size` bytes, or all that is left if the size is unknown (None),
        until `release`. Return how many bytes it may have. Raises Refused if there is no room."""
        settings, database = self.settings, self._database.connected()
        self._check_room(database, owner, 1 if size is None else max(0, size - FRAME))
        left = settings.size - self._stored(database, owner)[1]
        size = min(settings.file, left) if size is None else size
        self._arriving[key] = owner, size
        return size

    def release(self, key: str) -> None:
        """End the reservation for a file, if there is one, after the work that was submitted before."""
        self._database.submit(self._arriving.pop, key, None)

    def add_file(self, owner: str, key: str, name: str, purpose: str, size: int, age: float | None) -> dict[str, Any]:
        """Describe a file whose content is in place. Deletes the content and raises Refused if there is no room."""
        try:
            with self._database.transaction() as database:
                self._sweep(database)
                self._check_room(database, owner, size)
                return self._insert_file(database, owner, key, name, purpose, size, age)
        except BaseException:
            self.content(key).unlink(missing_ok=True)
            raise

    def file(self, owner: str, key: str) -> dict[str, Any] | None:
        """Return a file of this owner; None if it is missing, another owner's, or expired."""
        reading = "SELECT body FROM file WHERE id = ? AND owner = ? AND expires > ?"
        row = self._database.connected().execute(reading, (key, owner, self.clock())).fetchone()
        return json.loads(row[0]) if row else None

    def files(self, owner: str) -> list[dict[str, Any]]:
        """Return the files of an owner, newest first."""
        reading = "SELECT body FROM file WHERE owner = ? AND expires > ? ORDER BY number DESC"
        rows = self._database.connected().execute(reading, (owner, self.clock()))
        return [json.loads(body) for (body,) in rows]

    def drop_file(self, owner: str, key: str) -> bool:
        """Delete a file and return whether it existed. Raises Refused if a batch still reads it."""
        with self._database.transaction() as database:
            row = database.execute(
                "SELECT id FROM batch WHERE open AND input = ? AND owner = ?", (key, owner)
            ).fetchone()
            if row:
                message = (
                    f"{key} is the input of {row[0]}, which is not finished: cancel the batch, or delete the file later"
                )
                raise Refused(message, code="file_in_use")
            done = database.execute("DELETE FROM file WHERE id = ? AND owner = ?", (key, owner)).rowcount > 0
        if done:
            self.content(key).unlink(missing_ok=True)
        return done

    # ------------------------------------------------------------------ batches, in the thread

    def add_batch(self, owner: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Create a batch over a file. Raises Refused if there is no such file, or the owner has too many batches."""
        with self._database.transaction() as database:
            file = self.file(owner, fields["input_file_id"])
            if file is None:
                message = f"input_file_id: there is no file {fields['input_file_id'][:100]!r} here"
                raise Refused(message, status=404, code="not_found", param="input_file_id")
            if file["purpose"] != "batch":
                message = f"input_file_id: expected a file of the purpose batch, got one of {file['purpose']}"
                raise Refused(message, code="invalid_value", param="input_file_id")
            counting = "SELECT count(*) FROM batch WHERE open AND owner = ?"
            (count,) = database.execute(counting, (owner,)).fetchone()
            if count >= self.settings.waiting:
                message = f"this key has {count:,} unfinished batches, which is its limit: wait for one, or cancel one"
                raise Refused(message, status=429, code="too_many_batches", retry_after=60)
            self._check_room(database, owner, 0, files=2)
            body = api.write_batch(f"batch_{secrets.token_hex(12)}", fields, int(self.clock()))
            if age := fields.get("output_expires_after"):
                body["output_expires_after"] = age
            adding = "INSERT INTO batch (id, owner, open, input, body) VALUES (?, ?, 1, ?, ?)"
            database.execute(adding, (body["id"], owner, file["id"], json.dumps(body)))
        return body

    def batch(self, owner: str, key: str) -> dict[str, Any] | None:
        """Return a batch of this owner; None if it is missing or another owner's."""
        reading = "SELECT body FROM batch WHERE id = ? AND owner = ?"
        row = self._database.connected().execute(reading, (key, owner)).fetchone()
        return json.loads(row[0]) if row else None

    def batches(self, owner: str) -> list[dict[str, Any]]:
        """Return the batches of an owner, newest first."""
        reading = "SELECT body FROM batch WHERE owner = ? ORDER BY number DESC"
        return [json.loads(body) for (body,) in self._database.connected().execute(reading, (owner,))]

    def unfinished(self) -> list[Described]:
        """Return all unfinished batches, oldest first."""
        rows = self._database.connected().execute("SELECT owner, body FROM batch WHERE open ORDER BY number")
        return [Described(owner, json.loads(body)) for owner, body in rows]

    def cancel(self, owner: str, key: str) -> dict[str, Any] | None:
        """Cancel a batch and return it; None if there is none. Raises Refused for a finished one."""
        with self._database.transaction() as database:
            body = self.batch(owner, key)
            if body is not None and body["status"] not in api.OPEN:
                message = f"{key} cannot be cancelled: it is {body['status']}"
                raise Refused(message, code="invalid_value")
            if body is not None and body["status"] != "cancelling":
                body.update(status="cancelling", cancelling_at=int(self.clock()))
                self._write_batch(database, body)
        return body

    def advance(self, key: str, before: Sequence[str], **fields: Any) -> dict[str, Any]:
        """Change a batch if its status is one of `before`, and return it as it then is."""
        with self._database.transaction() as database:
            body = self._any_batch(database, key)
            if body["status"] in before:
                body.update(fields)
                self._write_batch(database, body)
        return body

    def finish(self, batch: Described, files: dict[str, tuple[str, int]], **fields: Any) -> None:
        """Finish a batch. `files` maps field names to the id and size of its files, whose content is in place."""
        age: dict[str, Any] = batch.body.get("output_expires_after") or {}
        with self._database.transaction() as database:
            body = self._any_batch(database, batch.id)
            for field, (key, size) in files.items():
                name = f"{batch.id}_{field.partition('_')[0]}.jsonl"
                self._insert_file(database, batch.owner, key, name, "batch_output", size, age.get("seconds"))
            body.update(fields)
            self._write_batch(database, body)
            deleting = "DELETE FROM batch WHERE owner = ? AND NOT open AND number NOT IN (SELECT number FROM batch "
            deleting += "WHERE owner = ? AND NOT open ORDER BY number DESC LIMIT ?)"
            database.execute(deleting, (batch.owner, batch.owner, ENDED))

    # ------------------------------------------------------------------ inside

    def _insert_file(
        self, database: sqlite3.Connection, owner: str, key: str, name: str, purpose: str, size: int, age: float | None
    ) -> dict[str, Any]:
        now = self.clock()
        expires = now + (age or self.settings.age)
        body = api.write_file(key, name, purpose, size, int(now), int(expires))
        adding = "INSERT INTO file (id, owner, size, expires, body) VALUES (?, ?, ?, ?, ?)"
        database.execute(adding, (key, owner, size, expires, json.dumps(body)))
        return body

    def _stored(self, database: sqlite3.Connection, owner: str) -> tuple[int, int]:
        """Return how many files an owner has, and the bytes of these and of the uploads in progress."""
        counting = "SELECT count(*), coalesce(sum(size), 0) FROM file WHERE owner = ? AND expires > ?"
        count, total = database.execute(counting, (owner, self.clock())).fetchone()
        return count, total + sum(size for one, size in self._arriving.values() if one == owner)

    def _check_room(self, database: sqlite3.Connection, owner: str, size: int, files: int = 1) -> None:
        count, total = self._stored(database, owner)
        if count + files > self.settings.files:
            message = f"this key has {count:,} files of at most {self.settings.files:,}: delete some"
            raise Refused(message, code="too_many_files")
        if total + size > self.settings.size:
            message = (
                f"the files of this key, with uploads in progress, hold {total:,} bytes of at most"
                f" {self.settings.size:,}: delete some"
            )
            raise Refused(message, code="storage_full")

    def _any_batch(self, database: sqlite3.Connection, key: str) -> dict[str, Any]:
        (body,) = database.execute("SELECT body FROM batch WHERE id = ?", (key,)).fetchone()
        return json.loads(body)

    def _write_batch(self, database: sqlite3.Connection, body: dict[str, Any]) -> None:
        row = (json.dumps(body), body["status"] in api.OPEN, body["id"])
        database.execute("UPDATE batch SET body = ?, open = ? WHERE id = ?", row)

    def _sweep(self, database: sqlite3.Connection) -> None:
        """Delete expired files that no batch reads."""
        old = "expires <= ? AND id NOT IN (SELECT input FROM batch WHERE open)"
        for (key,) in database.execute(f"SELECT id FROM file WHERE {old}", (self.clock(),)).fetchall():  # noqa: S608
            self.content(key).unlink(missing_ok=True)
            database.execute("DELETE FROM file WHERE id = ?", (key,))

    def _drop_orphans(self) -> None:
        database = self._database.connected()
        for path in (self.path / "files").iterdir():
            known = database.execute("SELECT 1 FROM file WHERE id = ?", (path.name,)).fetchone()
            if not known and path.stat().st_mtime < time.time() - ORPHAN:
                path.unlink(missing_ok=True)
        for path in (self.path / "batches").iterdir():
            if not database.execute("SELECT 1 FROM batch WHERE open AND id = ?", (path.name,)).fetchone():
                shutil.rmtree(path, ignore_errors=True)
