"""A model's reply as the gateway passes it on: text as it comes, calls whole and checked."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from ..drive import Done, play
from ..errors import GenerationError
from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Logprobs, Noted, TextDelta, ThoughtDelta
from ..models.base import Model
from ..models.speaker import Speaker
from ..plan.decide import decide
from ..types import Note, Reply, Request, ToolCall, Usage
from ..wire.collect import add_usage
from ..wire.grammars.schemas import says_all


async def answer(
    request: Request, model: Model, *, tries: int = 3, live: bool = False
) -> AsyncGenerator[Event | Done[Reply]]:
    """The events to pass on, by the same decision as `ts.decide`; `Done` with the reply last.

    A call is held back until it is whole and fits its schema. With `live`, or where a grammar makes sure of the
    schema, its pieces are passed on as they come, and a bad end is an error. Text is passed on at once, and stays
    said when the model is asked again. `Finished` and the reply tell what all tries spent, and the reply what was
    noted in all of them. Raises what the model or the decision raises.
    """
    spent = Usage()
    notes: dict[Note, None] = {}
    passing = _Passing(request) if live or sure(request, model) else None
    async with aclosing(play(decide(request, tries=tries), model)) as events:
        async for event in events:
            match event:
                case TextDelta() | ThoughtDelta() | Logprobs():
                    yield event
                case Noted(note):
                    if passing and passing.passed and note.rule == "asked-again":
                        raise GenerationError(f"a call that was already being told came out wrong: {note.detail}")
                    notes[note] = None
                    yield event
                case Finished(_, usage):
                    spent = add_usage(spent, usage)
                case Done(reply):
                    for call in passing.rest(reply.calls) if passing else reply.calls:
                        yield CallStart(call.name, call.id)
                        yield ArgumentsDelta(call.json)
                        yield CallEnd()
                    yield Finished(reply.finish, spent)
                    noted = tuple({**notes, **dict.fromkeys(reply.notes)})
                    yield Done(replace(reply, usage=spent, notes=noted))
                case CallStart() | ArgumentsDelta() | CallEnd():
                    for piece in passing.take(event) if passing else ():
                        yield piece
                case _:
                    pass


def sure(request: Request, model: Model) -> bool:
    """Whether a model is held to calls that cannot but fit their schemas."""
    return (
        isinstance(model, Speaker)
        and "grammar" in model.model.capabilities
        and request.choice not in ("auto", "none")
        and request.schema is None
        and all(says_all(tool.parameters) for tool in request.tools or ())
    )


class _Passing:
    """The pieces of calls that may be passed on before their calls are checked, and whether these came out as told."""

    def __init__(self, request: Request) -> None:
        self._names = {tool.name for tool in request.tools or () if request.choice in ("auto", "required", tool.name)}
        self._several = request.parallel
        self._open = False
        self.passed: list[str] = []

    def take(self, event: CallStart | ArgumentsDelta | CallEnd) -> list[Event]:
        """What is passed on of a piece. Raises GenerationError where a call that is being told breaks off."""
        if isinstance(event, CallStart):
            self._open = event.name in self._names and (self._several or not self.passed)
            self.passed += [""] if self._open else []
        elif not self._open:
            return []
        elif isinstance(event, ArgumentsDelta):
            self.passed[-1] += event.json
        elif not event.whole:
            raise GenerationError("a call that was already being told broke off")
        elif not self.passed[-1]:
            self.passed[-1] = "{}"
            return [ArgumentsDelta("{}"), event]
        return [event] if self._open else []

    def rest(self, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
        """The calls that are still to be told. Raises GenerationError where one that was told is another now."""
        told = len(self.passed)
        if [call.json for call in calls[:told]] != self.passed:
            raise GenerationError(
                "a call that was already being told came out wrong: its arguments do not fit its schema"
            )
        return calls[told:]
