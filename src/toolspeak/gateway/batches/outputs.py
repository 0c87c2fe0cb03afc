"""Writes the two files of a batch that a client downloads: successful responses, and errors."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...api import batches as api
from ...batch.store import MANIFEST, read_records
from ...files import replacing
from ...schema import nonblocking_json
from ..storage.batch_store import BatchStore
from .lines import read_items


@dataclass(slots=True)
class Written:
    """The files that were written, `output` and `error`, each with its id and size. A file that would be empty is
    missing.

    `tokens` are the input and output tokens of all responses.
    """

    files: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    completed: int = 0
    failed: int = 0
    tokens: tuple[int, int] = (0, 0)


def write_outputs(store: BatchStore, lines: Path, expired: Path | None, longest: int) -> Written:
    """Write the files of a batch whose responses are in the folder `lines`. If the batch `expired`, which names its
    input file, each line without a response becomes an error."""
    written = Written()
    output, error = _File(store), _File(store)
    done: set[str] = set()
    with output, error:
        for record in _records(lines):
            response: dict[str, Any] = record["response"] or {}
            good = response.get("status_code") == 200
            (output if good else error).write(record)
            written.completed, written.failed = written.completed + good, written.failed + (not good)
            tokens = api.read_usage(response.get("body"))
            written.tokens = (written.tokens[0] + tokens[0], written.tokens[1] + tokens[1])
            if expired is not None:
                done.add(record["custom_id"])
        for item in () if expired is None else read_items(expired, longest):
            custom_id = str((item.data or {})["custom_id"])
            if custom_id not in done:
                name = hashlib.sha256(custom_id.encode()).hexdigest()[:24]
                error.write(api.unanswered(f"batch_req_{name}", custom_id))
                written.failed += 1
    for name, file in (("output", output), ("error", error)):
        if file.size:
            written.files[name] = (file.key, file.size)
    return written


def _records(lines: Path) -> Iterator[dict[str, Any]]:
    return read_records(lines) if (lines / MANIFEST).exists() else iter(())


class _File:
    """A file in the store, created with its first line and published when it is complete."""

    def __init__(self, store: BatchStore) -> None:
        self.key = f"file-{secrets.token_hex(12)}"
        self.size = 0
        self._path = store.content(self.key)
        self._context: Any = None
        self._file: Any = None

    def write(self, line: dict[str, Any]) -> None:
        if self._file is None:
            self._context = replacing(self._path)
            self._file = self._context.__enter__()
        data = nonblocking_json.dumps(line).encode("utf-8", "backslashreplace") + b"\n"
        self._file.write(data)
        self.size += len(data)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._context is not None:
            self._context.__exit__(*error)
