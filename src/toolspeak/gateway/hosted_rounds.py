"""A reply in several rounds: calls are run in the gateway, their results go back to the model, and the reply continues.

The client gets the calls and results in the format that its API has for calls run by the provider. An API without such a
format gets only the texts of all rounds, with a blank line between them. Where the text must match a schema, only that of
the last round counts.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import replace

from ..drive import Done
from ..errors import ToolspeakError
from ..events import (
    ArgumentsDelta,
    CallEnd,
    CallResult,
    CallStart,
    Event,
    Finished,
    Logprobs,
    Noted,
    TextDelta,
    ThoughtDelta,
)
from ..models.offload import offloaded
from ..plan.calls import answer, assistant
from ..tool_results import LIMIT
from ..types import Message, Note, Reply, Request, Step, ToolCall, ToolResult, Usage
from ..wire.reading.collect import add_usage
from .hosted_tools import Running
from .text_gate import blank_line

Ask = Callable[[Request], AsyncGenerator[Event | Done[Reply]]]


async def answered(
    request: Request,
    running: Mapping[str, Running],
    ask: Ask,
    *,
    reported: Collection[str] = (),
    longest: int = LIMIT,
    turns: int = 6,
    on_run: Callable[[ToolCall], None] = lambda _: None,
) -> AsyncGenerator[Event | Done[Reply]]:
    """Yield the events of a reply in which the calls of the tools in `running` are run here.

    The calls in `reported` are events too, each with its result. If a reply also calls tools of the client, it ends there,
    and its calls of tools in `running` are left out with a note. A result is cut to `longest` characters. After `turns`
    rounds the model must answer with what it has. `on_run` gets each call before it runs, a large one in a thread.
    """
    so_far = _Turns(request, running, reported, longest, turns, on_run)
    while not so_far.over:
        listening = _RoundFilter(so_far.request, running, so_far.before)
        try:
            async with aclosing(ask(so_far.request)) as events:
                async for event in events:
                    for passed in listening.take(event):
                        yield passed
        except ToolspeakError as error:
            error.spent = add_usage(so_far.spent, error.spent)
            raise
        async with aclosing(so_far.add(listening.reply)) as results:
            async for one in results:
                yield one


class _Turns:
    """A reply in several rounds: the `request` for the next one, and whether it is `over`."""

    def __init__(
        self,
        request: Request,
        running: Mapping[str, Running],
        reported: Collection[str],
        longest: int,
        turns: int,
        on_run: Callable[[ToolCall], None],
    ) -> None:
        self.request = request
        self.over = False
        self._running, self._reported = running, reported
        self._longest, self._most, self._on_run = longest, turns, on_run
        self.spent = Usage()
        self._steps: list[Step] = []
        self._rounds = 0
        self.before = Reply()
        """The words of earlier rounds whose calls the client does not see: they belong to the next part."""

    async def add(self, reply: Reply) -> AsyncGenerator[Event | Done[Reply]]:
        """Run the calls of one round, or end with it. Yields the events for the client."""
        self.spent = add_usage(self.spent, reply.usage)
        calls = [call for call in reply.calls if call.name in self._running]
        others = tuple(call for call in reply.calls if call.name not in self._running)
        if _goes_on(reply, self._running):
            async with aclosing(self._run(reply, calls)) as events:
                async for event in events:
                    yield event
            return
        self.over = True
        for event in self._end(reply, calls, others):
            yield event

    def _end(self, reply: Reply, left: list[ToolCall], calls: tuple[ToolCall, ...]) -> list[Event | Done[Reply]]:
        notes = [Note("hosted-call-left-out", call.name) for call in left]
        steps, noted = tuple(self._steps), (*reply.notes, *notes)
        whole = replace(_joined(self.before, reply), calls=calls, usage=self.spent, steps=steps, notes=noted)
        return [*map(Noted, notes), Finished(reply.finish, self.spent), Done(whole)]

    async def _run(self, reply: Reply, calls: list[ToolCall]) -> AsyncGenerator[Event | Done[Reply]]:
        ran: list[tuple[ToolCall, ToolResult]] = []
        for call in calls:
            if call.name in self._reported:  # announced before the call runs, which may take long
                for event in (CallStart(call.name, call.id), ArgumentsDelta(call.json), CallEnd()):
                    yield event
            ran.append((call, await self._result(call)))
            if call.name in self._reported:
                yield CallResult(ran[-1][1])
        self._took(reply, ran)
        self._go_on([assistant(reply), *(answer(call, result.text) for call, result in ran)])

    def _took(self, reply: Reply, ran: list[tuple[ToolCall, ToolResult]]) -> None:
        """Keep the words of a round, and the calls and results that the client sees."""
        reported = [(call, result) for call, result in ran if call.name in self._reported]
        words = reply if self.request.schema is None else replace(reply, text="", logprobs=())
        part = replace(_joined(self.before, words), calls=tuple(call for call, _ in reported))
        self.before = Reply() if reported else part
        if reported:
            self._steps.append(Step(part, tuple(result for _, result in reported)))
        self._rounds += 1

    async def _result(self, call: ToolCall) -> ToolResult:
        await offloaded(len(call.json), self._on_run, call)
        one = self._running[call.name]
        return await one.source.run(call, one.name, self._longest)

    def _go_on(self, messages: list[Message]) -> None:
        """Set the next request. A required call was made, so calls are now optional; after the last round they are
        forbidden."""
        tools = self.request.tools or ()
        if self._rounds == self._most:
            tools = tuple(tool for tool in tools if tool.name not in self._running)
        self.request = replace(self.request, messages=[*self.request.messages, *messages], tools=tools, choice="auto")


def _goes_on(reply: Reply, running: Mapping[str, Running]) -> bool:
    """Whether another round follows this reply: it calls tools, and all of them run here."""
    return bool(reply.calls) and all(call.name in running for call in reply.calls)


def _joined(before: Reply, reply: Reply) -> Reply:
    """Return a reply with the words of earlier rounds before its own."""
    text, thought = before.text, before.thought
    return replace(
        reply,
        text=text + blank_line(text) + reply.text if reply.text else text,
        thought=thought + blank_line(thought) + reply.thought if reply.thought else thought,
        logprobs=(*before.logprobs, *reply.logprobs),
    )


class _RoundFilter:
    """Filters the events of one round: calls of the tools in `running` are held back, and so is its end.

    The words of the round are separated from those `before`. Text that must match a schema waits until it is known that
    no other round follows.
    """

    def __init__(self, request: Request, running: Mapping[str, Running], before: Reply) -> None:
        self._running = running
        self._within = False
        self._text_gap, self._thought_gap = blank_line(before.text), blank_line(before.thought)
        self._holds = request.schema is not None
        self._pending: list[Event] = []
        self.reply = Reply()

    def take(self, event: Event | Done[Reply]) -> list[Event]:
        """Return the events to pass on."""
        match event:
            case Done(reply):
                self.reply = reply
                return [] if _goes_on(reply, self._running) else self._released()
            case Finished():
                return []
            case TextDelta() | Logprobs() | ThoughtDelta():
                return self._words(event)
            case CallStart(name):
                self._within = name in self._running
                return [] if self._within else [*self._released(), event]
            case ArgumentsDelta() | CallEnd() if self._within:
                return []
            case _:
                return [event]

    def _words(self, event: TextDelta | Logprobs | ThoughtDelta) -> list[Event]:
        match event:
            case TextDelta() | Logprobs() if self._holds:
                self._pending.append(event)
                return []
            case TextDelta(text) if text:
                gap, self._text_gap = self._text_gap, ""
                return [TextDelta(gap), event] if gap else [event]
            case ThoughtDelta(text) if text:
                gap, self._thought_gap = self._thought_gap, ""
                return [ThoughtDelta(gap), event] if gap else [event]
            case _:
                return [event]

    def _released(self) -> list[Event]:
        events, self._pending = self._pending, []
        return events
