"""The directory of a batch. No row is lost or written twice, whenever the process dies.

- `_job.json` says which job the directory belongs to: the fingerprint and its parts. Another job is refused, unless the
  first one has written nothing. Readers of Parquet skip files whose names start with an underscore or a dot, so the
  directory is a valid data set.
- `.journal.sqlite3` has the id of every row that was read, and the record of every finished row until its shard is
  written; the space is then reused. A record is committed before its slot is given to another row, so a kill loses at
  most the rows in progress.
- `part-00000.jsonl` and so on are the shards. Each is written under another name, synced and renamed, so it is complete
  or missing. A row belongs to the shard of its place in the input (`place // size`), whenever it is done. So shards are
  in the order of the input, and the same job writes the same shards, however often it was killed.
- `.lock` is held while a process writes.

Writing a shard merges: records in the journal replace rows with the same id in the existing shard. So a kill between
the renaming and the next commit does no harm, and `--retry-errors` only has to write records again.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ..errors import UsageError
from ..files import locked, replacing
from ..schema.phrases import beginning
from .formats import Format, output_format
from .row import OutputRow, json_text

MANIFEST, JOURNAL, LOCK = "_job.json", ".journal.sqlite3", ".lock"
WAITING, DONE, FAILED, UNREADABLE, BEGUN = range(5)
"""The states of a row. UNREADABLE: never sent to a model. BEGUN: in progress, with calls that may have run."""
TABLE = """
CREATE TABLE IF NOT EXISTS rows (place INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, state INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS records (place INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS begun (place INTEGER PRIMARY KEY, detail TEXT NOT NULL);
"""
LOOKED_UP = 64
"""Ids that are looked up in one query."""
RECORDS = "SELECT {} FROM rows LEFT JOIN records USING (place) WHERE place BETWEEN ? AND ? AND state IN (1, 2, 3) ORDER BY place"
UNWRITTEN = "SELECT DISTINCT place / ? FROM records"
"""The shards with records in the journal."""


class Store:
    """The directory of one job, open for writing. Created by `open_store`."""

    def __init__(self, path: Path, form: Format, size: int) -> None:
        self.path, self.form, self.size = path, form, size
        self.journal = _connect(path / JOURNAL)
        self._unreadable_stay = False

    # -------------------------------------------------------------- rows

    def register(self, rows: Sequence[tuple[int, str]]) -> list[tuple[int, int]]:
        """Return the place and state of each row, which is given by a place and an id.

        A new row gets the given place, or the next free one if another row has it.
        """
        known: dict[str, tuple[int, int]] = {}
        for first in range(0, len(rows), LOOKED_UP):
            self._register(rows[first : first + LOOKED_UP], known)
        return [known[key] for _, key in rows]

    def _register(self, rows: Sequence[tuple[int, str]], known: dict[str, tuple[int, int]]) -> None:
        keys = [key for _, key in rows]
        query = f"SELECT id, place, state FROM rows WHERE id IN ({', '.join('?' * len(keys))})"  # noqa: S608
        known.update((key, (place, state)) for key, place, state in self.journal.execute(query, keys))
        new: list[tuple[int, str]] = []
        for place, key in rows:
            if key not in known:
                known[key] = (place, WAITING)
                new.append((place, key))
        add = "INSERT OR IGNORE INTO rows (place, id) VALUES (?, ?)"
        if new and self.journal.executemany(add, new).rowcount < len(new):  # the place was taken
            for place, key in new:
                if self.journal.execute("SELECT id FROM rows WHERE place = ?", (place,)).fetchone() != (key,):
                    known[key] = (self._move(place, key), WAITING)

    def _move(self, place: int, key: str) -> int:
        """Return the place of a new row whose own is taken, by an unreadable line or because the input has changed."""
        (state,) = self.journal.execute("SELECT state FROM rows WHERE place = ?", (place,)).fetchone()
        if state == UNREADABLE and not self._unreadable_stay:
            self.journal.execute("UPDATE rows SET id = ?, state = 0 WHERE place = ?", (key, place))
            self.journal.execute("DELETE FROM records WHERE place = ?", (place,))
            return place
        (last,) = self.journal.execute("SELECT max(place) FROM rows").fetchone()
        self.journal.execute("INSERT INTO rows (place, id) VALUES (?, ?)", (last + 1, key))
        return last + 1

    def state(self, key: str) -> int | None:
        """Return the state of the row with an id, None if there is none."""
        row = self.journal.execute("SELECT state FROM rows WHERE id = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def wait(self, place: int) -> None:
        """Forget the error of an unreadable row, which can be read now."""
        self.journal.execute("UPDATE rows SET state = ? WHERE place = ?", (WAITING, place))
        self.journal.execute("DELETE FROM records WHERE place = ?", (place,))

    def unreadable(self, prefix: str) -> list[tuple[int, str]]:
        """Return the places and ids of unreadable rows whose ids start with a prefix."""
        query = "SELECT place, id FROM rows WHERE state = ? AND substr(id, 1, ?) = ?"
        return self.journal.execute(query, (UNREADABLE, len(prefix), prefix)).fetchall()

    def forget(self, places: Sequence[int]) -> None:
        """Remove unreadable rows that the input no longer has. The others keep their places from now on."""
        self._unreadable_stay = True
        for table in ("rows", "records"):
            self.journal.executemany(f"DELETE FROM {table} WHERE place = ?", [(place,) for place in places])  # noqa: S608
        self.journal.commit()
        for part in sorted({self.part(place) for place in places}):
            if shard(self.path, part, self.form).exists():
                self.write_part(part)

    def begin(self, place: int, detail: str) -> None:
        """Note on disk that a row starts calls that must not be repeated unnoticed."""
        self.journal.execute("UPDATE rows SET state = ? WHERE place = ?", (BEGUN, place))
        self.journal.execute("INSERT OR REPLACE INTO begun VALUES (?, ?)", (place, detail))
        self.journal.commit()

    def begun(self, place: int) -> str:
        """Return what `begin` noted about a row."""
        (detail,) = self.journal.execute("SELECT detail FROM begun WHERE place = ?", (place,)).fetchone()
        return detail

    def add(self, place: int, record: OutputRow, state: int | None = None) -> None:
        """Add a record; it is on disk after `commit`."""
        if state is None:
            state = DONE if record.error is None else FAILED
        text = self.form.encode(record)
        self.journal.execute("UPDATE rows SET state = ? WHERE place = ?", (state, place))
        self.journal.execute("INSERT OR REPLACE INTO records VALUES (?, ?)", (place, text))

    def commit(self) -> None:
        """Write added records to disk. Raises OSError if that fails."""
        self.journal.commit()

    # -------------------------------------------------------------- shards

    def part(self, place: int) -> int:
        """Return the number of the shard for a place."""
        return place // self.size

    def write_part(self, part: int) -> None:
        """Write a shard with its finished rows, and delete their records from the journal."""
        path = shard(self.path, part, self.form)
        low, high = part * self.size, (part + 1) * self.size - 1
        with replacing(path) as file:
            self.form.write(file, merged(self.journal, self.path, part, self.size, self.form))
            file.flush()
            os.fsync(file.fileno())
        _sync_directory(self.path)
        for table in ("records", "begun"):
            ended = "(SELECT place FROM rows WHERE place BETWEEN ? AND ? AND state IN (1, 2, 3))"
            self.journal.execute(f"DELETE FROM {table} WHERE place IN {ended}", (low, high))  # noqa: S608
        self.journal.commit()

    def write_rest(self) -> None:
        """Write every shard with records in the journal."""
        for (part,) in self.journal.execute(UNWRITTEN, (self.size,)).fetchall():
            self.write_part(part)

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()


@contextlib.contextmanager
def open_store(path: Path, parts: Mapping[str, Any], fingerprint: str, form: Format, size: int) -> Generator[Store]:
    """Yield the directory of a job, created if necessary.

    Raises UsageError if it belongs to another job, contains other files, or is in use by another process.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be created: {error.strerror or error}") from None
    with locked(path / LOCK, f"another process is writing to {path}: wait for it, or use another directory"):
        _same_job(path, {"fingerprint": fingerprint, "format": form.name, "shard": size, "job": dict(parts)})
        store = Store(path, form, size)
        try:
            yield store
        finally:
            store.close()


def shard(path: Path, part: int, form: Format) -> Path:
    """Return the file of a shard."""
    return path / f"part-{part:05}{form.suffix}"


def merged(journal: sqlite3.Connection | None, path: Path, part: int, size: int, form: Format) -> Iterator[str]:
    """Yield the lines of a shard in order; records in the journal replace those in the file."""
    file = shard(path, part, form)
    lines = form.read(file) if file.exists() else iter(())
    if journal is None:
        yield from lines
        return
    places = (part * size, (part + 1) * size - 1)
    rows: list[tuple[str, int]] = journal.execute(RECORDS.format("id, record IS NULL"), places).fetchall()
    in_file = {key for key, written in rows if written}
    left = (line for line in lines if form.key(line) in in_file)
    for key, record in journal.execute(RECORDS.format("id, record"), places):
        if record is None:
            record = next(left, None)
            if record is None or form.key(record) != key:
                raise UsageError(f"{file} has no row {key!r} at its place: the file was changed")
        yield record


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the finished rows in a job's directory, in the order of the input. Raises UsageError if it has none.

    Another process may be writing to the directory meanwhile.
    """
    manifest = read_manifest(path)
    form, size = output_format(manifest["format"]), manifest["shard"]
    parts = {int(file.stem.removeprefix("part-")) for file in path.glob(f"part-*{form.suffix}")}
    journal = _connect(path / JOURNAL, read_only=True) if (path / JOURNAL).exists() else None
    try:
        if journal is not None and not journal.execute("SELECT 1 FROM sqlite_master WHERE name = 'records'").fetchone():
            journal.close()
            journal = None
        if journal is not None:
            parts |= {part for (part,) in journal.execute(UNWRITTEN, (size,))}
        for part in sorted(parts):
            yield from map(form.decode, merged(journal, path, part, size, form))
    finally:
        if journal is not None:
            journal.close()


# ------------------------------------------------------------------ inside


def _connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    mode = "?mode=ro" if read_only else ""
    journal = sqlite3.connect(f"{path.absolute().as_uri()}{mode}", uri=True, timeout=5, check_same_thread=False)
    if not read_only:
        journal.execute("PRAGMA journal_mode = WAL")
        journal.execute("PRAGMA synchronous = NORMAL")
        journal.executescript(TABLE)
        if "record" in [column for _, column, *_ in journal.execute("PRAGMA table_info(rows)")]:
            journal.close()
            raise UsageError(f"{path.parent} was started by another version of toolspeak: use another directory")
    return journal


def _sync_directory(path: Path) -> None:
    """Make a renaming durable. Not every file system supports it."""
    with contextlib.suppress(OSError):
        directory = os.open(path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the content of `_job.json`. Raises UsageError if there is none."""
    there = path / MANIFEST
    try:
        return json.loads(there.read_text("utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path} contains no batch: it has no {MANIFEST}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{there} cannot be read: {error}") from None


def _same_job(path: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest, or compare it. Raises UsageError with everything that changed."""
    if not (path / MANIFEST).exists():
        if others := sorted(one.name for one in path.iterdir() if not one.name.startswith((LOCK, f".{MANIFEST}"))):
            raise UsageError(f"{path} contains other files ({', '.join(others[:3])}): use another directory")
        _write_manifest(path, manifest)
        return
    before = read_manifest(path)
    if changes := [*_changes(before, manifest, ("format", "shard")), *_changes(before["job"], manifest["job"])]:
        if not _is_unused(path):
            raise UsageError(f"{path} belongs to another job: {'; '.join(changes)}. Use another directory")
        for name in (JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm"):
            (path / name).unlink(missing_ok=True)
        _write_manifest(path, manifest)


def _is_unused(path: Path) -> bool:
    """Whether the job of a directory has written nothing: it was refused, and is now started with other options."""
    if any(not one.name.startswith((MANIFEST, JOURNAL, LOCK)) for one in path.iterdir()):
        return False
    if not (path / JOURNAL).exists():
        return True
    with contextlib.closing(_connect(path / JOURNAL)) as journal:
        return journal.execute("SELECT 1 FROM rows WHERE state != ? LIMIT 1", (WAITING,)).fetchone() is None


def _write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    with replacing(path / MANIFEST) as file:
        file.write((json.dumps(manifest, ensure_ascii=False, indent=1, default=str) + "\n").encode())


def _changes(before: Mapping[str, Any], now: Mapping[str, Any], names: Iterable[str] | None = None) -> Iterator[str]:
    """Yield the differences as text."""
    for name in names or dict.fromkeys((*before, *now)):
        old, new = before.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from (f"{name}: {change}" for change in _changes(cast("Any", old), cast("Any", new)))
        elif old != new:
            yield f"{name} {beginning(json_text(old), 60)} there, {beginning(json_text(new), 60)} now"
