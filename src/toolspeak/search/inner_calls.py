"""Calls that are answered here, within one reply: the model reads the answer and goes on, and the client sees none of
it.

`search_tools` and `read_more` are such tools. A reply that calls one is not over: the model is asked again with the
answer behind its call, for so many rounds; in the last one the tool is no longer offered. A model that calls it even
then is asked once more, for words alone: without that its reply would be empty. A reply that calls tools of the
client's beside it goes out with those calls alone, and the model reads the answer in the next turn."""

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
    """Who answers the calls of one tool, whose name is `name`; `names` are those of all tools that may be called,
    `most` is the number of rounds, and `what` says in a note what was done so often."""

    name: str
    names: Collection[str]
    most: int
    what: str

    def next_request(self, *, last: bool) -> Request:
        """What the model is asked next, in the last round without the tool."""
        ...

    async def answer(self, ear: Ear, calls: Sequence[ToolCall], *, beside: bool) -> list[Note]:
        """Answers the calls of one round, and gives notes of that. `beside`: the reply goes out for its other calls."""
        ...

    def end(self, text: str, called: Sequence[str]) -> None:
        """Hears how the reply ended for the client, after one round or more."""
        ...


async def answered_here(
    inner: CallAnswerer, ask: Callable[[Request], AsyncGenerator[Event]], notes: Sequence[Note], *, held: bool
) -> AsyncGenerator[Event]:
    """The events of a reply without the calls that are answered here. `notes` come once the model has begun: until then
    all can be asked elsewhere, or refused."""
    usage, told, rounds = Usage(), "", 0
    while True:
        left = inner.most - rounds
        ear = Ear(inner.name, inner.names, after=told, held=held)
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
        told += ear.text
        if calls:
            rounds += 1
            for note in (*await inner.answer(ear, calls, beside=not goes_on), *limit):
                yield Noted(note)
        if not goes_on:
            break
    if rounds:
        inner.end(told, ear.called)
    yield Finished(_finish(ear, limit), usage)


def _goes_on(calls: Sequence[ToolCall], left: int, choice: str) -> bool:
    """Whether the model is asked again after a reply with such calls alone, with so many rounds `left`. It is asked for
    words once more than for calls, unless a call is demanded of it."""
    return bool(calls) and left > (-1 if choice in ("auto", "none") else 0)


def _limit(inner: CallAnswerer, calls: Sequence[ToolCall], left: int) -> list[Note]:
    """A note where the model calls the tool, and nothing else, when it has called it often enough."""
    if left > 0:
        return []
    return [
        Note(f"limit-{inner.what}", f"{inner.most} in this reply, and {inner.name} was called again") for _ in calls[:1]
    ]


def _finish(ear: Ear, limit: Sequence[Note]) -> Finish:
    """Why the reply ended; one that is empty because of a limit says so."""
    return "limit" if limit and not ear.text else ear.finish


def events_of(model: Model, request: Request) -> AsyncGenerator[Event]:
    """A model's events, so that they can be closed."""
    stream = model.stream(request)
    return stream if isinstance(stream, AsyncGenerator) else _closable(stream)  # pyright: ignore[reportUnknownVariableType]


async def _closable(stream: AsyncIterator[Event]) -> AsyncGenerator[Event]:
    async for event in stream:
        yield event


def without_beginning(message: Message, before: str) -> Message:
    """An answer without the text that was said in front of a call that was answered here, which stands before it."""
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    rest = text.removeprefix(before)
    return message if rest == text else {**message, "content": rest.lstrip("\n")}


class Ear:
    """Listens to one reply: calls of the tool `name` stay here, all else goes on.

    `names` are those of all tools that may be called, `after` is the text that was said before this reply. Text is
    `held` back until it is sure that the model goes on from it to no such call.
    """

    def __init__(self, name: str, names: Collection[str], *, after: str = "", held: bool = False) -> None:
        self._name = name
        self._names = {*names, name}
        self._gap = "" if after[-1:] in ("", "\n") else "\n\n"
        self._holds = held
        self._held: list[Event] = []
        self._within = False
        self._heard: list[Event] = []
        self._told: list[str] = []
        self.called: list[str] = []
        """The names of the other tools that were called."""
        self.end = Finished()

    def hear(self, event: Event) -> Iterable[Event]:
        """The event as it goes on, if it does."""
        match event:
            case Finished():
                self.end = event
                return ()
            case TextDelta(text):
                event = TextDelta(self._gap + text)
                self._gap = ""
                self._told.append(event.text)
            case CallStart(name):
                self._within = name == self._name
                self.called += [] if self._within else [name]
            # Who reads a dialect knows what is shown; that a tool is offered which is not shown, it cannot know.
            case Noted(Note("unknown-tool", name)) if name in self._names:
                return ()
            case _:
                pass
        self._heard.append(event)
        if self._within and isinstance(event, (CallStart, ArgumentsDelta, CallEnd)):
            self._within = not isinstance(event, CallEnd)
            return ()
        if self._holds and isinstance(event, (TextDelta, Logprobs)):
            self._held.append(event)
            return ()
        return (event,)

    def rest(self, *, dropped: bool) -> list[Event]:
        """What was held back, once the reply is over: nothing where it is dropped."""
        if dropped and self._held:
            self._told = []
        return [] if dropped else self._held

    @property
    def text(self) -> str:
        """What was said, as it went on."""
        return "".join(self._told)

    @property
    def finish(self) -> Finish:
        """Why the reply ended, to those who know of no such calls."""
        return "stop" if self.end.finish == "tool_calls" and not self.called else self.end.finish

    def calls(self) -> list[ToolCall]:
        """The calls of the tool, without one that was cut."""
        calls = [call for call in collect(self._heard).calls if call.name == self._name]
        return [call for call in calls if call.whole] if self.end.finish == "length" else calls

    def message(self, calls: Sequence[ToolCall]) -> Message:
        """The reply with these of its calls alone, as the conversation goes on."""
        return assistant(replace(collect(self._heard), calls=tuple(calls)))
