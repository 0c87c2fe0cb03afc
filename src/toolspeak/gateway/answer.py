"""A model's reply as the gateway passes it on: text as it comes, calls whole and checked."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ..drive import Done, play
from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Logprobs, Noted, TextDelta, ThoughtDelta
from ..models.base import Model
from ..plan.decide import decide
from ..types import Reply, Request, Usage
from ..wire.collect import add_usage


async def answer(request: Request, model: Model, *, tries: int = 3) -> AsyncGenerator[Event | Done[Reply]]:
    """The events to pass on, by the same decision as `ts.decide`; `Done` with the reply last.

    A call is held back until it is whole and fits its schema. Text is passed on at once, and stays said when the
    model is asked again. `Finished` tells what all tries spent. Raises what the model or the decision raises.
    """
    spent = Usage()
    async with aclosing(play(decide(request, tries=tries), model)) as events:
        async for event in events:
            match event:
                case TextDelta() | ThoughtDelta() | Logprobs() | Noted():
                    yield event
                case Finished(_, usage):
                    spent = add_usage(spent, usage)
                case Done(reply):
                    for call in reply.calls:
                        yield CallStart(call.name, call.id)
                        yield ArgumentsDelta(call.json)
                        yield CallEnd()
                    yield Finished(reply.finish, spent)
                    yield event
                case _:
                    pass
