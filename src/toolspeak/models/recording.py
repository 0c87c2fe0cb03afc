"""Records a model's requests and replies. The recorder passes everything through and writes it to a tape.

    model = ts.record(ts.model("ollama:NAME"), "weather.jsonl")

The recording is at the level of messages and tools. How the model is prompted below that level may change, and the
recording still answers. See `replay`.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Protocol, cast, get_args

from ..errors import (
    KeyRefused,
    ModelUnreachable,
    RateLimited,
    ServerFailed,
    StreamCut,
    ToolspeakError,
    UsageError,
    WeightsError,
)
from ..events import Event
from ..types import Request
from .base import Model
from .context import context_of
from .exchange import Exchange, Form, canonical, write_line
from .http import Http
from .pool import Pool
from .redaction import Redaction
from .replay import Replay, first_of
from .resolve import model as named_model
from .tool_calling import calling
from .wrapper import Wrapper, within

log = logging.getLogger(__name__)

Mode = Literal["none", "once", "new", "all"]
"""none: only recorded requests are answered. once: like none if the file exists, else like all. new: requests that are
not recorded yet go to the model and are added. all: every request goes to the model, and the file starts anew."""


PASSING = (ModelUnreachable, KeyRefused, RateLimited, ServerFailed, StreamCut, WeightsError)
"""Errors of reaching a model: the same request may succeed later."""
FOLDER = "recordings"
"""The folder of tests' recordings, next to the test files; it has a folder for each test file."""


@dataclass(frozen=True, slots=True)
class StreamOutcome:
    """The outcome of a request: the events, the error that ended them, and whether the consumer `cut` them off."""

    events: list[Event]
    error: ToolspeakError | None = None
    cut: bool = False


class Tape(Protocol):
    """The destination of a recorder."""

    def begin(self, model: Model, request: Request) -> Callable[[StreamOutcome], None]:
        """Note a request to a model. Returns a function that takes the outcome."""
        ...

    def score(self, model: Model, prompt: str, continuations: Sequence[str], scores: Sequence[float]) -> None:
        """Note a request for likelihoods."""
        ...

    def count(self, model: Model, request: Request, tokens: int | None) -> None:
        """Note a request for a token count."""
        ...


class Recorder(Wrapper[Model]):
    """A model that passes everything to another one, and records it on a tape."""

    def __init__(self, model: Model, tape: Tape) -> None:
        super().__init__(model)
        self.tape = tape

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        end = self.tape.begin(self.model, request)
        events: list[Event] = []
        outcome = StreamOutcome(events, cut=True)
        try:
            async with aclosing(cast("AsyncGenerator[Event]", self.model.stream(request))) as stream:
                async for event in stream:
                    events.append(event)
                    yield event
            outcome = StreamOutcome(events)
        except ToolspeakError as error:
            outcome = StreamOutcome(events, error)
            raise
        finally:
            end(outcome)

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        scores = await super().score(prompt, continuations)
        self.tape.score(self.model, prompt, continuations, scores)
        return scores

    async def count(self, request: Request) -> int | None:
        tokens = await super().count(request)
        self.tape.count(self.model, request, tokens)
        return tokens


class FileTape:
    """A tape that is a file of JSON lines, see `exchange`. Several recorders, and processes, may write to one file.

    `now` is the time at which the recording began; for an existing file, that of its first line. The file is created
    with the first finished exchange. Without `passing`, exchanges that ended in such an error are left out. Raises
    UsageError if the file cannot be written.
    """

    def __init__(self, path: str | Path, *, anew: bool = False, passing: bool = True) -> None:
        self.path = Path(path).expanduser()
        self._passing = passing
        self._anew = anew
        self._begun = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            before = None if anew else first_of(self.path)
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {error.strerror or error}") from None
        if not os.access(self.path if self.path.exists() else self.path.parent, os.W_OK):
            raise UsageError(f"{self.path} cannot be written: expected the name of a file that may be written")
        self.now = datetime.now().astimezone() if before is None else before.now
        self._first = before is None

    def begin(self, model: Model, request: Request) -> Callable[[StreamOutcome], None]:
        redaction, now = redaction_of(model), self._time()
        form = canonical(request, redaction)  # now, because the caller may change its messages later

        def end(outcome: StreamOutcome) -> None:
            if isinstance(outcome.error, PASSING) and not self._passing:
                log.info("%s: not recorded, so the next run asks again: %s", self.path, outcome.error)
                return
            self._write(_exchange(model, now, form, outcome), redaction)

        return end

    def score(self, model: Model, prompt: str, continuations: Sequence[str], scores: Sequence[float]) -> None:
        """Not recorded: no request is made of it."""

    def count(self, model: Model, request: Request, tokens: int | None) -> None:
        redaction = redaction_of(model)
        form = canonical(request, redaction)
        self._write(Exchange(_about(model), self._time(), form, counted=True, tokens=tokens), redaction)

    def _time(self) -> datetime:
        """Return the time of an exchange; for the first one, the time at which the recording began."""
        now = self.now if self._first else datetime.now().astimezone()
        self._first = False
        return now

    def _write(self, exchange: Exchange, redaction: Redaction) -> None:
        """Add a line in one piece. A full disk must not end the recorded program."""
        begins = os.O_TRUNC if self._anew and not self._begun else 0
        self._begun = True
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | begins, 0o600)
            try:
                line = write_line(exchange, redaction)
                while line:
                    line = line[os.write(file, line) :]
            finally:
                os.close(file)
        except OSError as error:
            log.warning("%s: an exchange is not recorded: %s", self.path, error.strerror or error)


def _exchange(model: Model, now: datetime, form: Form, outcome: StreamOutcome) -> Exchange:
    return Exchange(_about(model), now, form, outcome.events, outcome.error, outcome.cut)


def _about(model: Model) -> dict[str, Any]:
    """Return what a replay must report about the model, so that it is used like the original."""
    about: dict[str, Any] = {"name": Redaction().text(model.name), "capabilities": sorted(model.capabilities)}
    context = context_of(model)
    return about if context is None else {**about, "context": context}


def redaction_of(model: Model) -> Redaction:
    """Return the Redaction of a model's own secrets, and of texts that look like secrets."""
    return Redaction(secret for server in _servers(model) for secret in server.secrets)


def _servers(model: Model) -> list[Http]:
    """Return the servers behind a model."""
    if pool := within(model, Pool):
        return [server for one in pool.upstreams for server in _servers(one.model)]
    server = within(model, Http)
    return [] if server is None else [server]


def record(model: str | Model | None, path: str | Path, *, mode: Mode = "all") -> FileRecorder | Replay:
    """Return the model, with each exchange recorded in a file as a line of JSON, for `replay`.

    `mode` is as in VCR: `all` asks everything and starts a new file, `once` answers from an existing file, `new` asks
    and adds what is not in it yet, `none` asks nothing. An error of reaching the model, such as a server that is down,
    is recorded only by `all`: with `once` and `new` the next run asks again. Keys and passwords are left out. `.now` is
    the time at which the recording began, for prompts with the date. A reply whose consumer stopped early is recorded
    as cut off.
    """
    if mode not in get_args(Mode):
        raise UsageError(f"mode: expected {', '.join(get_args(Mode))}, received {mode!r:.40}")
    there = Path(path).expanduser().is_file()
    if mode == "none" or (mode == "once" and there):
        return Replay(path)
    tape = FileTape(path, anew=mode == "all", passing=mode == "all")
    recorder = FileRecorder(calling(named_model(model)), tape)
    return Replay(path, otherwise=recorder) if mode == "new" and there else recorder


class FileRecorder(Recorder):
    """A recorder to a file; see `record`."""

    tape: FileTape

    @property
    def now(self) -> datetime:
        """When the recording began; a replay returns the same time."""
        return self.tape.now


def path_of_test(file: Path, test: str, number: int = 1) -> Path:
    """Return the file for a test's recording; `number` is for its second and further models.

    A name that is not a valid file name gets a digest, so that two tests never share a file.
    """
    name = re.sub(r"[^\w.-]+", "-", test).strip("-.")[:100]
    if name != test:
        name += f"-{sha256(test.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return file.parent / FOLDER / file.stem / (f"{name}.jsonl" if number == 1 else f"{name}-{number}.jsonl")
