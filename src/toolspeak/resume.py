"""Resumes a run that waits for approval: in this process or another one, now or later.

An approval is valid only for what was shown: the tool's definition, the arguments, and the conversation before the
call. If any of them has changed, resuming fails before anything runs. A person decides whether the call runs, but
cannot override what the policy denies.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import fields, replace
from typing import Any, Unpack, cast

from . import drive
from .approvals import Answer, Edit
from .drive import Done
from .errors import CallError, NotApproved, StaleApproval, UsageError
from .events import ArgumentsDelta, CallEnd, CallResult, CallStart, Event, Finished
from .plan.calls import answer as answer_message, arguments_text
from .plan.loop import labelled, loop
from .plan.messages import with_names
from .policy.approval_digests import call_digest, canonical, definition_digest
from .policy.policy import Policy
from .running import in_thread
from .schema.call_dicts import read_call
from .schema.suggestions import listed
from .tool_results import exception_text, result_text
from .toolbox import Toolbox
from .types import Message, Pending, Reply, Step, ToolCall, ToolResult
from .used_approvals import ApprovalStore, StoredResult
from .verbs import Job, Options, job

log = logging.getLogger(__name__)

FIELDS = {field.name for field in fields(Pending)}


Answers = Mapping[str, bool | str | Edit | Answer]
"""Answers by the ids of pending calls. True runs the call; a text is the reason why it must not run."""


def resume(
    reply: Reply | str | Mapping[str, Any],
    answers: Answers,
    *,
    tools: Any = (),
    store: str | os.PathLike[str] | None = None,
    **options: Unpack[Options],
) -> Reply:
    """Resumes a run with answers to its pending calls, and returns its reply.

    `reply` is the Reply that had `pending`, or its JSON: the text of `reply.to_json()`, or the parsed data. `tools`
    and the options are those of `run`, to be given again; without a `policy` every call is asked about. `answers` maps
    the ids of calls to True, a reason against the call, `Edit(arguments)` or `Answer(result)`. Calls without an answer
    stay pending.

    An approval is marked as used before its call runs, in the SQLite file `store` ($TOOLSPEAK_APPROVALS, by default in
    the user's state folder), and never runs a call again. The result is stored there too: if the model then fails, the
    same answers continue with it. If it is unknown whether a call has run, it is not run again, and its result says
    so. Raises StaleApproval, before anything runs, if a call differs from what was shown or has expired, or if it is
    refused after it ran.
    """
    return drive.run_sync(aresume(reply, answers, tools=tools, store=store, **options))


async def aresume(
    reply: Reply | str | Mapping[str, Any],
    answers: Answers,
    *,
    tools: Any = (),
    store: str | os.PathLike[str] | None = None,
    **options: Unpack[Options],
) -> Reply:
    """As `resume`, awaited."""
    return await drive.value(play(reply, answers, tools=tools, store=store, **options))


async def play(
    reply: Reply | str | Mapping[str, Any],
    answers: Answers,
    *,
    tools: Any = (),
    store: str | os.PathLike[str] | None = None,
    **options: Unpack[Options],
) -> AsyncGenerator[Event | Done[Reply], None]:
    """The events of the resumed run, first those of the answered calls, and last `Done` with the value of `resume`."""
    if options.get("system"):
        raise UsageError("system: the conversation already has its system message")
    messages, pending = read_paused(reply)
    policy = options["policy"] = options.get("policy") or Policy()
    task = job(messages, tools, options)
    task.box.check_injected()
    approvals = ApprovalStore(store)
    digests = [one.digest for one in pending]
    stored, closed = await in_thread(lambda: (approvals.results(digests), approvals.closed(digests)))
    paused = _Paused(messages, pending, stored, closed)
    calls = paused.answered(answers, task.box)
    task = await task.ready()
    late = await in_thread(lambda: approvals.close(*paused.ended(answers)))
    paused.check_ended(late)
    for event in _events(calls):
        yield event
    results = await _results(calls, answers, paused, task, replace(policy, allow=(), ask=("*",)), approvals)
    for result in results:
        yield CallResult(result)
    step = Step(Reply(calls=tuple(calls), finish="tool_calls"), results)
    messages, left = paused.with_results(results), paused.left(answers)
    if left:
        waiting = tuple(paused.open[one.id] for one in left)
        yield Done(Reply(calls=waiting, finish="tool_calls", messages=messages, steps=(step,), pending=left))
        return
    # Only now: a digest is of the conversation as it was stored.
    plan = loop(replace(task.request, messages=with_names(messages)), task.limits, task.reask.strategies)
    async with aclosing(task.play(plan)) as events:
        async for event in events:
            yield Done(replace(event.value, steps=(step, *event.value.steps))) if isinstance(event, Done) else event


def _events(calls: Sequence[ToolCall]) -> list[Event]:
    """The events of a turn with these calls, up to their results."""
    events: list[Event] = []
    for call in calls:
        events += [CallStart(call.name, call.id), ArgumentsDelta(arguments_text(call)), CallEnd()]
    return [*events, Finished("tool_calls")]


async def _results(
    calls: Sequence[ToolCall], answers: Answers, paused: _Paused, task: Job, policy: Policy, store: ApprovalStore
) -> tuple[ToolResult, ...]:
    """The results of the answered calls. Approved calls run, each approval marked as used before, unless the call
    already ran and its result is stored."""
    arguments = {call.id: canonical(call.arguments) for call in calls}

    def consume(call: ToolCall) -> bool | str:
        one = paused.pending[call.id]
        return store.consume(one.digest, one.expires) or (
            "the approval was already used. The call may have run, so it is not run again"
        )

    async def keep(result: ToolResult) -> None:
        if isinstance(result.error, CallError):  # it did not run
            return
        one = paused.pending[result.id]
        try:
            await in_thread(lambda: store.keep(one.digest, one.expires, arguments[one.id], result))
        except (OSError, sqlite3.Error) as error:
            log.warning("the result of the call %s cannot be stored in %s: %s", one.id, store.path, error)

    approved = [call for call in calls if _is_approved(answers[call.id])]
    before = {call.id: paused.ran_before(call) for call in approved}
    new = [call for call in approved if before[call.id] is None]
    ran = await task.run_calls(new, paused.before, policy=policy, approve=consume, ended=keep)
    by_id = {result.id: result for result in (*before.values(), *ran) if result}
    return tuple(by_id.get(call.id) or _without_running(call, answers[call.id]) for call in calls)


def _is_approved(decision: Any) -> bool:
    return decision is True or isinstance(decision, Edit)


def _without_running(call: ToolCall, decision: Any) -> ToolResult:
    """The result of a call that was rejected, or that a person answered."""
    if isinstance(decision, Answer):
        return ToolResult(call.id, call.name, result_text(decision.result), decision.result, origin="trusted")
    reason = f": {decision}" if decision else ""
    error = NotApproved(f"the call of {call.name!r} was not approved{reason}", call=call)
    return ToolResult(call.id, call.name, exception_text(error), error=error, origin="trusted")


class _Paused:
    """A conversation that ends with calls of which some have no result yet.

    `open` are those calls by id. `stored` are stored results of calls that ran before, by the digests of their
    approvals. `closed` are the digests of calls that were refused or answered before.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        pending: Sequence[Pending],
        stored: Mapping[str, StoredResult],
        closed: Collection[str],
    ) -> None:
        places = [at for at, message in enumerate(messages) if message.get("tool_calls")]
        if not places or not pending:
            raise UsageError("there is nothing to resume: expected a reply with pending calls, received one without")
        at = places[-1]
        self.before, self.asking, self.results = list(messages[:at]), messages[at], list(messages[at + 1 :])
        self.pending, self.stored, self.closed = {one.id: one for one in pending}, stored, closed
        done = {message.get("tool_call_id") for message in self.results}
        calls = [read_call(call) for call in self.asking.get("tool_calls", [])]
        self.ids = [call.id for call in calls]
        self.open = {call.id: call for call in calls if call.id not in done}

    def answered(self, answers: Answers, box: Toolbox) -> list[ToolCall]:
        """The answered calls as they will run. Raises UsageError and StaleApproval."""
        calls: list[ToolCall] = []
        for key, answer in answers.items():
            if key not in self.pending:
                raise UsageError(f"no call {key[:80]!r} is pending. Pending are: {listed(list(self.pending))}")
            if not isinstance(answer, bool | str | Edit | Answer):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UsageError(f"{key[:80]}: expected True, a reason, Edit or Answer, received {answer!r:.80}")
            call = self._call(self.pending[key])
            if _is_approved(answer):
                self._check(self.pending[key], box)
            calls.append(self._edited(call, answer, box) if isinstance(answer, Edit) else call)
        return calls

    def _edited(self, call: ToolCall, edit: Edit, box: Toolbox) -> ToolCall:
        """The call with other arguments. Raises UsageError if the tool cannot be called with them."""
        call = replace(call, arguments=dict(edit.arguments), json="")
        has_run = self.pending[call.id].digest in self.stored
        if not has_run and (error := box.validate(call).error):
            raise UsageError(
                f"{call.id[:80]}: these arguments cannot replace those of the call, which stays pending: {error}"
            )
        return call

    def ended(self, answers: Answers) -> tuple[dict[str, float], dict[str, float]]:
        """The calls that a person refused, and those answered: the digest of each, and until when it can be approved."""
        refused: dict[str, float] = {}
        answered: dict[str, float] = {}
        for key, answer in answers.items():
            if not _is_approved(answer):
                one = self.pending[key]
                (answered if isinstance(answer, Answer) else refused)[one.digest] = one.expires
        return refused, answered

    def check_ended(self, late: Collection[str]) -> None:
        """Raises StaleApproval if there is a call that was refused or answered after its approval was used."""
        for one in self.pending.values():
            if one.digest in late:
                raise StaleApproval(
                    f"the call {one.id!r:.80} of {one.tool!r:.80} cannot be refused or answered any more: its approval "
                    "was already used. The call has run, or may have. Approve it to continue: it is not run again"
                )

    def left(self, answers: Answers) -> tuple[Pending, ...]:
        """The calls that stay pending."""
        return tuple(one for one in self.pending.values() if one.id not in answers)

    def ran_before(self, call: ToolCall) -> ToolResult | None:
        """The stored result, if the call ran before with these arguments."""
        stored = self.stored.get(self.pending[call.id].digest)
        return stored.result(call.id, call.name) if stored and stored.arguments == canonical(call.arguments) else None

    def with_results(self, results: Sequence[ToolResult]) -> list[Message]:
        """The conversation with the new results, all in the order of their calls."""
        new = [labelled(answer_message(self.open[one.id], one.text), one) for one in results]
        rows = sorted([*self.results, *new], key=lambda row: self.ids.index(row.get("tool_call_id", "")))
        return [*self.before, self.asking, *rows]

    def _call(self, one: Pending) -> ToolCall:
        """The call as it was shown for approval. Raises StaleApproval if the conversation has a different one."""
        call = self.open.get(one.id)
        if call is None or self.ids.count(one.id) != 1:
            raise _stale(one, "the conversation has no such call without a result")
        if (call.name, canonical(call.arguments)) != (one.tool, canonical(one.arguments)):
            raise _stale(one, f"the conversation has another call: {call.name} {canonical(call.arguments)[:500]}")
        return call

    def _check(self, one: Pending, box: Toolbox) -> None:
        """Raises StaleApproval if the approval would be for something else than was shown, or comes too late."""
        if one.digest in self.closed:
            raise _stale(one, "it was refused or answered before, and then it is closed")
        if one.digest not in self.stored:  # otherwise it has run already
            self._check_tool(one, box)
        if call_digest(one.definition, one.id, one.arguments, self.before, one.expires) != one.digest:
            raise _stale(
                one, "the conversation before the call, or the time until which it can be approved, has changed"
            )
        if time.time() >= one.expires:
            raise _stale(one, "the approval has expired")

    def _check_tool(self, one: Pending, box: Toolbox) -> None:
        """Raises StaleApproval if the tool differs from the one that was shown."""
        if one.tool not in box:
            raise _stale(one, f"there is no such tool. There are: {listed([tool.name for tool in box]) or 'none'}")
        if (definition := definition_digest(box[one.tool])) != one.definition:
            raise _stale(one, f"the tool's definition has changed, from {one.definition} to {definition}")


def _stale(one: Pending, why: str) -> StaleApproval:
    return StaleApproval(f"the call {one.id!r:.80} of {one.tool!r:.80} cannot be approved as it was shown: {why}")


# ------------------------------------------------------------------ what is resumed


def read_paused(reply: Reply | str | Mapping[str, Any]) -> tuple[list[Message], tuple[Pending, ...]]:
    """The conversation and its pending calls. Raises UsageError if `reply` is neither a Reply nor its JSON."""
    if isinstance(reply, Reply):
        return reply.messages, reply.pending
    try:
        data: Any = json.loads(reply) if isinstance(reply, str) else reply
        rows, messages = data["pending"], data["messages"]
        pending = tuple(_pending(row) for row in rows)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(
            f"expected a Reply, or its JSON with messages and pending (reply.to_json()), received {str(reply)[:80]!r}"
        ) from error
    if not isinstance(messages, list):
        raise UsageError(f"messages: expected a list, received {messages!r:.80}")
    return cast("list[Message]", messages), pending


def _pending(row: Any) -> Pending:
    one = Pending(**{name: row[name] for name in FIELDS})
    texts: list[Any] = [one.id, one.tool, one.why, one.origin, one.digest, one.definition]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("expected a string")
    return replace(one, arguments=dict(one.arguments), expires=float(one.expires))
