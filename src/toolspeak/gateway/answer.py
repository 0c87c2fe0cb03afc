"""A model's reply as the gateway passes it on: text as it comes, calls whole and checked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace

from ..drive import Done, play
from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Logprobs, Noted, TextDelta, ThoughtDelta
from ..models.base import Model
from ..models.speaker import new_id
from ..plan.decide import decide
from ..plan.formed import streams
from ..types import Finish, Note, Reply, Request, ToolCall, Usage
from ..wire.collect import add_usage


async def answer(request: Request, model: Model, *, tries: int = 3) -> AsyncGenerator[Event | Done[Reply]]:
    """The events to pass on, by the same decision as `ts.decide`; `Done` with the reply last.

    A call is held back until it is whole and fits its schema, and so is a text that must fit one while nothing holds
    the model to it. Other text is passed on at once, and stays said when the model is asked again. `Finished` and
    the reply tell what all tries spent, and all notes. Raises what the model or the decision raises.
    """
    spent = Usage()
    notes: list[Note] = []
    live = streams(request, model.capabilities)
    plan = decide(request, tries=tries, can=model.capabilities, cut_stands=True)
    async with aclosing(play(plan, model)) as events:
        async for event in events:
            match event:
                case TextDelta() | Logprobs():
                    if live:
                        yield event
                case ThoughtDelta():
                    yield event
                case Noted(note):
                    notes.append(note)
                    yield event
                case Finished(_, usage):
                    spent = add_usage(spent, usage)
                case Done(reply):
                    for end in _ending(reply, request, spent, notes, live):
                        yield end
                case _:
                    pass


def _ending(
    reply: Reply, request: Request, spent: Usage, notes: list[Note], live: bool
) -> Iterable[Event | Done[Reply]]:
    """What was held back, and the end."""
    if not live and reply.text:
        if reply.logprobs and not reply.calls:
            yield Logprobs([dict(token) for token in reply.logprobs])
        yield TextDelta(reply.text)
    calls = unique(reply.calls, request)
    for call in calls:
        yield CallStart(call.name, call.id)
        yield ArgumentsDelta(call.json)
        yield CallEnd()
    for note in (*reply.notes, *(note for call in calls for note in call.notes)):
        if note not in notes:
            notes.append(note)
            yield Noted(note)
    finish: Finish = "tool_calls" if calls and reply.finish in ("stop", "tool_calls") else reply.finish
    finish = "stop" if finish == "tool_calls" and not calls else finish
    yield Finished(finish, spent)
    yield Done(replace(reply, calls=calls, finish=finish, usage=spent, notes=tuple(notes)))


def unique(calls: Sequence[ToolCall], request: Request) -> tuple[ToolCall, ...]:
    """The calls with ids that no other call of the conversation has: results are told apart by them.

    What the model's server gave stays where it can, for the same server is shown it again.
    """
    if not calls:
        return ()
    taken = {str(call.get("id")) for message in request.messages for call in message.get("tool_calls") or ()}
    told: list[ToolCall] = []
    for call in calls:
        told.append(call if call.id and call.id not in taken else replace(call, id=new_id()))
        taken.add(told[-1].id)
    return tuple(told)
