"""The directory of a batch: nothing is lost and nothing is written twice, whenever the process dies.

- `_job.json` says which job the directory belongs to: the fingerprint and its parts. Another job is refused, unless nothing came
  of that one. Readers of Parquet leave files aside whose names begin so: the directory is a data set.
- `.journal.sqlite3` knows the id of every row that was read, and holds the record of every row that is done, from the
  moment it is done until the shard that it belongs to is written; its room is then used for others. A record is committed before its slot is given to another
  row, so that a kill loses at most the rows that were under way.
- `part-00000.jsonl` and so on are the shards: each is written beside its name, synced and renamed, so that it is whole or not
  there. A row belongs to the shard of its place in the input (`place // size`), whenever it is done: shards are in the order
  of the input, and the same job writes the same shards however often it was killed.
- `.lock` is held while a process writes.

Writing a shard merges: records of the journal stand before rows of the same id in the shard that was there. So a kill
between the renaming and the next commit does no harm, and `--retry-errors` only has to write records again.
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
from .row import Record, json_text

MANIFEST, JOURNAL, LOCK = "_job.json", ".journal.sqlite3", ".lock"
WAITING, DONE, FAILED, UNREADABLE, BEGUN = range(5)
"""The states of a row. UNREADABLE never reached a model; BEGUN was under way with calls that may have run."""
TABLE = """
CREATE TABLE IF NOT EXISTS rows (place INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, state INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS records (place INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS begun (place INTEGER PRIMARY KEY, detail TEXT NOT NULL);
"""
LOOKED_UP = 64
"""Ids that are looked up at once."""
RECORDS = "SELECT {} FROM rows LEFT JOIN records USING (place) WHERE place BETWEEN ? AND ? AND state IN (1, 2, 3) ORDER BY place"
UNWRITTEN = "SELECT DISTINCT place / ? FROM records"
"""The shards of which the journal holds records."""


class Store:
    """The directory of one job, open for writing. Made by `open_store`."""

    def __init__(self, path: Path, form: Format, size: int) -> None:
        self.path, self.form, self.size = path, form, size
        self.journal = _connect(path / JOURNAL)

    # -------------------------------------------------------------- rows

    def register(self, rows: Sequence[tuple[int, str]]) -> list[tuple[int, int]]:
        """The place and the state of each row, given by a place and an id, which is new or known from before.

        A new row gets the place that is given, or the next free one where another row has it.
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
        if new and self.journal.executemany(add, new).rowcount < len(new):  # a place was taken
            for place, key in new:
                if self.journal.execute("SELECT id FROM rows WHERE place = ?", (place,)).fetchone() != (key,):
                    known[key] = (self._move(place, key), WAITING)

    def _move(self, place: int, key: str) -> int:
        """The place of a new row whose own is taken: it was an unreadable line's, or the input has changed."""
        (state,) = self.journal.execute("SELECT state FROM rows WHERE place = ?", (place,)).fetchone()
        if state == UNREADABLE:
            self.journal.execute("UPDATE rows SET id = ?, state = 0 WHERE place = ?", (key, place))
            self.journal.execute("DELETE FROM records WHERE place = ?", (place,))
            return place
        (last,) = self.journal.execute("SELECT max(place) FROM rows").fetchone()
        self.journal.execute("INSERT INTO rows (place, id) VALUES (?, ?)", (last + 1, key))
        return last + 1

    def begin(self, place: int, detail: str) -> None:
        """Notes, on the disk, that a row begins something that must not be done twice without anybody knowing."""
        self.journal.execute("UPDATE rows SET state = ? WHERE place = ?", (BEGUN, place))
        self.journal.execute("INSERT OR REPLACE INTO begun VALUES (?, ?)", (place, detail))
        self.journal.commit()

    def begun(self, place: int) -> str:
        """What `begin` noted of a row."""
        (detail,) = self.journal.execute("SELECT detail FROM begun WHERE place = ?", (place,)).fetchone()
        return detail

    def add(self, place: int, record: Record, state: int | None = None) -> None:
        """Holds a record; it is on the disk after `commit`."""
        if state is None:
            state = DONE if record.error is None else FAILED
        text = self.form.encode(record)
        self.journal.execute("UPDATE rows SET state = ? WHERE place = ?", (state, place))
        self.journal.execute("INSERT OR REPLACE INTO records VALUES (?, ?)", (place, text))

    def commit(self) -> None:
        """Writes what was added to the disk. Raises OSError where that cannot be done."""
        self.journal.commit()

    # -------------------------------------------------------------- shards

    def part(self, place: int) -> int:
        """The number of the shard that a row at this place belongs to."""
        return place // self.size

    def write_part(self, part: int) -> None:
        """Writes a shard with the rows of it that are done, and lets go of their records."""
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
        """Writes every shard whose records still stand in the journal."""
        for (part,) in self.journal.execute(UNWRITTEN, (self.size,)).fetchall():
            self.write_part(part)

    def close(self) -> None:
        """Closes the journal."""
        self.journal.close()


@contextlib.contextmanager
def open_store(path: Path, parts: Mapping[str, Any], fingerprint: str, form: Format, size: int) -> Generator[Store]:
    """The directory of a job, made where it does not exist.

    Raises UsageError where it belongs to another job, holds other files, or is in use by another process.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be made: {error.strerror or error}") from None
    with locked(path / LOCK, f"another process is writing to {path}: wait for it, or give another directory"):
        _same_job(path, {"fingerprint": fingerprint, "format": form.name, "shard": size, "job": dict(parts)})
        store = Store(path, form, size)
        try:
            yield store
        finally:
            store.close()


def shard(path: Path, part: int, form: Format) -> Path:
    """The file of a shard."""
    return path / f"part-{part:05}{form.suffix}"


def merged(journal: sqlite3.Connection | None, path: Path, part: int, size: int, form: Format) -> Iterator[str]:
    """The lines of a shard in the order of their places, records of the journal in the place of the file's."""
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
                raise UsageError(f"{file} does not hold the row {key!r} where it was written: it was changed")
        yield record


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a job's directory that are done, in the order of the input. Raises UsageError where it holds none.

    A process may be writing to the directory meanwhile.
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
            raise UsageError(f"{path.parent} was begun by another version of toolspeak: give another directory")
    return journal


def _sync_directory(path: Path) -> None:
    """Makes a renaming last; not every file system has a way to."""
    with contextlib.suppress(OSError):
        directory = os.open(path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def read_manifest(path: Path) -> dict[str, Any]:
    """What `_job.json` holds. Raises UsageError where there is none."""
    there = path / MANIFEST
    try:
        return json.loads(there.read_text("utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path} holds no batch: there is no {MANIFEST} in it") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{there} cannot be read: {error}") from None


def _same_job(path: Path, manifest: Mapping[str, Any]) -> None:
    """Writes what the directory is for, or compares. Raises UsageError with all that changed."""
    if not (path / MANIFEST).exists():
        if others := sorted(one.name for one in path.iterdir() if not one.name.startswith((LOCK, f".{MANIFEST}"))):
            raise UsageError(f"{path} holds other files ({', '.join(others[:3])}): give another directory")
        _write_manifest(path, manifest)
        return
    before = read_manifest(path)
    if changes := [*_changes(before, manifest, ("format", "shard")), *_changes(before["job"], manifest["job"])]:
        if not _is_unused(path):
            raise UsageError(f"{path} was begun as another job: {'; '.join(changes)}. Give another directory")
        for name in (JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm"):
            (path / name).unlink(missing_ok=True)
        _write_manifest(path, manifest)


def _is_unused(path: Path) -> bool:
    """Whether nothing came of the job of a directory: it was refused, and what was wrong with it has been put right since."""
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
    """What differs, in words."""
    for name in names or dict.fromkeys((*before, *now)):
        old, new = before.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from (f"{name}: {change}" for change in _changes(cast("Any", old), cast("Any", new)))
        elif old != new:
            yield f"{name} {beginning(json_text(old), 60)} there, {beginning(json_text(new), 60)} now"
