"""Tools that run in the gateway: those of the operator's MCP servers.

The configuration names a tool of an MCP server for the type of a hosted tool (`web_search`). A request that offers such a
tool then offers the operator's to the model, under the type's name. And it names servers whose tools the models of some keys
get beside the client's own, where the model is free to call what it likes. Calls are run here, their results go back to the
model, and the reply goes on. The client is told the calls and their results in the form that its API has for calls that its
provider runs; where it has none, what came of them alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..api.choice import not_run
from ..api.incoming import IncomingRequest
from ..api.named_servers import NamedServer
from ..audit import audit
from ..drive import Done
from ..events import ArgumentsDelta, CallEnd, CallResult, CallStart, Event, Finished, Noted
from ..plan.calls import answer, assistant
from ..tool_results import LIMIT
from ..types import Message, Note, Reply, Request, Step, Tool, ToolCall, ToolResult, Usage
from ..wire.reading.collect import add_usage
from .tool_sources import NO_SERVERS, Source, box, connector, parted

if TYPE_CHECKING:
    from .config.settings import Key, McpServer

log = logging.getLogger(__name__)

HOSTED_TYPES = ("web_search", "web_fetch", "code_execution", "code_interpreter", "file_search", "image_generation")
"""The types of tools that providers run today, without a date; the configuration may name newer ones."""
Ask = Callable[[Request], AsyncGenerator[Event | Done[Reply]]]


@dataclass(frozen=True, slots=True)
class Running:
    """A tool that is there: the source that runs it, and its own name in that."""

    source: Source
    name: str


class HostedTools:
    """The operator's tools: `sources` by the names of the types that they stand for, and those of `servers`, of which all
    clients get those that are `offered` whose keys do not say otherwise."""

    def __init__(
        self,
        sources: Mapping[str, str],
        servers: Mapping[str, McpServer] = NO_SERVERS,
        offered: Sequence[str] = (),
    ) -> None:
        self._types = {name: Source(box(source, servers)) for name, source in sources.items()}
        self._servers = {name: Source(connector(one), one.prefix, one.running) for name, one in servers.items()}
        self._addresses = {name: one.server for name, one in servers.items()}
        self._offered = offered

    async def aclose(self) -> None:
        """Lets the servers go; those that were started here have ended then."""
        await asyncio.gather(*(one.box.aclose() for one in (*self._types.values(), *self._servers.values())))

    def close(self) -> None:
        """`aclose`, for code that does not await."""
        if {**self._types, **self._servers}:
            asyncio.run(self.aclose())

    async def add(
        self, asked: IncomingRequest, running: Mapping[str, Running], key: Key | None
    ) -> tuple[IncomingRequest, dict[str, Running]]:
        """The request with the tools of the servers that its client gets, and what runs these beside those that are
        running. Where a call is demanded, or none is wanted, there are none; a tool of the client's keeps its name."""
        grants = list(map(parted, self._granted(key)))
        request = asked.request
        if not grants or (request.choice, request.prompt, asked.several) != ("auto", None, ()):
            return asked, {**running}
        names = list(dict.fromkeys(server for server, _ in grants))
        found = dict(zip(names, await asyncio.gather(*(self._servers[one].tools(one) for one in names)), strict=True))
        named = {name: self._named(asked, name) for name in names}
        ran, tools = {**running}, {tool.name: tool for tool in request.tools or ()}
        labels: dict[str, str] = {}
        for server, pattern in grants:
            source = self._servers[server]
            for tool in source.fitting(pattern, found[server]):
                if tool.name not in tools and named[server].offers(tool.name, tool.name.removeprefix(source.prefix)):
                    tools[tool.name] = tool
                    ran[tool.name] = Running(source, tool.name)
                    labels[tool.name] = named[server].label
        offering = replace(asked, request=replace(request, tools=tuple(tools.values())))
        return _with_servers(offering, labels), ran

    def _named(self, asked: IncomingRequest, name: str) -> NamedServer:
        """A server of the operator's as the client names it, or by its own name."""
        address = self._addresses[name]
        return next((one for one in asked.servers if one.means(name, address)), NamedServer(name, "", ()))

    def _granted(self, key: Key | None) -> Sequence[str]:
        """The servers, or some of their tools, that the owner of a key gets."""
        own = key.mcp if key else None
        return self._offered if own is None else own

    async def join(self, asked: IncomingRequest) -> tuple[IncomingRequest, dict[str, Running]]:
        """The request with the tools that it asked a provider for, as far as the operator has such, and what runs
        them."""
        running: dict[str, Running] = {}
        tools = [*(asked.request.tools or ())]
        left = set(asked.ignored)
        taken = {tool.name for tool in tools}
        for kind, where in asked.hosted:
            name = next((one for one in self._types if f"{kind}_".startswith(f"{one}_")), "")
            if name in taken:
                continue
            if found := await self._tool(name):
                taken.add(name)
                running[name] = Running(self._types[name], found.name)
                tools.append(replace(found, name=name))
                left.discard(where)
        choice = _choice(asked, running)
        if not running:
            return asked, running
        request = replace(asked.request, tools=tuple(tools), choice=choice)
        return replace(asked, request=request, ignored=tuple(sorted(left))).with_runs(
            dict.fromkeys(running, "")
        ), running

    async def _tool(self, name: str) -> Tool[..., Any] | None:
        """The tool for a type; None where there is none, or its server cannot be had, which the log tells."""
        if name not in self._types:
            return None
        found = await self._types[name].tools(name)
        if len(found) == 1:
            return found[0]
        if found:
            log.warning("the server for %s has %d tools: name one of them (mcp:SERVER#NAME)", name, len(found))
        return None


def _with_servers(asked: IncomingRequest, labels: Mapping[str, str]) -> IncomingRequest:
    """The request whose client is told the servers that it has named and the calls of their tools, `labels` being those of
    the servers by the names of the tools. A server of which nothing is offered stays among what says nothing."""
    by_label = {label: list[Tool[..., Any]]() for label in labels.values()}
    for tool in asked.request.tools or ():
        if tool.name in labels:
            by_label[labels[tool.name]].append(tool)
    ignored, listings = {*asked.ignored}, dict[str, tuple[Tool[..., Any], ...]]()
    for one in asked.servers:
        if one.label in by_label:
            ignored -= {*one.where}
            listings |= {} if one.listed else {one.label: tuple(by_label[one.label])}
    told = replace(asked, ignored=tuple(sorted(ignored)), listings=listings)
    return told.with_runs(labels) if asked.tells_servers else told


def _choice(asked: IncomingRequest, running: Mapping[str, Running]) -> str:
    """The choice, which may be of one of these. Raises Refused where one is demanded that nobody runs."""
    kind = asked.demanded
    if not kind:
        return asked.request.choice
    fitting = [name for name in running if kind == "required" or f"{kind}_".startswith(f"{name}_")]
    if not fitting:
        raise not_run(kind)
    return "required" if kind == "required" else fitting[0]


async def answered(
    request: Request,
    running: Mapping[str, Running],
    ask: Ask,
    *,
    told: Collection[str] = (),
    longest: int = LIMIT,
    turns: int = 6,
    audit_as: str | None = None,
) -> AsyncGenerator[Event | Done[Reply]]:
    """The events of a reply in which the calls of these tools are run, and not left to the client; those that are `told` are
    events too, each with its result. A reply that calls tools of the client's too ends there, and its calls of these are
    left out, with a note. A result keeps `longest` characters; after so many `turns` the reply must do with what they gave.
    Where no policy decides, the audit names the owner of a key: `audit_as`."""
    so_far = _Turns(request, running, told, longest, turns, audit_as)
    while not so_far.over:
        listening = _Listening(running)
        async with aclosing(ask(so_far.request)) as events:
            async for event in events:
                for passed in listening.take(event):
                    yield passed
        async with aclosing(so_far.add(listening.reply)) as made:
            async for one in made:
                yield one


class _Turns:
    """A reply that is made in several turns: the `request` for the next one, and whether it is `over`."""

    def __init__(
        self,
        request: Request,
        running: Mapping[str, Running],
        told: Collection[str],
        longest: int,
        turns: int,
        audit_as: str | None,
    ) -> None:
        self.request = request
        self.over = False
        self._running, self._told = running, told
        self._longest, self._most, self._audit_as = longest, turns, audit_as
        self._spent = Usage()
        self._steps: list[Step] = []

    async def add(self, reply: Reply) -> AsyncGenerator[Event | Done[Reply]]:
        """Runs the calls of one reply, or ends with it; what the client is told of that."""
        self._spent = add_usage(self._spent, reply.usage)
        calls = [call for call in reply.calls if call.name in self._running]
        others = tuple(call for call in reply.calls if call.name not in self._running)
        if calls and not others:
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
        whole = replace(reply, calls=calls, usage=self._spent, steps=steps, notes=noted)
        return [*map(Noted, notes), Finished(reply.finish, self._spent), Done(whole)]

    async def _run(self, reply: Reply, calls: list[ToolCall]) -> AsyncGenerator[Event | Done[Reply]]:
        ran: list[tuple[ToolCall, ToolResult]] = []
        for call in calls:
            if call.name in self._told:  # before it is run, which may take long
                for event in (CallStart(call.name, call.id), ArgumentsDelta(call.json), CallEnd()):
                    yield event
            ran.append((call, await self._result(call)))
            if call.name in self._told:
                yield CallResult(ran[-1][1])
        told = [(call, result) for call, result in ran if call.name in self._told]
        made = replace(reply, calls=tuple(call for call, _ in told))
        self._steps.append(Step(made, tuple(result for _, result in told)))
        self._go_on([assistant(reply), *(answer(call, result.text) for call, result in ran)])

    async def _result(self, call: ToolCall) -> ToolResult:
        if self._audit_as is not None:
            audit(call, None, "allowed", who=self._audit_as)
        one = self._running[call.name]
        return await one.source.run(call, one.name, self._longest)

    def _go_on(self, messages: list[Message]) -> None:
        """The next request: a call that was required has been made, and some time there are enough."""
        tools = self.request.tools or ()
        if len(self._steps) == self._most:
            tools = tuple(tool for tool in tools if tool.name not in self._running)
        self.request = replace(self.request, messages=[*self.request.messages, *messages], tools=tools, choice="auto")


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
