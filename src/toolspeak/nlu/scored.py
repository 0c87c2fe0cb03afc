"""Tool calling by likelihood, for a model that was not trained on tools. It is the only entry point of this package.

The plan scores which tool makes the request most likely (`intent`), then fills each argument from the text of the
request (`slots`), for as many calls as it needs (`multiple`). Nothing is sampled, so that temperature, seed and
similar settings have no effect; a note says so. If the request lacks a required argument there is no call, and the
answer says what is missing, or the model answers in words if the request may need no tool. After a tool result, the model puts it into words; it is not offered tools again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import Any

from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted, TextDelta
from ..plan.conclude import conclude
from ..plan.effects import Plan, spending, tell
from ..plan.prompted import check_parts, last_question, offered, words
from ..plan.stop_strings import Stops
from ..schema.check import check
from ..types import Note, Problem, Request, Tool, Usage
from ..wire.dialect import Dialect
from ..wire.reading.collect import add_usage
from .intent import Choice, choose
from .multiple.calls import calls_for

NESTED = (
    "a model that decides by likelihood, such as the embedded one, seldom fills objects inside others and lists of "
    "objects, and is not asked again; use another one (model=…, --model)"
)


def scored(
    request: Request, dialect: Dialect, can: Collection[str], ids: Callable[[], str], without_tools: Plan[None]
) -> Plan[None]:
    """Passes on the events of the reply: calls decided by likelihood, or text in the dialect. `without_tools` is the
    plan for a request that offers none.

    Raises UsageError for a request with parts that are not text, or with logprobs.
    """
    tools = offered(request)
    if not tools:
        yield from without_tools
        return
    check_parts(request, True, True)
    question, results = last_question(request.messages)
    if not (results and request.choice == "auto"):
        yield from _decided(request, tools, question, dialect, can, ids)
    elif request.schema is not None:
        yield from words(request, dialect, can, ids)
    else:
        yield from _concluded(request, question, results)


def _concluded(request: Request, question: str, results: list[str]) -> Plan[None]:
    """A sentence about the results of earlier calls."""
    reply = yield from conclude(question, results[0] if len(results) == 1 else "\n".join(results))
    yield from tell(*(Noted(note) for note in reply.notes))
    yield from _known_text(request, reply.text, reply.usage)


def _known_text(request: Request, text: str, usage: Usage) -> Plan[None]:
    """A text that is known already."""
    yield from tell(*Stops(request.stop).feed([TextDelta(text), Finished("stop", usage)]))


def _without_call(
    request: Request, choice: Choice, problems: Sequence[Problem], usage: Usage, in_words: Plan[None]
) -> Plan[None]:
    """The answer if the tool is not called. A weak model, left to answer `in_words`, claims that it was: if the request
    clearly needs the tool and lacks its arguments, the answer says so."""
    if not all((problems, choice.clear, request.schema is None)):
        yield from in_words
        return
    messages = dict.fromkeys(problem.message for problem in problems)
    yield from _known_text(request, f"{choice.tool.name} was not called: {'; '.join(messages)}.", usage)


def _call_events(name: str, call_id: str, arguments: Mapping[str, Any]) -> tuple[Event, ...]:
    return CallStart(name, call_id), ArgumentsDelta(json.dumps(arguments, ensure_ascii=False)), CallEnd()


def _decided(
    request: Request,
    tools: Sequence[Tool[..., Any]],
    question: str,
    dialect: Dialect,
    can: Collection[str],
    ids: Callable[[], str],
) -> Plan[None]:
    """The call of the tool that the question needs, or text."""
    spent: list[Usage] = []
    choice = yield from choose(tools, question, may_reply=request.choice == "auto", ranked=request.ranked)
    if choice is None:
        yield from words(request, dialect, can, ids)
        return
    tool = choice.tool
    calls, notes = yield from spending(calls_for(tool, question, several=request.parallel), spent)
    problems = [problem for arguments in calls for problem in check(tool, arguments)]
    unfilled = tuple(Note("unfilled", problem.message) for problem in problems) + _too_nested(problems)
    usage = reduce(add_usage, spent, Usage())
    if request.choice == "auto" and (problems or not choice.stands(notes)):
        # No tool is called with required arguments that are not in the request.
        yield from tell(*(Noted(note) for note in unfilled))
        yield from _without_call(request, choice, problems, usage, words(request, dialect, can, ids))
        return
    yield from tell(
        *(event for arguments in calls for event in _call_events(tool.name, ids(), arguments)),
        *(Noted(note) for note in (*notes, *unfilled, *_unsampled(request))),
        Finished("tool_calls", usage),
    )


def _too_nested(problems: Sequence[Problem]) -> tuple[Note, ...]:
    """A note if a missing value is an object or a list of objects."""
    nested = any("object" in problem.expected.split() for problem in problems)
    return (Note("unfilled-objects", NESTED),) if nested else ()


def _unsampled(request: Request) -> tuple[Note, ...]:
    """Notes on settings that a decision by likelihood does not use."""
    settings = {"temperature": request.temperature, "seed": request.seed, "max_tokens": request.max_tokens}
    names = [name for name, value in settings.items() if value is not None] + sorted(request.sampling)
    return (Note("not-sampled", f"decided by likelihood, without {', '.join(names)}"),) if names else ()
