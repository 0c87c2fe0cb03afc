"""Sends the rows of a batch to a model in this process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from ..drive import play, value
from ..errors import (
    KeyRefused,
    MissingExtra,
    ModelError,
    ServerFailed,
    TemplateError,
    ToolspeakError,
    UnknownModel,
    UsageError,
    WeightsError,
)
from ..models.fallback import look
from ..models.resolve import DEFAULT, VARIABLE, model as named_model, over_http
from ..models.retries import passing
from ..plan.effects import Plan, Run, spending
from ..plan.extract import Extraction
from ..toolbox import PerCall, into
from ..types import Reply, ToolCall, ToolResult, Usage
from ..verbs import Job, Options, job
from ..wire.dialect import Dialect
from .common_error import Rejected
from .openai_batch import OpenAITask
from .prompts import Prompt
from .row import OutputRow, Row
from .runner import REFUSALS
from .task import VERBS, RowOutcome, Task, Verb, extracting

BESIDE_LINES = {"model", "limits", "reask", "ladder"}
"""The options of a verb that lines of OpenAI's Batch format do not contain."""
IDEMPOTENCY = "idempotency_key"
"""The injected parameter that gives a tool a unique key of its call: id of the row, fingerprint, number of the call."""
STOPPING = (KeyRefused, WeightsError, MissingExtra, UnknownModel)
"""Errors that every row would get: they end the job, which can be continued later."""

REJECTING = (ModelError, TemplateError)
"""Errors that may be the fault of the row or of the job."""


@dataclass(slots=True)
class Asker:
    """Sends one row after another to a model.

    `begun` is called with the names before calls of a row are run. A row whose calls have run is not started again when
    the model fails later, unless `again` is set: it ends with that error. `replied`: the model has replied to a row.
    """

    task: Task | OpenAITask
    job: Job
    replied: bool = False
    begun: Callable[[Row, str], None] = lambda row, names: None
    again: bool = False

    async def answer(self, row: Row) -> OutputRow | Rejected:
        """Return the record of a row, or a Rejected with it if the model has rejected every row so far.

        Raises errors in STOPPING and `runner.REFUSALS`; any other error goes into the record.
        """
        request = self.task.requests([row])[0]
        if isinstance(request, ToolspeakError):
            return self.task.records([row], [RowOutcome(error=request)])[0]
        spent: list[Usage] = []
        ran: list[ToolCall] = []
        began = time.perf_counter()
        reply = error = None
        try:
            reply = await self._reply(row, spending(self.task.plan(request), spent), ran)
        except (*STOPPING, *REFUSALS) as failure:
            if _comes_again(failure) and (self.again or not ran):
                raise
            error = failure
        except Exception as failure:  # noqa: BLE001 - a bad row is a row with an error, never the end of the job
            error = failure
        outcome = RowOutcome(reply, error, spent, time.perf_counter() - began, max(1, len(spent)), int(time.time()))
        record = self.task.records([row], [outcome])[0]
        self.replied |= bool(spent)
        if not self.replied and isinstance(error, REJECTING):
            return Rejected(record, error)
        return record

    async def _reply(self, row: Row, plan: Plan[Reply], ran: list[ToolCall]) -> Reply:
        job = self.job

        async def run(effect: Run) -> tuple[ToolResult, ...]:
            calls = effect.calls
            self.begun(row, ", ".join(call.name for call in calls))
            first = len(ran)
            ran.extend(calls)
            index = {call.id: first + at for at, call in enumerate(calls)}
            key = PerCall(lambda call: f"{row.id}:{self.task.fingerprint}:{index[call.id]}")
            parallel = 8 if job.request.parallel else 1
            return await job.box.arun(
                calls, approve=job.approve, parallel=parallel, inject={IDEMPOTENCY: key},
                policy=job.policy, messages=effect.messages, ended=into(effect.ended),
            )  # fmt: skip

        return await value(play(plan, job.model, run, others=job.reask.others, seconds=job.limits.seconds))


def _comes_again(error: ModelError | UsageError) -> bool:
    """Whether an error may pass, or would occur for other rows too."""
    return passing(error) if isinstance(error, ServerFailed) else True


async def prepared(
    prompt: Prompt,
    verb: Verb,
    tools: Any,
    kind: Any,
    options: Mapping[str, Any],
    *,
    tries: int | None = None,
    dialect: str | Dialect | None = None,
) -> Asker:
    """Return the Asker for a model and a verb with these options. Raises UsageError."""
    if verb not in VERBS:
        raise UsageError(f"verb: expected {', '.join(VERBS)}, received {verb!r:.80}")
    picked = cast("Options", dict(options))
    name = _name(picked)
    picked["model"] = _model(name, dialect, verb)
    how: Extraction | None = None
    if verb == "extract":
        if tools:
            raise UsageError("tools: extract takes a kind and no tools")
        how = extracting(kind)
        tools, picked["choice"], picked["parallel"] = (how.tool,), how.tool.name, False
    elif kind is not None:
        raise UsageError(f"kind: only extract takes one, and the verb is {verb}")
    system = picked.pop("system", None)
    base_job = job("", tools, picked)
    if verb == "run":
        base_job.box.check_injected({IDEMPOTENCY: ""})
    base_job = await base_job.ready()
    # Without functions, what a prompt says of tools is made once; see `wire.memo`. A run has them in its toolbox.
    tools = tuple(replace(tool, function=None) for tool in base_job.box)
    task = Task(
        verb=verb, template=replace(base_job.request, tools=tools), prompt=prompt, system=system, limits=base_job.limits,
        tries=base_job.again(tries)["tries"], strategies=base_job.reask.strategies, identity=_identity(name, base_job),
        read=how.read if how else None, value=how.build if how else None,
    )  # fmt: skip
    return Asker(task, base_job)


async def prepared_for_lines(
    options: Mapping[str, Any], *, tries: int | None = None, dialect: str | Dialect | None = None
) -> Asker:
    """Return the Asker for lines of OpenAI's Batch format. Raises UsageError for options that the lines contain."""
    if inside := sorted({name for name, value in options.items() if value} - BESIDE_LINES):
        raise UsageError(f"{', '.join(inside)}: each line of OpenAI's Batch format has its own")
    picked = cast("Options", {name: options[name] for name in BESIDE_LINES & options.keys()})
    name = _name(picked)
    picked["model"] = _model(name, dialect, "decide")
    base_job = job("", (), picked)
    await look(base_job.model)
    base_job = await base_job.ready()
    task = OpenAITask(_identity(name, base_job), base_job.again(tries)["tries"], base_job.reask.strategies)
    return Asker(task, base_job)


def _name(options: Options) -> Any:
    return options.get("model") or os.environ.get(VARIABLE, DEFAULT)


def _model(name: Any, dialect: str | Dialect | None, verb: Verb) -> Any:
    """Return the model. One over HTTP that is created here does not retry: the batch does, and slows down all rows.

    For `run` it retries by itself, because the calls of earlier turns must not be run again.
    """
    retries: dict[str, Any] = {"retries": 0} if verb != "run" and isinstance(name, str) and over_http(name) else {}
    return named_model(name, dialect=dialect, **retries)


def _identity(name: Any, job: Job) -> dict[str, Any]:
    """Return what identifies the model and its dialect. A server's address may contain a password; the model's own name
    does not."""
    model: Any = job.model
    while not hasattr(model, "strategy") and hasattr(model, "model"):
        model = model.model  # wrappers of a model do not change its requests
    strategy: Any = getattr(model, "strategy", None)
    return {
        "model": job.model.name if _has_name(name) else name,
        "dialect": None if strategy is None else strategy.label,
        **({"policy": repr(job.policy)} if job.policy else {}),
    }


def _has_name(name: Any) -> bool:
    """Whether to use a model's own name: it is behind a server, or was passed as an object."""
    return over_http(name) if isinstance(name, str) else True
