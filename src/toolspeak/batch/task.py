"""`Task` turns rows into requests, and replies into output records. Both functions are pure.

    requests = task.requests(rows)               the request for each row, or the problem of that row
    records = task.records(rows, outcomes)       the columns of the output, from the outcome of each row

Between the two anything may ask the model: `ask.py` here, an actor of a cluster, a gateway. A Task holds no model and
does no I/O. Its `fingerprint` covers everything that affects the requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from .. import __version__
from ..errors import GenerationError, ToolspeakError, UsageError
from ..plan import decide as deciding
from ..plan.effects import Plan
from ..plan.extract import Extraction, extraction
from ..plan.loop import Limits, loop
from ..plan.reask import ReaskStrategy, usual
from ..schema.adapter import adapter
from ..types import Message, Reply, Request, Tool, ToolCall, Usage, copy_with
from ..wire.reading.collect import add_usage
from .prompts import Prompt
from .row import OutputRow, Row, digest, json_text

Verb = Literal["decide", "extract", "run"]
VERBS: tuple[Verb, ...] = ("decide", "extract", "run")


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """The outcome of a row: a reply or an error, the usage of each reply, and the time that it took.

    A row that was never sent has no usages and 0 `attempts`. `created` is the time of the outcome, in seconds since
    1970.
    """

    reply: Reply | None = None
    error: Exception | None = None
    usages: Sequence[Usage] = ()
    seconds: float = 0.0
    attempts: int = 0
    created: int = 0


@dataclass(frozen=True)
class Task:
    """A verb, the request that every row fills in, and how the prompt of a row is made.

    `template` is a request without a conversation; `system` goes before each prompt. For an extraction, `read` parses a
    reply as the call with the value, and `value` converts its checked arguments for the output. `identity` has what is
    not in the request: model and dialect.
    """

    verb: Verb
    template: Request
    prompt: Prompt
    system: str | None = None
    limits: Limits = field(default_factory=Limits)
    tries: int = 3
    strategies: Sequence[ReaskStrategy] = field(default_factory=lambda: usual(()))
    read: Callable[[Reply], Reply] | None = None
    value: Callable[[Mapping[str, Any]], Any] | None = None
    identity: Mapping[str, Any] = field(default_factory=dict[str, Any])

    # -------------------------------------------------------------- the two functions

    def requests(self, rows: Sequence[Row]) -> list[Request | UsageError]:
        """Return the request for each row, or the error that prevents it."""
        return [self._request(row) for row in rows]

    def records(self, rows: Sequence[Row], outcomes: Sequence[RowOutcome]) -> list[OutputRow]:
        """Return the record of each row."""
        return [self._record(row, outcome) for row, outcome in zip(rows, outcomes, strict=True)]

    # -------------------------------------------------------------- how one row is asked

    def plan(self, request: Request) -> Plan[Reply]:
        """Return the plan of a request; see `plan.effects`."""
        if self.verb == "run":
            return loop(request, self.limits, self.strategies)
        return deciding.decide(
            request, tries=self.tries, read=self.read, strategies=self.strategies, tokens=self.limits.tokens
        )

    # -------------------------------------------------------------- identity

    @property
    def parts(self) -> dict[str, Any]:
        """Return what the fingerprint covers, by name."""
        request = self.template
        sampling = {
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "seed": request.seed,
            "stop": list(request.stop),
            **request.sampling,
        }
        return {
            **self.identity,
            "verb": self.verb,
            "prompt": self.prompt.source,
            "system": self.system,
            "tools": {tool.name: digest(_spec(tool)) for tool in request.tools or ()},
            "choice": request.choice,
            "parallel": request.parallel,
            "sampling": {name: value for name, value in sampling.items() if value not in (None, [], ())},
            "tries": self.tries,
            "limits": {name: getattr(self.limits, name) for name in Limits.__dataclass_fields__},
            "version": __version__,
        }

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with anything in `parts`."""
        return digest(self.parts)

    # -------------------------------------------------------------- inside

    def _request(self, row: Row) -> Request | UsageError:
        if row.problem:
            return UsageError(row.problem)
        try:
            messages = self.prompt.messages(row.data)
        except UsageError as error:
            return error
        first: list[Message] = [{"role": "system", "content": self.system}] if self.system else []
        return copy_with(self.template, messages=[*first, *messages])

    def _record(self, row: Row, outcome: RowOutcome) -> OutputRow:
        value: Any = None
        if outcome.reply is not None and self.value is not None:
            try:
                value = self.value(outcome.reply.calls[0].arguments)
            except (ToolspeakError, ValueError, TypeError, LookupError) as wrong:
                outcome = replace(outcome, error=wrong)
        record = fill_record(row, outcome, self.fingerprint)
        record.value = value
        return record


def fill_record(row: Row, outcome: RowOutcome, fingerprint: str) -> OutputRow:
    """Return the record of a row from its outcome."""
    reply, error = outcome.reply, outcome.error
    if isinstance(error, GenerationError):
        reply = error.reply
    usage = Usage()
    for one in outcome.usages:
        usage = add_usage(usage, one)
    record = OutputRow(
        row.id,
        error=None if error is None else f"{type(error).__name__}: {error}",
        attempts=outcome.attempts,
        tokens=usage.prompt_tokens + usage.completion_tokens,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        seconds=round(outcome.seconds, 4),
        fingerprint=fingerprint,
    )
    if reply is not None:
        record.text, record.thought, record.finish = reply.text, reply.thought, reply.finish
        record.calls = calls_text(_calls_of(reply))
        record.notes = [f"{note.rule}: {note.detail}" if note.detail else note.rule for note in reply.notes]
    return record


def calls_text(calls: Sequence[ToolCall]) -> str:
    """Return calls as JSON text: a list of objects with `id`, `name` and `arguments`."""
    rows = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
    return json_text(rows)


def _calls_of(reply: Reply) -> Sequence[ToolCall]:
    """Return the calls of a reply; of a run, whose steps have results, all calls that were run."""
    ran = [call for step in reply.steps if step.results for call in step.reply.calls]
    return ran if reply.pending else [*ran, *reply.calls]  # pending calls are among those of the last step


def extracting(kind: Any) -> Extraction:
    """Return how to extract a value of `kind`, a type or a JSON Schema, as JSON data. Raises InvalidTool, a UsageError."""
    if kind is None:
        raise UsageError("kind: expected a type or a JSON Schema to extract, received None")
    extractor = extraction(kind)
    if isinstance(kind, Mapping):
        return extractor
    values = adapter(kind)

    def build(arguments: Mapping[str, Any]) -> Any:
        return values.dump_python(extractor.build(arguments), mode="json")

    return extractor._replace(build=build)


def _spec(tool: Tool[..., Any]) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
