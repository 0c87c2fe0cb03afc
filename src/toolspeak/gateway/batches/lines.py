"""The lines of a batch's file: all are checked before the first is sent, then read again one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ...api.json_stream import Payload
from ...batch.row import Item, is_unicode
from ...schema import nonblocking_json

MOST_ERRORS = 100
"""The most errors of a file that are reported."""
LONGEST_ID = 512
"""The most characters of a `custom_id`."""


@dataclass(slots=True)
class CheckedLines:
    """The number of lines in a file, and its errors."""

    lines: int = 0
    errors: list[Payload] = field(default_factory=list[Payload])

    def wrong(self, line: int | None, code: str, message: str, param: str | None = None) -> None:
        self.errors.append({"code": code, "line": line, "message": message, "param": param})


def check_lines(path: Path, endpoint: str, rows: int, longest: int) -> CheckedLines:
    """Check every line of a file: at most `rows` lines of at most `longest` bytes, each a request to the endpoint with
    a unique `custom_id`. Stops at the limit of reported errors."""
    checked = CheckedLines()
    seen: dict[str, int] = {}
    for number, raw in _lines(path, longest):
        checked.lines += 1
        if checked.lines > rows:
            checked.wrong(
                number, "too_many_requests", f"the file has more than {rows:,} lines: split it into several batches"
            )
            break
        if (line := _read(checked, number, raw, longest)) is not None:
            _check(checked, number, line, endpoint, seen)
        if len(checked.errors) >= MOST_ERRORS:
            break
    if not checked.lines:
        checked.wrong(None, "empty_file", "the file has no lines: expected one JSON object per line")
    return checked


def read_items(path: Path, longest: int) -> Iterator[Item]:
    """Yield the lines of a file that was checked."""
    for number, raw in _lines(path, longest):
        yield Item(_parsed(raw), f"line {number}")


def _lines(path: Path, longest: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, counted from 1. Of one that is too long, only enough to see that it is."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(longest + 2):
            number += 1
            start = line
            while not line.endswith(b"\n") and (line := file.readline(longest + 2)):
                pass  # skip the rest of a line that is too long
            if start.strip():
                yield number, start.removeprefix(b"\xef\xbb\xbf") if number == 1 else start


def _read(checked: CheckedLines, number: int, raw: bytes, longest: int) -> Payload | None:
    """Return the object in a line. None, with an error noted, for anything else."""
    if len(raw.rstrip(b"\r\n")) > longest:
        checked.wrong(number, "line_too_long", f"this line is longer than {longest:,} bytes")
        return None
    try:
        value = _parsed(raw)
    except (ValueError, RecursionError) as error:
        problem = error.msg if isinstance(error, json.JSONDecodeError) else "it is not UTF-8, or nests too deep"
        checked.wrong(number, "invalid_json_line", f"this line is not JSON: {problem}")
        return None
    if not isinstance(value, dict):
        checked.wrong(number, "invalid_json_line", f"expected an object, got {type(value).__name__}")
        return None
    return cast("Payload", value)


def _parsed(raw: bytes) -> Any:
    """Return the value of a line. Raises ValueError, and RecursionError by its depth alone: Python's own limit depends on
    the caller, so that a line could be right when it is checked and wrong when it is read."""
    return nonblocking_json.loads(raw.decode(), values=len(raw))


def _check(checked: CheckedLines, number: int, line: Payload, endpoint: str, seen: dict[str, int]) -> None:
    if missing := next((name for name in ("custom_id", "method", "url", "body") if name not in line), None):
        checked.wrong(number, "missing_required_parameter", f"{missing}: missing in this line", missing)
        return
    key: Any = line["custom_id"]
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_ID or not is_unicode(key):
        message = f"custom_id: expected a text of 1 to {LONGEST_ID} characters, got {key!r:.80}"
        checked.wrong(number, "invalid_value", message, "custom_id")
    elif (first := seen.setdefault(key, number)) != number:
        message = f"custom_id: {key[:80]!r} is also the one of line {first}; each line needs its own"
        checked.wrong(number, "duplicate_custom_id", message, "custom_id")
    if line["method"] != "POST":
        checked.wrong(number, "invalid_value", f"method: expected POST, got {line['method']!r:.80}", "method")
    if line["url"] != endpoint:
        message = f"url: expected {endpoint}, the endpoint of the batch, got {line['url']!r:.80}"
        checked.wrong(number, "mismatched_endpoint", message, "url")
    if not isinstance(line["body"], dict):
        message = f"body: expected an object, got {type(line['body']).__name__}"
        checked.wrong(number, "invalid_value", message, "body")
