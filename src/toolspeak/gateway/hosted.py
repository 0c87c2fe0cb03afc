"""Tools of the operator's in the place of those that a provider runs: searched with, say, where a client asks for
`web_search`.

The configuration names a tool of an MCP server for the type of a hosted tool. A request that offers such a tool then
offers the operator's to the model, under the type's name. Its calls are run here, their results go back to the model, and
the reply goes on; the client is shown that there was a search in the form that its API has for one.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from ..api.asked import HOSTED, Asked
from ..drive import Done
from ..errors import ToolspeakError, UsageError
from ..events import ArgumentsDelta, CallEnd, CallResult, CallStart, Event, Finished, Noted
from ..plan.calls import answer, assistant
from ..sources.mcp import McpTools, mcp
from ..sources.mcp.address import with_names
from ..types import Message, Note, Reply, Request, Step, Tool, ToolCall, ToolResult, Usage
from ..wire.collect import add_usage

log = logging.getLogger(__name__)

ROUNDS = 6
"""How often one reply may call such tools before it must do with what they gave."""
PREFIX = "mcp:"
SEARCH = "web_search"
"""The tool whose calls a client is shown."""

Ask = Callable[[Request], AsyncGenerator[Event | Done[Reply]]]


@dataclass(frozen=True, slots=True)
class Running:
    """A tool that is there: the box that runs it, and its own name in that."""

    box: McpTools
    name: str


class HostedTools:
    """The operator's tools, by the names of the types that they stand for; a server is connected when it is first needed."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._boxes = {name: box(source) for name, source in sources.items()}

    async def join(self, asked: Asked) -> tuple[Asked, dict[str, Running]]:
        """The request with the tools that it asked a provider for, as far as the operator has such, and what runs them."""
        running: dict[str, Running] = {}
        tools = [*(asked.request.tools or ())]
        left = set(asked.ignored)
        taken = {tool.name for tool in tools}
        for kind, where in asked.hosted:
            name = next((one for one in self._boxes if f"{kind}_".startswith(f"{one}_")), "")
            if name in taken:
                continue
            if found := await self._tool(name):
                taken.add(name)
                running[name] = Running(self._boxes[name], found.name)
                tools.append(replace(found, name=name))
                left.discard(where)
        if not running:
            return asked, running
        as_hosted: tuple[str, Mapping[str, Any]] = (HOSTED, {})
        names = {**asked.names, **dict.fromkeys(running, as_hosted)}
        request = replace(asked.request, tools=tuple(tools))
        return replace(asked, request=request, names=names, ignored=tuple(sorted(left))), running

    async def _tool(self, name: str) -> Tool[..., Any] | None:
        """The tool for a type; None where there is none, or its server cannot be had, which the log tells."""
        if name not in self._boxes:
            return None
        try:
            found = list(await self._boxes[name].aopen())
        except ToolspeakError as error:
            log.warning("the tool for %s cannot be had: %s", name, error)
            return None
        if len(found) == 1:
            return found[0]
        log.warning("the server for %s has %d tools: name one of them (mcp:SERVER#NAME)", name, len(found))
        return None


def box(source: str) -> McpTools:
    """The tools of a source; nothing is connected yet. Raises UsageError for what is none."""
    server, only = with_names(source.removeprefix(PREFIX))
    if (len(only), source.startswith(PREFIX)) not in ((0, True), (1, True)):
        raise UsageError(f"expected a tool of an MCP server, such as mcp:http://host/mcp#NAME, got {source[:100]!r}")
    return mcp(server, only=only)


async def answered(request: Request, running: Mapping[str, Running], ask: Ask) -> AsyncGenerator[Event | Done[Reply]]:
    """The events of a reply in which the calls of these tools are run, and not left to the client. A reply that calls
    tools of the client's too ends there, and its calls of these are left out, with a note."""
    turns = _Turns(request, running)
    while not turns.over:
        listening = _Listening(running)
        async with aclosing(ask(turns.request)) as events:
            async for event in events:
                for passed in listening.take(event):
                    yield passed
        for event in await turns.add(listening.reply):
            yield event


class _Turns:
    """A reply that is made in several turns: the `request` for the next one, and whether it is `over`."""

    def __init__(self, request: Request, running: Mapping[str, Running]) -> None:
        self.request = request
        self.over = False
        self._running = running
        self._spent = Usage()
        self._steps: list[Step] = []

    async def add(self, reply: Reply) -> list[Event | Done[Reply]]:
        """Runs the calls of one reply, or ends with it; what the client is told of that."""
        self._spent = add_usage(self._spent, reply.usage)
        calls = [call for call in reply.calls if call.name in self._running]
        others = tuple(call for call in reply.calls if call.name not in self._running)
        self.over = bool(others) if calls else True
        return self._end(reply, calls, others) if self.over else await self._run(reply, calls)

    def _end(self, reply: Reply, left: list[ToolCall], calls: tuple[ToolCall, ...]) -> list[Event | Done[Reply]]:
        notes = [Note("hosted-call-left-out", call.name) for call in left]
        steps, noted = tuple(self._steps), (*reply.notes, *notes)
        whole = replace(reply, calls=calls, usage=self._spent, steps=steps, notes=noted)
        return [*map(Noted, notes), Finished(reply.finish, self._spent), Done(whole)]

    async def _run(self, reply: Reply, calls: list[ToolCall]) -> list[Event | Done[Reply]]:
        results = [await _result(call, self._running[call.name]) for call in calls]
        ran = [*zip(calls, results, strict=True)]
        shown = [(call, result) for call, result in ran if call.name == SEARCH]
        made = replace(reply, calls=tuple(call for call, _ in shown))
        self._steps.append(Step(made, tuple(result for _, result in shown)))
        self._go_on([assistant(reply), *(answer(call, result.text) for call, result in ran)])
        return [event for call, result in shown for event in _told(call, result)]

    def _go_on(self, messages: list[Message]) -> None:
        """The next request: a call that was required has been made, and some time there are enough."""
        tools = self.request.tools or ()
        if len(self._steps) == ROUNDS:
            tools = tuple(tool for tool in tools if tool.name not in self._running)
        self.request = replace(self.request, messages=[*self.request.messages, *messages], tools=tools, choice="auto")


def _told(call: ToolCall, result: ToolResult) -> list[Event]:
    return [CallStart(call.name, call.id), ArgumentsDelta(call.json), CallEnd(), CallResult(result)]


class _Listening:
    """Listens to one reply: calls of these tools are held back, and so is its end."""

    def __init__(self, running: Mapping[str, Running]) -> None:
        self._running = running
        self._within = False
        self.reply = Reply()

    def take(self, event: Event | Done[Reply]) -> list[Event]:
        """What goes on of an event."""
        match event:
            case Done(reply):
                self.reply = reply
                return []
            case Finished():
                return []
            case CallStart(name):
                self._within = name in self._running
            case _:
                pass
        if self._within and isinstance(event, (CallStart, ArgumentsDelta, CallEnd)):
            return []
        return [event]


async def _result(call: ToolCall, running: Running) -> ToolResult:
    """The result of a call; one that failed has its error as the text."""
    [result] = await running.box.arun([replace(call, name=running.name)])
    return replace(result, id=call.id, name=call.name)
