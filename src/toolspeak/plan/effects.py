"""The effects that a plan can request. A driver carries them out and sends the outcome back; a failure is raised in the
plan.

A plan is `Generator[Effect, Outcome, Value]`; parts of one are other plans, by `yield from`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from ..errors import ToolspeakError
from ..events import Event
from ..types import Message, Reply, Request, ToolCall, ToolResult, Usage
from ..wire.prompt.control_markers import cleaner, control_markers

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model. The outcome is its Reply, or None where it is not `kept`. `live` passes the events on as they
    arrive; `read` makes events of another text from them (a decoder's feed): it is given each event, and None at the
    end. `by` names another model that is to answer, one that the driver was told of; "" is the plan's own."""

    request: Request
    live: bool = False
    read: Callable[[Event | None], Iterable[Event]] | None = None
    recorded: bool = True
    by: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """Ask how likely each (prompt, continuation) is. The outcome is a list of log-likelihoods."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Run:
    """Run calls. The outcome is a tuple of ToolResults, in the order of the calls. `messages` is the conversation before
    them."""

    calls: Sequence[ToolCall]
    messages: Sequence[Message] = ()


@dataclass(frozen=True, slots=True)
class Tell:
    """Pass events on to whoever listens. There is no outcome."""

    events: Sequence[Event]


Effect = Ask | Score | Run | Tell
Plan = Generator[Effect, Any, T]


def ask(request: Request, *, live: bool = False, by: str = "") -> Plan[Reply]:
    """The reply to one request."""
    reply: Reply = yield Ask(request, live, by=by)
    return reply


def score(pairs: Sequence[tuple[str, str]]) -> Plan[list[float]]:
    """The log-likelihood of each pair. No prompt of likelihoods has markers of its own: all that are in it came from
    outside, and are broken."""
    clean = cleaner(control_markers(None), [], open_ended=True)
    outcome: list[float] = yield Score([(clean(prompt), clean(rest)) for prompt, rest in pairs])
    return outcome


def run(calls: Sequence[ToolCall], messages: Sequence[Message] = ()) -> Plan[tuple[ToolResult, ...]]:
    """The result of each call, behind these messages."""
    outcome: tuple[ToolResult, ...] = yield Run(calls, messages)
    return outcome


def spending(plan: Plan[T], spent: list[Usage]) -> Plan[T]:
    """The same plan; what each reply in it cost is added to `spent`. What likelihoods cost, no model tells."""
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
    """Events, passed on."""
    yield Tell(events)
