"""The effects that a plan can request.

A plan is a generator that decides what to do next and does no I/O itself. It yields an effect, for example `Ask` for a
request to the model. The driver (`toolspeak.drive`) carries the effect out and sends the outcome back; if that fails,
it raises the error in the plan. The value that the generator returns is the plan's result. A plan runs another as a
part of itself by `yield from`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from ..errors import LimitReached, ToolspeakError
from ..events import Event, Finished, Noted
from ..types import Message, Note, Reply, Request, ToolCall, ToolResult, Usage
from ..wire.prompt.control_markers import cleaner
from ..wire.prompt.known_markers import control_markers
from ..wire.reading.collect import add_usage
from .attempted_call import attempted

T = TypeVar("T")
Reads = Callable[[Event | None], Iterable[Event]]
"""Converts the model's events as they arrive; None is the end."""
REASKED = Note("re-asked", "the server dropped the tools")
IN_PROMPT = "tools-in-prompt"
"""The rule of a note: the server dropped the tools of this request, and they go into the prompt from now on."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model. The outcome is its Reply, or None if `recorded` is false.

    `live` passes events on as they arrive. `read` converts events, for example with a decoder: it is called with each
    event, and with None at the end. `by` names another model that the driver knows; "" is the plan's own.
    """

    request: Request
    live: bool = False
    read: Reads | None = None
    recorded: bool = True
    by: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """Score each (prompt, continuation). The outcome is a list of log-likelihoods."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Run:
    """Run calls. The outcome is a tuple of ToolResults in their order. `messages` is the conversation before them.
    Whoever runs them adds each result to `ended` at once: if a limit stops the others, these count."""

    calls: Sequence[ToolCall]
    messages: Sequence[Message] = ()
    ended: list[ToolResult] = field(default_factory=list[ToolResult], compare=False)


@dataclass(frozen=True, slots=True)
class Tell:
    """Pass events on to the consumer. There is no outcome."""

    events: Sequence[Event]


Effect = Ask | Score | Run | Tell
Plan = Generator[Effect, Any, T]


def ask(request: Request, *, live: bool = False, by: str = "", read: Reads | None = None) -> Plan[Reply]:
    """The reply to one request. It is asked again if the reply has a note that the model did not get the tools, and is asked
    with the tools in the prompt from now on."""
    reply: Reply = yield Ask(request, live, read, by=by)
    moved = next((note for note in reply.notes if note.rule == IN_PROMPT), None)
    if moved is None:
        return reply
    if request.choice == "auto" and reply.text.strip():
        return (yield from _ask_for_call(request, reply, by=by, read=read))
    yield from tell(Noted(REASKED))
    other = yield from ask(request, live=live, by=by, read=read)
    return _after(reply, other)


def _ask_for_call(request: Request, reply: Reply, *, by: str, read: Reads | None) -> Plan[Reply]:
    """The reply to a request that is asked again after an answer in words: it counts if it has a call. Otherwise the answer
    stays, because it was passed on already."""
    events: list[Event] = []
    try:
        other: Reply = yield Ask(request, read=_recorded(read, events), by=by)
    except LimitReached as error:
        error.reply = reply
        raise
    if not any((other.calls, attempted(other, request))):
        yield from tell(Finished(reply.finish, other.usage))  # each request to the model has one, with what it cost
        return replace(reply, usage=add_usage(reply.usage, other.usage))
    yield from tell(Noted(REASKED), *events)
    return _after(reply, other)


def _after(reply: Reply, other: Reply) -> Reply:
    """The other reply, with what the first one cost and said of the tools."""
    moved = [note for note in reply.notes if note.rule == IN_PROMPT]
    return replace(other, usage=add_usage(reply.usage, other.usage), notes=(*moved, REASKED, *other.notes))


def _recorded(read: Reads | None, events: list[Event]) -> Reads:
    """Reads as `read` does, and adds what came to `events`."""

    def recorded(event: Event | None) -> Iterable[Event]:
        came = read(event) if read else () if event is None else (event,)
        for one in came:
            events.append(one)
            yield one

    return recorded


def score(pairs: Sequence[tuple[str, str]]) -> Plan[list[float]]:
    """The log-likelihood of each pair. A prompt for scoring has no control markers of its own, so any in it came from
    outside and are defused."""
    clean = cleaner(control_markers(None), [], open_ended=True)
    outcome: list[float] = yield Score([(clean(prompt), clean(rest)) for prompt, rest in pairs])
    return outcome


def run(
    calls: Sequence[ToolCall], messages: Sequence[Message], ended: list[ToolResult]
) -> Plan[tuple[ToolResult, ...]]:
    """The result of each call, after these messages; each is in `ended` as soon as there is one."""
    outcome: tuple[ToolResult, ...] = yield Run(calls, messages, ended)
    return outcome


def spending(plan: Plan[T], spent: list[Usage]) -> Plan[T]:
    """The same plan, with the usage of each reply added to `spent`. Models report no usage for scoring."""
    try:
        effect = next(plan)
        while True:
            try:
                outcome = yield effect
            except ToolspeakError as error:
                effect = plan.throw(error)
                continue
            if isinstance(outcome, Reply):
                spent.append(outcome.usage)
            effect = plan.send(outcome)
    except StopIteration as end:
        return cast("T", end.value)


def tell(*events: Event) -> Plan[None]:
    """Passes events on."""
    yield Tell(events)
