"""A model's reply as the gateway passes it on: text as it arrives, calls complete and checked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace

from ..drive import Done, play
from ..errors import GenerationError, PromptTooLong
from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Logprobs, Noted, TextDelta, ThoughtDelta
from ..models.base import Model
from ..models.bounded_stream import pieces, within_bounds
from ..models.fallback import Adaptive
from ..models.new_ids import new_id
from ..models.offload import offloaded, reply_size, request_size
from ..models.pool import Pool
from ..models.recording import Recorder
from ..models.speaker import Speaker
from ..plan.decide import decide
from ..plan.reask import usual
from ..plan.token_estimate import with_estimate
from ..search.paged_results import PagedResults
from ..search.router import ToolRouter
from ..types import Finish, Note, Reply, Request, ToolCall, Usage, copy_with
from ..wire.grammars.engine_schemas import says_all
from ..wire.reading.call_ids import unique_id
from ..wire.reading.collect import Collector
from ..wire.reading.doubtful import SUPERSEDED
from .attempts_cost import AttemptsUsage
from .limits.budgets import Metered
from .text_gate import TextGate

LEAST = 16
"""The smallest limit of a reply in tokens at which an empty, cut reply means that the context is full."""


def answer(
    request: Request, model: Model, *, tries: int = 3, live: bool | Collection[str] = False, whole: bool = False
) -> AsyncGenerator[Event | Done[Reply]]:
    """Yield the events to pass on, decided as `ts.decide` does, and `Done` with the reply last.

    A call is held back until it is complete and matches its schema. With `live` (True, or the names of tools), or if a
    grammar enforces the schema, its pieces are passed on as they arrive: if the call turns out invalid, that is an
    error, and if it is cut at the model's limit, it ends there.

    Text is passed on at once, and is not taken back when the model is asked again. Text that must match a schema is
    held back, unless the model is known to enforce the schema (see `TextGate`). With `whole` the client gets only the final reply, so every attempt can be
    repeated.

    `Finished` and the reply sum up the usage and the notes of all attempts. Raises what the model or the decision
    raises.
    """
    if request.tools or request.schema is not None or request.choice not in ("auto", "none"):
        return _decided(request, model, tries, live, whole)
    return _text_reply(request, model)


async def _text_reply(request: Request, model: Model) -> AsyncGenerator[Event | Done[Reply]]:
    """Yield the events of a reply without tools or schema. Every chunk of a stream passes here, so it takes few steps."""
    collector = Collector()
    async with aclosing(within_bounds(model.stream(request))) as events:
        async for event in events:
            if isinstance(event, (TextDelta, ThoughtDelta, Logprobs, Noted)):
                collector.feed(event)
                yield event
            elif isinstance(event, Finished):
                collector.feed(Finished("stop" if event.finish == "tool_calls" else event.finish, event.usage))
            elif isinstance(event, CallStart):
                note = Noted(Note("not-offered", event.name[:256]))
                collector.feed(note)
                yield note
    reply = await _counted(collector.reply(), request, model)
    yield Finished(reply.finish, reply.usage)
    yield Done(reply)


async def in_words(text: str, request: Request, note: Note) -> AsyncGenerator[Event | Done[Reply]]:
    """Yield the events of a reply that consists of this text, without asking a model."""
    reply = Reply(text, finish="stop", notes=(note,))
    reply = replace(reply, usage=with_estimate(reply, request))
    yield Noted(note)
    yield TextDelta(text)
    yield Finished(reply.finish, reply.usage)
    yield Done(reply)


async def with_notes(
    notes: Sequence[Note], events: AsyncGenerator[Event | Done[Reply]]
) -> AsyncGenerator[Event | Done[Reply]]:
    """Yield the events of a reply with these notes added."""
    noted = False
    async with aclosing(events):
        async for event in events:
            if not noted:  # not before the first event: until then the request can still fail with a status
                noted = True
                for note in notes:
                    yield Noted(note)
            yield Done(replace(event.value, notes=(*notes, *event.value.notes))) if isinstance(event, Done) else event


async def _decided(
    request: Request, model: Model, tries: int, live: bool | Collection[str], whole: bool
) -> AsyncGenerator[Event | Done[Reply]]:
    notes: dict[Note, None] = {}
    can = model.capabilities
    text = TextGate(request, can, whole=whole)
    passing = _Passing(request, () if whole else live is True or sure(request, model) or live)
    plan = decide(request, tries=tries, can=can, cut_stands=True, streamed=lambda: text.passed, strategies=usual(can))
    async with aclosing(play(plan, model)) as events:
        with AttemptsUsage(request) as spent:
            async for event in events:
                match event:
                    case TextDelta() | Logprobs():
                        for piece in text.take(event):
                            yield piece
                    case ThoughtDelta():
                        yield text.apart(event)
                    case Noted(note):
                        passing.note(note)
                        text.note(note)
                        notes[note] = None
                        yield event
                    case Finished(_, usage):
                        spent.add(usage)
                    case Done(reply):
                        for piece in text.rest():
                            yield piece
                        rest = passing.rest(reply.calls)
                        reply = await _counted(_ended(reply, request, spent.usage, notes, rest), request, model)
                        async for end in _ending(reply, rest, notes, text.passed):
                            yield end
                        yield Done(reply)
                    case CallStart() | ArgumentsDelta() | CallEnd():
                        text.after(event)
                        for piece in passing.take(event):
                            yield piece
                    case _:
                        pass


def _ended(reply: Reply, request: Request, spent: Usage, notes: dict[Note, None], sent: int) -> Reply:
    """Return the reply as the client gets it; the first of its calls were passed on already."""
    calls = (*reply.calls[:sent], *unique(reply.calls[sent:], request, reply.calls[:sent]))
    finish: Finish = reply.finish
    if finish in ("stop", "tool_calls"):
        finish = "tool_calls" if calls else "stop"
    noted = {**notes, **dict.fromkeys((*reply.notes, *(note for call in calls for note in call.notes)))}
    return copy_with(reply, calls=calls, finish=finish, usage=spent, notes=tuple(noted))


async def narrowed(model: Model, request: Request) -> Request:
    """Return the request as it is first sent to the model: with the tools and parts of results that the model sees."""
    while isinstance(model, ToolRouter | PagedResults):
        request, model = await model.narrowed(request), model.model
    return request


async def _counted(reply: Reply, request: Request, model: Model) -> Reply:
    """Return the reply with its usage, estimated from what the model saw if the usage was not reported."""
    usage = _with_room(reply, request).usage
    if usage.prompt_tokens and usage.completion_tokens:
        return reply
    seen = await narrowed(model, request)
    return copy_with(reply, usage=await offloaded(request_size(seen) + reply_size(reply), with_estimate, reply, seen))


def _with_room(reply: Reply, request: Request) -> Reply:
    """Return the reply. Raises PromptTooLong if it was cut before its first token: then the prompt left no room for a
    reply."""
    cut = reply.finish == "length" and not (reply.text or reply.thought or reply.calls or reply.notes)
    if cut and (request.max_tokens is None or request.max_tokens >= LEAST) and reply.usage.completion_tokens <= 1:
        tokens = reply.usage.prompt_tokens or None
        raise PromptTooLong("the prompt leaves no room for a reply", tokens=tokens, limit=tokens)
    return reply


async def _ending(reply: Reply, sent: int, notes: dict[Note, None], passed: bool) -> AsyncGenerator[Event]:
    """Yield what was held back, in pieces, and the end. `passed`: the text was passed on already."""
    for event in _last_events(reply, sent, notes, passed):
        for piece in pieces(event):
            yield piece
            if piece is not event:
                await asyncio.sleep(0)


def _last_events(reply: Reply, sent: int, notes: dict[Note, None], passed: bool) -> Iterable[Event]:
    if not passed and reply.text:
        if reply.logprobs and not reply.calls:
            yield Logprobs([dict(token) for token in reply.logprobs])
        yield TextDelta(reply.text)
    for call in reply.calls[sent:]:
        yield CallStart(call.name, call.id)
        yield ArgumentsDelta(call.json)
        yield CallEnd()
    for note in reply.notes:
        if note not in notes:
            yield Noted(note)
    yield Finished(reply.finish, reply.usage)


def unique(calls: Sequence[ToolCall], request: Request, before: Sequence[ToolCall] = ()) -> tuple[ToolCall, ...]:
    """Return the calls with ids that no other call of the conversation has: results refer to calls by id.

    An id from the model's server is kept if possible, because the same server reads it again in the next request.
    """
    if not calls:
        return ()
    used = {str(call.get("id")) for message in request.messages for call in message.get("tool_calls") or ()}
    used |= {call.id for call in before}
    return tuple(replace(call, id=unique_id(call.id, used, new_id)) for call in calls)


def sure(request: Request, model: Model) -> bool:
    """Whether a grammar guarantees that the model's calls match their schemas."""
    while isinstance(model, ToolRouter | PagedResults | Recorder | Metered):
        model = model.model
    if isinstance(model, Pool):
        return all(sure(request, one.model) for one in model.upstreams)
    if isinstance(model, Adaptive):
        model = model.now(request)
    return (
        isinstance(model, Speaker)
        and "grammar" in model.model.capabilities
        and request.choice not in ("auto", "none")
        and request.schema is None
        and all(says_all(tool.parameters) for tool in request.tools or ())
    )


class _Passing:
    """The pieces of calls that may be passed on early (`live`: of all tools, or of these), and whether those calls turned
    out as they were streamed."""

    def __init__(self, request: Request, live: bool | Collection[str]) -> None:
        offered = request.tools or () if live else ()
        names = {tool.name for tool in offered if request.choice in ("auto", "required", tool.name)}
        self._names = names if isinstance(live, bool) else names & {*live}
        self._several = request.parallel
        self._open = False
        self._waiting = False
        self.begun = False
        self._reported: list[str] = []
        self._pieces: list[str] = []
        self._ids: set[str] = set()
        """The ids of the calls that were passed on."""

    def take(self, event: CallStart | ArgumentsDelta | CallEnd) -> list[Event]:
        """Return what may be passed on of an event."""
        if isinstance(event, CallStart):
            self._open = self._may_pass(event.name)
            self.begun = self.begun or self._open
            self._ids |= {event.id} if self._open else set()
        elif not self._open:
            return []
        elif isinstance(event, ArgumentsDelta):
            self._pieces.append(event.json)
        elif event.whole:  # a call that is cut at the model's limit is the last one, and the finish reason says so
            arguments, self._pieces = "".join(self._pieces), []
            self._reported.append(arguments or "{}")
            if not arguments:
                return [ArgumentsDelta("{}"), event]
        return [event] if self._open else []

    def _may_pass(self, name: str) -> bool:
        """Whether a call may be passed on: calls are sent in order, so none after one that is held back."""
        self._waiting = self._waiting or name not in self._names
        return not self._waiting and (self._several or not self.begun)

    def note(self, note: Note) -> None:
        """Raises GenerationError if the model is asked again although a call was passed on, or if that is taken back."""
        if self.begun and note.rule == "re-asked":
            raise GenerationError(f"a call that was already being streamed is invalid: {note.detail}")
        if note.rule == SUPERSEDED and note.detail in self._ids:
            raise GenerationError(
                "a call that was already being streamed is invalid: the server sent it, and left another reading of it in its "
                "text. Set arguments to whole for this model"
            )

    def rest(self, calls: tuple[ToolCall, ...]) -> int:
        """Return how many calls were passed on. Raises GenerationError if one of them differs from the final call."""
        sent = len(self._reported)
        if [call.json for call in calls[:sent]] != self._reported:
            raise GenerationError(
                "a call that was already being streamed is invalid: its arguments do not match its schema"
            )
        return sent
