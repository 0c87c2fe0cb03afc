"""Answers from a recording: each request gets the events that were recorded for it, in the order of requests.

A request is identified by its canonical form (see `exchange`). Equal requests get the recorded answers in turn, and
then the last one again. A request that is not in the recording raises NotRecorded, with a diff against the most similar
one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import cast

from ..errors import LONGEST, NotRecorded, StreamCut, UsageError
from ..events import Event
from ..schema.phrases import beginning
from ..types import Request
from .base import Capability, Model
from .exchange import BEGINS, Exchange, Form, canonical, key_of, read_error, read_line, write_error
from .redaction import Redaction
from .request_diff import diff, nearest
from .sampling import NONE, Sampling
from .wrapper import close, count

log = logging.getLogger(__name__)

NO_EXCHANGE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""The exceptions for a line that is not an exchange."""


def read(path: str | Path) -> list[Exchange]:
    """Return the exchanges of a recording, in the order in which they began. Raises UsageError for an invalid line.

    The last line may be incomplete, because the recording process was killed or is still writing. It is left out, with
    a log line. UsageError if it is the only one.
    """
    file = Path(path).expanduser()
    try:
        with file.open("rb") as opened:
            lines = opened.readlines()
    except FileNotFoundError:
        raise UsageError(
            f"there is no recording {file}: record one with toolspeak.record(model, {str(path)!r})"
        ) from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from None
    exchanges: list[Exchange] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            exchanges.append(_exchange(file, number, line))
        except UsageError as error:
            if line.endswith(b"\n") or not exchanges:
                raise
            log.warning("%s; the line is ignored", error)
    return sorted(exchanges, key=lambda one: one.now)


def first_of(path: Path) -> Exchange | None:
    """Return the first exchange of a file before lines are added to it, None if it is empty. An incomplete last line,
    left by a killed process, is removed. Raises UsageError for a file that is not a recording, OSError."""
    if not path.exists():
        return None
    with path.open("r+b") as file:
        line = file.readline()
        end = file.seek(0, os.SEEK_END)
        while end and file.seek(end - 1) + 1 and file.read(1) != b"\n":
            end -= 1
        file.seek(end)
        last = file.read()
        if not line.startswith(BEGINS[: len(line)]):
            raise UsageError(
                f"{path}, line 1: not an exchange of a recording: expected it to start with {BEGINS.decode()}"
            )
        if last and _is_whole(last):
            file.write(b"\n")
        else:
            file.truncate(end)
            line = line if end else b""
    return _exchange(path, 1, line) if line else None


def _is_whole(line: bytes) -> bool:
    try:
        read_line(line)
    except NO_EXCHANGE:
        return False
    return True


def _exchange(file: Path, number: int, line: bytes) -> Exchange:
    try:
        return read_line(line, number)
    except NO_EXCHANGE as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else beginning(str(error), 200)
        cut = "" if line.endswith(b"\n") else " (the file ends within this line: was it cut?)"
        raise UsageError(f"{file}, line {number}: not an exchange of a recording: {why}{cut}") from None


class Replay:
    """A model that answers from a recording; see the head of this file.

    `exchanges` are its content, `now` is when it began. Requests that are not in it go to the model `otherwise`, if
    there is one. `defaults` have no effect: the recording is of a model with its own. Raises UsageError for a file that
    is not a recording.
    """

    def __init__(self, path: str | Path, *, otherwise: Model | None = None, defaults: Sampling = NONE) -> None:
        self.path = Path(path).expanduser()
        self.exchanges = read(self.path)
        self.model = otherwise
        self._redaction = Redaction()
        self._answers: dict[str, list[Exchange]] = {}
        for one in self.exchanges:
            self._answers.setdefault(one.key, []).append(one)
        self._turns = dict.fromkeys(self._answers, 0)

    def __repr__(self) -> str:
        return f"Replay({str(self.path)!r}, {len(self.exchanges)} exchanges)"

    @property
    def name(self) -> str:
        """The name of the recorded model."""
        return str(self._about("name", f"replay:{self.path}" if self.model is None else self.model.name))

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities of the recorded model."""
        usual = frozenset({"tools"}) if self.model is None else self.model.capabilities
        return frozenset(cast("list[Capability]", self._about("capabilities", usual)))

    @property
    def context(self) -> int | None:
        """The context size of the recorded model in tokens, if known."""
        return cast("int | None", self._about("context", None))

    @property
    def now(self) -> datetime:
        """When the recording began, for prompts with the date."""
        return self.exchanges[0].now if self.exchanges else datetime.now().astimezone()

    def _about(self, name: str, usual: object) -> object:
        """Return a fact about the model at the time of its last request."""
        return self.exchanges[-1].model.get(name, usual) if self.exchanges else usual

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """Yield the recorded events of the request; see the protocol. Raises the recorded error, or NotRecorded."""
        form = canonical(request, self._redaction)
        exchange = self._next(key_of(form))
        if exchange is None and self.model is not None:
            async with aclosing(cast("AsyncGenerator[Event]", self.model.stream(request))) as events:
                async for event in events:
                    yield event
            return
        if exchange is None:
            raise self._missing(form)
        for event in exchange.events:
            yield event
        if exchange.error is not None:
            row = write_error(exchange.error)
            row["message"] += f" (replayed from {self.path}, line {exchange.line})"
            raise read_error(row)
        if exchange.cut:
            raise StreamCut(f"the recording of this reply ends here, because its consumer stopped ({self.path})")

    async def count(self, request: Request) -> int | None:
        """Return the recorded token count of a request, None if there was none."""
        exchange = self._next(key_of(canonical(request, self._redaction), counted=True))
        if exchange is None and self.model is not None:
            return await count(self.model, request)
        return exchange.tokens if exchange else None

    async def aclose(self) -> None:
        """Close the connections of the model `otherwise`."""
        if self.model is not None:
            await close(self.model)

    def _next(self, key: str) -> Exchange | None:
        """Return the next answer to a request. The last one is repeated, unless there is another model to ask."""
        rows = self._answers.get(key, [])
        turn = self._turns.get(key, 0)
        if turn >= len(rows):
            return rows[-1] if rows and self.model is None else None
        self._turns[key] = turn + 1
        return rows[turn]

    def _missing(self, form: Form) -> NotRecorded:
        replies = [one for one in self.exchanges if not one.counted]
        message = f"{self.path} has no answer to this request"
        if not replies:
            return NotRecorded(f"{message}: it has no exchanges at all. Record it again")
        place = nearest(form, [one.request for one in replies])
        whole = diff(replies[place].request, form)
        head = f"{message}. The nearest of its {len(replies)} is number {place + 1} (- recorded, + asked now):"
        return NotRecorded(f"{head}\n{_first_rows(whole)}\nIf the change is intended, record it again", diff=whole)


def _first_rows(diff: str) -> str:
    """Return as many lines of a diff as fit into an error's message."""
    if len(diff) <= LONGEST // 2:
        return diff
    rows = diff.split("\n")
    fit = diff.count("\n", 0, LONGEST // 2)
    return "\n".join([*rows[:fit], f"… and {len(rows) - fit} lines more, in the error's `diff`"])


def replay(path: str | Path) -> Replay:
    """Return a model that answers from a recording made by `record`, without the recorded model.

    A request is identified by its messages, tools and settings. Raises UsageError if the file is not a recording. For a
    request that is not in it, the model raises NotRecorded, with a diff against the most similar one.
    """
    return Replay(path)
