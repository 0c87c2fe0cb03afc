"""The loop: ask, run the calls, give the results back, until the model answers in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import LimitReached
from ..events import Finished, Noted
from ..types import Message, Note, Reply, Request, Step, ToolResult, Usage
from .calls import answer, assistant
from .effects import Plan, ask, run, tell

SAME = 3
"""The same call with the same result, this many times, ends a run: the model is going in circles."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a run may go: model turns, seconds of wall time, tokens as the model counts them, calls run.

    A limit ends in an answer with `finish="limit"`, never in an exception: after `steps` and `calls` the
    model is asked once more without tools; after `seconds` and `tokens` the reply is what there is.
    """

    steps: int = 16
    seconds: float | None = None
    tokens: int | None = None
    calls: int | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "seconds", "tokens", "calls"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"limits: expected {name} above 0, received {value!r}")


def loop(request: Request, limits: Limits) -> Plan[Reply]:
    """The last reply of a run: its `messages` the whole conversation, its `steps` each turn with its results."""
    run_so_far = _Run(request, limits)
    try:
        while True:
            reply = yield from ask(run_so_far.request(), live=True)
            run_so_far.took(reply)
            why = run_so_far.exhausted(reply)
            if not reply.calls or why == "tokens":
                return run_so_far.finished(reply, why if reply.calls or why == "tokens" else "")
            if not why:
                results = yield from run(reply.calls)
                run_so_far.ran(reply, results)
                why = run_so_far.circling()
            else:
                run_so_far.refused(reply, why)
            if why:
                yield from tell(Noted(Note(f"limit-{why}")))
                last = yield from ask(run_so_far.request(tools=False), live=True)
                run_so_far.took(last)
                return run_so_far.finished(last, why)
    except LimitReached as error:
        yield from tell(Finished("limit"))
        return run_so_far.finished(error.reply or Reply(), error.limit)


class _Run:
    """What a run has come to so far."""

    def __init__(self, request: Request, limits: Limits) -> None:
        self.asked = request
        self.limits = limits
        self.messages: list[Message] = list(request.messages)
        self.steps: list[Step] = []
        self.seen: Counter[object] = Counter()
        self.calls = 0
        self.usage = Usage()

    def request(self, *, tools: bool = True) -> Request:
        asked = replace(self.asked, messages=list(self.messages))
        if not tools:
            return replace(asked, choice="none")
        # A demand for a call holds for the first turn: after its result the model must be free to answer.
        return replace(asked, choice="auto") if self.steps and asked.choice != "none" else asked

    def took(self, reply: Reply) -> None:
        a, b = self.usage, reply.usage
        self.usage = Usage(
            a.prompt_tokens + b.prompt_tokens,
            a.completion_tokens + b.completion_tokens,
            a.cached_tokens + b.cached_tokens,
        )

    def exhausted(self, reply: Reply) -> str:
        """The limit that is reached by this reply, or ""."""
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
        self.calls += len(reply.calls)
        self.steps.append(Step(reply, tuple(results)))
        self.messages.append(assistant(reply))
        for call, result in zip(reply.calls, results, strict=True):
            self.messages.append(answer(call, result.text))
            self.seen[(call.name, call.json or repr(call.arguments), result.text)] += 1

    def refused(self, reply: Reply, why: str) -> None:
        """Calls that are not run any more: answered all the same, for every call needs an answer."""
        self.steps.append(Step(reply))
        self.messages.append(assistant(reply))
        for call in reply.calls:
            self.messages.append(
                answer(call, f'{{"error": "Not run: the limit of {why} is reached. Answer in words."}}')
            )

    def circling(self) -> str:
        return "repeats" if any(count >= SAME for count in self.seen.values()) else ""

    def finished(self, reply: Reply, why: str) -> Reply:
        notes = (*reply.notes, Note(f"limit-{why}")) if why else reply.notes
        messages = [*self.messages, assistant(replace(reply, calls=()))]
        finish = "limit" if why else reply.finish
        steps = (*self.steps, Step(reply))
        return replace(reply, finish=finish, notes=notes, usage=self.usage, messages=messages, steps=steps)
