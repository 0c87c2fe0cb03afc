"""Stores the results of an evaluation: an append-only JSON Lines file in a folder, which belongs to one set of cases."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Any, cast

from ..errors import UsageError
from ..files import locked
from ..schema.suggestions import listed
from .case import Kind, short
from .trace import Step

RUN, RECORDS = "run.json", "cases.jsonl"


@dataclass(frozen=True, slots=True)
class Record:
    """The result of one case for one contender: the verdict, the expected and the actual calls, the cost, and all
    requests.

    `cost` is in the currency of the given prices, None without prices. `steps` are the exact requests to the
    underlying model; `trace.unpacked` restores their full prompts.
    """

    case: str
    group: str
    contender: str
    right: bool
    kind: Kind = ""
    detail: str = ""
    question: str = ""
    tools: list[str] = field(default_factory=list[str])
    expected: Any = None
    match: str = "exact"
    calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    text: str = ""
    notes: list[str] = field(default_factory=list[str])
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    messages: list[Any] = field(default_factory=list[Any])
    steps: list[Step] = field(default_factory=list[Step])


NAMES = frozenset(each.name for each in fields(Record))


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder holds results of: the names of the cases' sources, their fingerprint, and the settings.

    `questions` is the fingerprint without the tools, and `tools` that of each tool; older folders have neither.
    """

    sources: list[str]
    cases: int
    digest: str
    settings: dict[str, Any]
    version: str
    questions: str = ""
    tools: dict[str, str] = field(default_factory=dict[str, str])


class Folder:
    """A folder with the results of a run, open for appending. Created by `opened`."""

    def __init__(self, path: Path, records: list[Record], file: IO[str]) -> None:
        self.path = path
        self.records = records
        self.done = {(record.contender, record.case) for record in records}
        self._file = file

    def forget_errors(self) -> None:
        """Lets cases that ended in an error be asked again; the new record replaces the old one."""
        self.done -= {(record.contender, record.case) for record in self.records if record.kind == "error"}

    def add(self, record: Record) -> None:
        """Appends a record. It is on disk when this returns."""
        self._file.write(json.dumps(asdict(record), ensure_ascii=False, default=str) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.records.append(record)
        self.done.add((record.contender, record.case))


@contextlib.contextmanager
def opened(path: Path, manifest: Manifest) -> Generator[Folder]:
    """The folder, created if it is missing. Raises UsageError if it belongs to other cases or settings, or is in use."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be created: {error.strerror or error}") from None
    with locked(
        path / ".lock", f"another evaluation is writing to {path}: wait for it, or give another `out=` (--out)"
    ):
        _same_run(path, manifest)
        records = _whole(path / RECORDS)
        with (path / RECORDS).open("a", encoding="utf-8") as file:
            yield Folder(path, records, file)


def _same_run(path: Path, manifest: Manifest) -> None:
    """Writes the manifest of a new folder, or compares it with the existing one. The names of sources may differ:
    cases are the same if their digest is."""
    there = path / RUN
    if not there.exists():
        others = [one.name for one in path.iterdir() if one.name != ".lock"]
        if (path / RECORDS).exists() or not {*others} <= {f".{RUN}.part"}:
            raise UsageError(
                f"{path} contains other files ({', '.join(sorted(others)[:3])}): use another `out=` (--out)"
            )
        part = path / f".{RUN}.part"
        part.write_text(json.dumps(asdict(manifest), ensure_ascii=False, indent=1) + "\n", "utf-8")
        part.replace(there)
        return
    before = read_manifest(path)
    if before.digest != manifest.digest:
        raise UsageError(f"{path} holds the results of {_other_cases(before, manifest)}. Give another `out=` (--out)")
    if before.settings != manifest.settings:
        changes = "; ".join(_changes(before.settings, manifest.settings))
        raise UsageError(f"{path} was begun with other settings: {changes}. Give another `out=` (--out)")


def _other_cases(before: Manifest, now: Manifest) -> str:
    """What differs between two sets of cases."""
    cases = (
        f"other cases: {before.cases} of {', '.join(before.sources)} there, {now.cases} of {', '.join(now.sources)} now"
    )
    if not before.tools or before.tools == now.tools:
        return cases
    tools = f"other tools: {'; '.join(_tool_changes(before.tools, now.tools))}"
    return tools if before.questions == now.questions else f"{cases}; and of {tools}"


def _tool_changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    changes = {
        "changed": [name for name in now if name in before and now[name] != before[name]],
        "added": [name for name in now if name not in before],
        "removed": [name for name in before if name not in now],
    }
    yield from (f"{what}: {listed(names, 10)}" for what, names in changes.items() if names)


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, value in now.items():
        if before.get(name) != value:
            yield f"{name} {short(before.get(name))} there, {short(value)} now"


def read_manifest(folder: Path | str) -> Manifest:
    """The manifest of a folder. Raises UsageError if it holds no results."""
    there = Path(folder) / RUN
    try:
        return Manifest(**json.loads(there.read_text("utf-8")))
    except FileNotFoundError:
        raise UsageError(f"{folder} holds no results of an evaluation: there is no {RUN} in it") from None
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{there} cannot be read: {error}") from None


def read(folder: Path | str) -> list[Record]:
    """The records of a folder. Only complete lines are read, since a run may still be writing. Raises UsageError if
    there are no results."""
    read_manifest(folder)
    try:
        return last([record for record, _ in _lines(Path(folder) / RECORDS)])
    except FileNotFoundError:
        return []


def last(records: Sequence[Record]) -> list[Record]:
    """The last record of every case and contender, so that a repeated case counts once."""
    return list({(record.contender, record.case): record for record in records}.values())


def _whole(path: Path) -> list[Record]:
    """The records of a file, which is truncated after its last complete line: a killed process may have left half a
    line."""
    if not path.exists():
        return []
    lines = list(_lines(path))
    end = lines[-1][1] if lines else 0
    if end < path.stat().st_size:
        with path.open("r+b") as file:
            file.truncate(end)
    return last([record for record, _ in lines])


def _lines(path: Path) -> Generator[tuple[Record, int]]:
    """Each record with the byte offset of its line's end. Raises UsageError for a complete line that is no record."""
    at = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            at += len(line)
            if not line.endswith(b"\n"):
                return
            try:
                value = cast("Mapping[str, Any]", json.loads(line))
                yield Record(**{name: value[name] for name in value.keys() & NAMES}), at
            except (ValueError, TypeError, AttributeError) as error:
                raise UsageError(f"{path}, line {number}: no record of a case: {str(error)[:200]}") from None
