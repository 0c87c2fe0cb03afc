"""The formats of the output: how a record is written to the journal and to a shard, and read again.

The journal contains one line per record, which is text in every format.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ..errors import UsageError
from ..schema import nonblocking_json
from .parquet import Parquet
from .row import OutputRow, RecordLines


class Format(Protocol):
    """A format of shards."""

    name: str
    suffix: str

    def encode(self, record: OutputRow) -> str:
        """Return the line for a record."""
        ...

    def decode(self, line: str) -> dict[str, Any]:
        """Return the columns in a line."""
        ...

    def key(self, line: str) -> str:
        """Return the id in a line, as text."""
        ...

    def read(self, path: Path) -> Iterator[str]:
        """Yield the lines of a shard."""
        ...

    def write(self, file: BinaryIO, lines: Iterable[str]) -> None:
        """Write a shard."""
        ...


class JsonLines(RecordLines):
    """JSON lines: one object with the columns of `row.COLUMNS` per line."""

    name, suffix = "jsonl", ".jsonl"

    def read(self, path: Path) -> Iterator[str]:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield line.decode().removesuffix("\n")
                except UnicodeDecodeError:
                    raise UsageError(f"{path}, line {number} is not UTF-8: it was changed by hand") from None

    def write(self, file: BinaryIO, lines: Iterable[str]) -> None:
        file.writelines(line.encode("utf-8", "backslashreplace") + b"\n" for line in lines)


class OpenAIBatch(JsonLines):
    """The lines of OpenAI's Batch output, which vLLM's run-batch writes too."""

    name = "openai"

    def encode(self, record: OutputRow) -> str:
        error = None
        if record.response is None:  # the row was never sent
            error = {"code": record.kind, "message": (record.error or "").partition(": ")[2]}
        name = hashlib.sha256(str(record.id).encode("utf-8", "surrogatepass")).hexdigest()[:24]
        line = {"id": f"batch_req_{name}", "custom_id": record.id, "response": record.response, "error": error}
        return nonblocking_json.dumps(line)

    def decode(self, line: str) -> dict[str, Any]:
        return parsed_in_steps(line)

    def key(self, line: str) -> str:
        return str(self.decode(line)["custom_id"])


def parsed_in_steps(text: str) -> Any:
    """Parse JSON of any size, such as thousands of vectors, in small steps: other threads wait during each."""
    try:
        return nonblocking_json.loads(text, values=len(text), piece=nonblocking_json.PIECE)
    except RecursionError:  # a body nests as deep as it may, and here it is inside of another value
        return json.loads(text)


FORMATS: dict[str, type[Format]] = {"jsonl": JsonLines, "parquet": Parquet, "openai": OpenAIBatch}
"""The formats by name."""


def output_format(name: str) -> Format:
    """Return the format of that name. Raises UsageError."""
    if name not in FORMATS:
        raise UsageError(f"format: expected {' or '.join(FORMATS)}, received {name!r:.80}")
    return FORMATS[name]()
