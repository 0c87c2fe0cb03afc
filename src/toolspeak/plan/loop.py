"""The tool loop: ask the model, run its calls, return the results, until the model answers in text.

Pitfalls: every call in a conversation needs a result, also one that will not run. A required call applies only to the
first turn, otherwise the model could never answer. After a limit the model is asked once more without tools, so that
the user gets an answer. The same call with the same result again and again ends the run, and of equal calls in one reply
only the first few run: a model that is caught in a loop writes the same call until its reply ends. A failed request goes
to the next model, if the re-asking strategies name one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..api.tool_errors import error_text
from ..errors import ApprovalNeeded, LimitReached, ModelError, ToolError, ToolTimeout, UsageError
from ..events import CallResult, Finished, Noted
from ..schema.phrases import clipped
from ..tool_results import result_text
from ..types import Message, Note, Pending, Reply, Request, Step, ToolCall, ToolResult, Usage
from ..wire.reading.collect import add_usage
from .attempted_call import attempted, in_full, tries_of
from .calls import UNNAMED, answer, assistant, checked, not_allowed, one_call, without_calls, written
from .effects import Plan, Reads, ask, run, tell
from .reask import ReaskState, ReaskStrategy, usual
from .refused_replies import shortened
from .result_pages import LONGEST_IN_ALL
from .token_limit import ended_at

SAME = 3
"""The same call with the same result this many times ends a run: the model is going in circles. Of equal calls in one reply
so many run."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run: model turns, seconds of wall time, tokens as reported by the model, calls that are run.

    A limit ends the run with `finish="limit"`, never with an exception. After `steps` or `calls` the model is asked
    once more without tools; after `seconds` or `tokens` the reply is what has arrived. Calls that run at the end of
    `seconds` are stopped; results of others that had ended count. If a reply has more calls than `calls` leaves, none of them runs. A reply that streams on is
    ended at about twice the tokens that are left; `max_tokens` limits it exactly.
    """

    steps: int = 16
    seconds: float | None = None
    tokens: int | None = None
    calls: int | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "seconds", "tokens", "calls"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | float) or not value > 0):
                raise UsageError(f"limits: expected {name} as a number above 0, received {value!r}")


def loop(request: Request, limits: Limits, strategies: Sequence[ReaskStrategy] = usual(())) -> Plan[Reply]:
    """The final reply of a run: its `messages` are the whole conversation, its `steps` each turn with its results.

    The problems of a call are its result. `strategies` are the re-asking strategies for the turn after it. After a valid
    turn, and after the last strategy, the model is asked in the usual way.
    """
    so_far = _Run(request, limits, strategies)
    try:
        while True:
            came = so_far.reask.settled((yield from _next_reply(so_far)))
            reply = so_far.judged(came)
            if dropped := reply.notes[len(came.notes) :]:  # calls that were passed on already
                yield from tell(*map(Noted, dropped))
            so_far.took(reply)
            why = so_far.exhausted(reply)
            if not reply.calls:
                again = so_far.reask_text(reply, why)
                if again is None:
                    return so_far.finished(reply, why)
                yield from tell(Noted(again))
                continue
            if not why:
                why = yield from _run_calls(so_far, reply)
                if so_far.pending:
                    return so_far.paused(reply)
            else:
                so_far.refused(why)
            if why:
                yield from tell(Noted(so_far.limit_note(why)))
            if why == "tokens":
                return so_far.finished(Reply(reply.text), why)
            if why:
                last = yield from _next_reply(so_far, tools=False)
                so_far.took(last)
                return so_far.finished(last, why)
    except LimitReached as error:
        yield from tell(*map(CallResult, so_far.stopped(error.limit)), Finished("limit"))
        so_far.refused(error.limit)
        cut = error.reply or Reply()
        so_far.notes += cut.notes
        return so_far.finished(cut, error.limit)


def labelled(message: Message, result: ToolResult) -> Message:
    """The message with the origin label of the result, if it has one."""
    return message if result.origin is None else {**message, "origin": result.origin}


def _run_calls(so_far: _Run, reply: Reply) -> Plan[str]:
    """Runs the calls of a reply. Returns why the run ends with them, "" if it continues."""
    surplus = _surplus(reply.calls) | so_far.forbidden(reply.calls)
    so_far.ended = list(surplus.values())
    runs = [call for place, call in enumerate(reply.calls) if place not in surplus]
    results = iter((yield from run(runs, list(so_far.messages), so_far.ended)))
    if surplus:
        yield from tell(*map(CallResult, surplus.values()))
    so_far.ran(reply, [surplus.get(place) or next(results) for place in range(len(reply.calls))])
    if so_far.pending:
        return ""
    why = so_far.circling()
    if not why and (again := so_far.reask_after_wrong(reply)):
        yield from tell(Noted(again))
    return why


def _surplus(calls: Sequence[ToolCall]) -> dict[int, ToolResult]:
    """The results of the calls that are the same as SAME others before them and do not run, by their place."""
    if len(calls) <= SAME:
        return {}
    count: Counter[tuple[str, str]] = Counter()
    surplus: dict[int, ToolResult] = {}
    message = f"This call was not run, because the same reply has it {SAME} times before."
    for place, call in enumerate(calls):
        key = call.name, written(call)
        count[key] += 1
        if count[key] > SAME:
            surplus[place] = _not_run(call, message)
    return surplus


def _not_run(call: ToolCall, why: str) -> ToolResult:
    return ToolResult(call.id, call.name, error_text(why), error=ToolError(why))


def _next_reply(so_far: _Run, *, tools: bool = True) -> Plan[Reply]:
    """The next reply, from another model if the current one fails."""
    while True:
        try:
            request, read = so_far.request(tools=tools), so_far.limited()
            return (yield from ask(request, live=True, by=so_far.reask.by, read=read))
        except ModelError as error:
            if not so_far.reask_after_error(error):
                raise
            yield from tell(Noted(so_far.noted(f"{type(error).__name__}: {error}")))


def _stopped(call: ToolCall, result: ToolResult | None, limit: str) -> ToolResult:
    """The result of a call, or an error if the limit came before it."""
    message = f"the call of {call.name!r} was stopped at the run's limit of {limit}; it may have had effects"
    if result is not None:
        if not isinstance(result.error, ApprovalNeeded):
            return result
        message = f"the call of {call.name!r} needs approval, and the run ended at its limit of {limit}; it was not run"
    return ToolResult(call.id, call.name, error_text(message), error=ToolTimeout(message, call=call))


class _Run:
    """The state of a run."""

    def __init__(self, request: Request, limits: Limits, strategies: Sequence[ReaskStrategy]) -> None:
        self.first_request = request
        self.limits = limits
        self.strategies = strategies
        self.reask = ReaskState(request, strategies)
        self.wrong: list[tuple[ToolCall, str]] = []
        """The invalid calls of the last reply, each with the reason."""
        self.called = False
        """Whether the model made a call that it may make: a required one applies no longer."""
        self.attempted: list[str] = []
        """The texts in a row that were meant as calls."""
        self.before: list[tuple[str, str]] = []
        """The invalid calls of the reply before, as text."""
        self.messages: list[Message] = list(request.messages)
        self.steps: list[Step] = []
        self.notes: list[Note] = []
        """Those of all turns so far, and why the model was asked again."""
        self.seen: Counter[tuple[str, str, str]] = Counter()
        self.calls = 0
        self.length = 0
        """Characters of all results so far."""
        self.usage = Usage()
        self.open: Reply | None = None
        """The last reply, while its calls have no results yet."""
        self.ended: list[ToolResult] | None = None
        """The results of its calls so far; None if these were not started."""
        self.pending: tuple[Pending, ...] = ()
        self.waiting: tuple[ToolCall, ...] = ()
        """The calls that are pending."""

    def request(self, *, tools: bool = True) -> Request:
        if not tools:
            return replace(self.first_request, messages=list(self.messages), choice="none")
        base = self.reask.request if self.reask.forced else self._usual(self.reask.request)
        return replace(base, messages=list(self.messages))

    def limited(self) -> Reads | None:
        """What ends a reply at the tokens that are left; None without a limit."""
        spent = self.usage.prompt_tokens + self.usage.completion_tokens
        return ended_at(self.limits.tokens - spent) if self.limits.tokens else None

    def _usual(self, request: Request | None = None) -> Request:
        """The request of a turn that is not the first."""
        request = request or self.first_request
        # A required call applies to the first turn: after its result the model must be free to answer in text.
        return replace(request, choice="auto") if self.called and request.choice != "none" else request

    def judged(self, reply: Reply) -> Reply:
        """The reply with its calls coerced as they will run, with notes. Calls beside a text are dropped if none is allowed,
        and all but the first if only one is."""
        choice = self._usual().choice
        if all((choice == "none", reply.calls, reply.text.strip())):
            reply = without_calls(reply)
        reply = reply if self.first_request.parallel else one_call(reply)
        judged = [checked(call, self.first_request.tools or (), reply.finish) for call in reply.calls]
        reasons = [
            not_allowed(call, choice) or "".join(one.message for one in problems[:1]) for call, problems in judged
        ]
        reply = replace(reply, calls=tuple(call for call, _ in judged))
        self.wrong = [(call, why) for call, why in zip(reply.calls, reasons, strict=True) if why]
        return reply

    def forbidden(self, calls: Sequence[ToolCall]) -> dict[int, ToolResult]:
        """The results of the calls that the choice of the request forbids, by their place: they do not run."""
        choice = self._usual().choice
        forbidden = {
            place: _not_run(call, why) for place, call in enumerate(calls) if (why := not_allowed(call, choice))
        }
        self.called |= len(forbidden) < len(calls)
        return forbidden

    def reask_after_wrong(self, reply: Reply) -> Note | None:
        """Moves to the next re-asking strategy if the reply was wrong; returns a note of it if the results do not show
        it."""
        before, self.before = self.before, [(call.name, written(call)) for call, _ in self.wrong]
        if not self.wrong:
            self.reask = ReaskState(self._usual(), self.strategies)
            return None
        calls = [call for call, _ in self.wrong]
        if not self.reask.advance(reply, same=self.before == before, wrong=calls):
            self.reask = ReaskState(self._usual(), ())
            return None
        return self.noted(self.wrong[0][1]) if self.reask.strategy != "told" else None

    def reask_text(self, reply: Reply, why: str) -> Note | None:
        """Asks again after a text that was meant as a call; returns a note of it. None if it is an answer, if the run is at
        its limit (`why`), or if the model cannot do better."""
        request = self._usual()
        wrong = "" if why else attempted(reply, request)
        same = reply.text in self.attempted
        self.attempted = [*self.attempted, reply.text] if wrong else []
        tries = tries_of(reply, request)
        if any((not wrong, len(self.attempted) >= tries, len(self.steps) + 1 >= self.limits.steps)):
            return None
        step = Step(reply, strategy=self.reask.strategy)
        if not self.reask.advance(reply, same=same) and not self.reask.tell_again(same=same):
            return None
        self.steps.append(step)
        self.messages += [assistant(shortened(reply, (), text=True)), *in_full(wrong)]
        return self.noted(wrong)

    def reask_after_error(self, error: ModelError) -> bool:
        """Moves to another strategy or model after a failed request; False if there is none that has not failed."""
        elsewhere = self.reask.by.startswith("model") or self.reask.refused(error)
        if self.reask.advance_after_error(error):
            return True
        if elsewhere and self.wrong:  # the first model is alive: it answered, though wrongly
            self.reask = ReaskState(self._usual(), ())
            return True
        return False

    def noted(self, why: str) -> Note:
        """Adds the note that the model is asked again, with the strategy and the reason."""
        strategy = self.reask.strategy
        self.notes.append(Note("re-asked", why if strategy in ("", "told") else f"{strategy}: {why}"))
        return self.notes[-1]

    def took(self, reply: Reply) -> None:
        self.notes += reply.notes
        self.usage = add_usage(self.usage, reply.usage)
        self.open = reply if reply.calls else None

    def exhausted(self, reply: Reply) -> str:
        """The limit that this reply reaches, or ""."""
        if self.limits.tokens and self.usage.prompt_tokens + self.usage.completion_tokens >= self.limits.tokens:
            return "tokens"
        if not reply.calls:
            return ""
        if len(self.steps) + 1 >= self.limits.steps:
            return "steps"
        if self.limits.calls is not None and self.calls + len(reply.calls) > self.limits.calls:
            return "calls"
        return ""

    def ran(self, reply: Reply, results: Sequence[ToolResult]) -> None:
        self.open = self.ended = None
        self.attempted = []
        self.calls += len(reply.calls)
        self.steps.append(Step(reply, tuple(results), self.reask.strategy))
        self.messages.append(assistant(shortened(reply, [call for call, _ in self.wrong])))
        errors = [result.error for result in results]
        self.pending = tuple(error.pending for error in errors if isinstance(error, ApprovalNeeded))
        ran = list(zip(reply.calls, results, strict=True))
        self.waiting = tuple(call for call, result in ran if isinstance(result.error, ApprovalNeeded))
        for call, result in ran:
            if isinstance(result.error, ApprovalNeeded):
                continue
            self.messages.append(labelled(answer(call, self._within(result.text)), result))
            self.seen[(call.name, written(call), result.text)] += 1

    def _within(self, text: str) -> str:
        """The text of a result for the conversation: whole, until all results together are too long."""
        self.length += len(text)
        return text if self.length <= LONGEST_IN_ALL else result_text(text)

    def stopped(self, limit: str) -> list[ToolResult]:
        """The results of the calls when the run reached a limit: of those that had ended, and errors for the others, which
        were running, or waiting for their turn or for approval."""
        if self.open is None or self.ended is None:
            return []
        ended = {result.id: result for result in self.ended}
        results = [_stopped(call, ended.pop(call.id, None), limit) for call in self.open.calls]
        self.ran(self.open, results)
        return results

    def refused(self, why: str) -> None:
        """Adds results for calls that will not run, since every call in a conversation needs one."""
        if self.open is None:
            return
        self.steps.append(Step(self.open, strategy=self.reask.strategy))
        self.messages.append(assistant(self.open))
        text = error_text(f"No result: the limit of {why} is reached. Answer in words.")
        self.messages += [answer(call, text) for call in self.open.calls]
        self.open = None

    def paused(self, reply: Reply) -> Reply:
        """The reply of a run that waits for approval; its `calls` are the waiting ones."""
        notes = (*self.notes, *(Note("waits-for-approval", call.name) for call in self.waiting))
        paused = replace(
            reply, calls=self.waiting, finish="tool_calls", usage=self.usage, pending=self.pending, notes=notes
        )
        return replace(paused, messages=list(self.messages), steps=tuple(self.steps))

    def limit_note(self, why: str) -> Note:
        """The note about the limit that ended the run: what it was, and how to raise it."""
        if why == "repeats":
            name = max(self.seen, key=self.seen.__getitem__)[0]
            problem = next((f", which was not run: {problem}" for call, problem in self.wrong if call.name == name), "")
            same = f"the model made the same call with the same result {SAME} times"
            return Note("limit-repeats", f"{same}: {clipped(name, 100) or UNNAMED}{clipped(problem, 500)}")
        limit = getattr(self.limits, why)
        raised = f"limits={{{why!r}: …}} (--{why} of ask, chat and resume)"
        last = sum(len(step.reply.calls) for step in self.steps[-1:])
        ran = f": {self.calls} ran, and none of the {last} in its last reply"
        much = f"{limit:g} {why}{ran if why == 'calls' else ''}"
        return Note(f"limit-{why}", f"the run reached its limit of {much}; to raise it: {raised}")

    def circling(self) -> str:
        return "repeats" if any(count >= SAME for count in self.seen.values()) else ""

    def finished(self, reply: Reply, why: str) -> Reply:
        """The reply as that of the run. A call that came too late gets a note; it is neither run nor in `messages`."""
        ends = [*(Note("not-run", call.name) for call in reply.calls), self.limit_note(why)] if why else []
        finish = "limit" if why else reply.finish
        last = replace(reply, calls=(), finish=finish, notes=(*reply.notes, *ends))
        steps = (*self.steps, Step(last, strategy=self.reask.strategy))
        messages = [*self.messages, assistant(last)]
        return replace(last, usage=self.usage, messages=messages, steps=steps, notes=(*self.notes, *ends))
