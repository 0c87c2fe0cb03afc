"""Answers calls of internal tools within one reply: the model reads the result and continues, and the client does not
see the call.

`search_tools` and `read_more` are such tools. After a reply that calls one, the model is asked again with the result,
for a limited number of rounds; in the last one the tool is no longer offered. A model that calls it even then is asked
once more, for text only, since its reply would be empty otherwise. A reply that also calls tools of the client is
passed on with only those calls, and the model reads the internal results in the next turn.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Logprobs, Noted, TextDelta
from ..models.base import Model
from ..plan.calls import assistant
from ..types import Finish, Message, Note, Request, ToolCall, Usage
from ..wire.reading.collect import add_usage, collect


class CallAnswerer(Protocol):
    """Answers the calls of one internal tool.

    `name` is the tool, `names` are all tools that may be called, `most` is the number of rounds, and `what` names the
    calls in a note about that limit.
    """

    name: str
    names: Collection[str]
    most: int
    what: str

    def next_request(self, *, last: bool) -> Request:
        """The next request to the model; in the last round without the tool."""
        ...

    async def answer(self, ear: Ear, calls: Sequence[ToolCall], *, beside: bool) -> list[Note]:
        """Answers the calls of one round, and returns notes. `beside`: the reply is passed on because of its other
        calls."""
        ...

    def end(self, text: str, called: Sequence[str]) -> None:
        """Called when the reply to the client is complete, after at least one round."""
        ...


async def answered_here(
    inner: CallAnswerer, ask: Callable[[Request], AsyncGenerator[Event]], notes: Sequence[Note], *, hold: bool
) -> AsyncGenerator[Event]:
    """The events of a reply without its internal calls. `notes` follow the model's first event: until then the request
    can still be sent to another model, or fail."""
    usage, text, rounds = Usage(), "", 0
    while True:
        left = inner.most - rounds
        ear = Ear(inner.name, inner.names, after=text, hold=hold)
        request = inner.next_request(last=left <= 0)
        async with aclosing(ask(request if left >= 0 else replace(request, choice="none"))) as events:
            async for event in events:
                for note in notes:
                    yield Noted(note)
                notes = ()
                for passed in ear.hear(event):
                    yield passed
        usage = add_usage(usage, ear.end.usage)
        calls = ear.calls()
        alone = [] if ear.called else calls
        goes_on = _goes_on(alone, left, request.choice)
        limit = _limit(inner, alone, left)
        for event in ear.rest(dropped=goes_on):
            yield event
        text += ear.text
        if calls:
            rounds += 1
            for note in (*await inner.answer(ear, calls, beside=not goes_on), *limit):
                yield Noted(note)
        if not goes_on:
            break
    if rounds:
        inner.end(text, ear.called)
    yield Finished(_finish(ear, limit), usage)


def _goes_on(calls: Sequence[ToolCall], left: int, choice: str) -> bool:
    """Whether the model is asked again after a reply with only internal calls, with so many rounds `left`. There is
    one extra round for text, unless a call is required."""
    return bool(calls) and left > (-1 if choice in ("auto", "none") else 0)


def _limit(inner: CallAnswerer, calls: Sequence[ToolCall], left: int) -> list[Note]:
    """A note if the model calls only the internal tool after its last round."""
    if left > 0:
        return []
    return [
        Note(f"limit-{inner.what}", f"{inner.most} in this reply, and {inner.name} was called again") for _ in calls[:1]
    ]


def _finish(ear: Ear, limit: Sequence[Note]) -> Finish:
    """The finish reason; if the reply is empty because of the limit it says so."""
    return "limit" if limit and not ear.text else ear.finish


def events_of(model: Model, request: Request) -> AsyncGenerator[Event]:
    """A model's events as a generator that can be closed."""
    stream = model.stream(request)
    return stream if isinstance(stream, AsyncGenerator) else _closable(stream)  # pyright: ignore[reportUnknownVariableType]


async def _closable(stream: AsyncIterator[Event]) -> AsyncGenerator[Event]:
    async for event in stream:
        yield event


def without_beginning(message: Message, before: str) -> Message:
    """An assistant message without the text that came before an internal call, which an earlier message has."""
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    rest = text.removeprefix(before)
    return message if rest == text else {**message, "content": rest.lstrip("\n")}


class Ear:
    """Reads one reply: calls of the internal tool `name` are kept here, all other events are passed on.

    `names` are all tools that may be called, `after` is the text before this reply. With `hold`, text is held back
    until it is certain that no internal call follows it.
    """

    def __init__(self, name: str, names: Collection[str], *, after: str = "", hold: bool = False) -> None:
        self._name = name
        self._names = {*names, name}
        self._gap = "" if after[-1:] in ("", "\n") else "\n\n"
        self._holds = hold
        self._buffer: list[Event] = []
        self._within = False
        self._events: list[Event] = []
        self._reported: list[str] = []
        self.called: list[str] = []
        """The names of the client's tools that were called."""
        self.end = Finished()

    def hear(self, event: Event) -> Iterable[Event]:
        """The event if it is passed on."""
        match event:
            case Finished():
                self.end = event
                return ()
            case TextDelta(text):
                event = TextDelta(self._gap + text)
                self._gap = ""
                self._reported.append(event.text)
            case CallStart(name):
                self._within = name == self._name
                self.called += [] if self._within else [name]
            # The decoder only knows the tools in the prompt; this one may be called although it is not shown.
            case Noted(Note("unknown-tool", name)) if name in self._names:
                return ()
            case _:
                pass
        self._events.append(event)
        if self._within and isinstance(event, (CallStart, ArgumentsDelta, CallEnd)):
            self._within = not isinstance(event, CallEnd)
            return ()
        if self._holds and isinstance(event, (TextDelta, Logprobs)):
            self._buffer.append(event)
            return ()
        return (event,)

    def rest(self, *, dropped: bool) -> list[Event]:
        """The text that was held back, at the end of the reply; nothing if it is dropped."""
        if dropped and self._buffer:
            self._reported = []
        return [] if dropped else self._buffer

    @property
    def text(self) -> str:
        """The text that was passed on."""
        return "".join(self._reported)

    @property
    def finish(self) -> Finish:
        """The finish reason for the client, to whom internal calls do not exist."""
        return "stop" if self.end.finish == "tool_calls" and not self.called else self.end.finish

    def calls(self) -> list[ToolCall]:
        """The complete calls of the internal tool."""
        calls = [call for call in collect(self._events).calls if call.name == self._name]
        return [call for call in calls if call.whole] if self.end.finish == "length" else calls

    def message(self, calls: Sequence[ToolCall]) -> Message:
        """The reply with only these calls, as a message of the conversation."""
        return assistant(replace(collect(self._events), calls=tuple(calls)))
