"""Runs tools in the gateway: those of the operator's MCP servers.

There are two ways to offer them. The configuration may map the type of a provider's hosted tool (`web_search`) to a
tool of an MCP server: a request that offers the hosted tool then offers the operator's tool to the model, under the
name of the type. And it may name servers whose tools the models of some keys get besides the client's own, if the model
is free to choose its calls.

Calls are run here, their results go back to the model, and the reply continues. The client gets the calls and results
in the format that its API has for calls run by the provider. An API without such a format gets only the text.
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
from ..drive import Done
from ..events import ArgumentsDelta, CallEnd, CallResult, CallStart, Event, Finished, Noted
from ..plan.calls import answer, assistant
from ..tool_results import LIMIT
from ..types import Message, Note, Reply, Request, Step, Tool, ToolCall, ToolResult, Usage
from ..wire.reading.collect import add_usage
from .mcp_sources import NO_SERVERS, Source, box, connector, parted

if TYPE_CHECKING:
    from .config.settings import Key, McpServer

log = logging.getLogger(__name__)

HOSTED_TYPES = ("web_search", "web_fetch", "code_execution", "code_interpreter", "file_search", "image_generation")
"""The types of tools that providers run today, without a date. The configuration may name newer ones."""
Ask = Callable[[Request], AsyncGenerator[Event | Done[Reply]]]


@dataclass(frozen=True, slots=True)
class Running:
    """A tool that runs here: its source, and its name there."""

    source: Source
    name: str


class HostedTools:
    """The operator's tools: `sources` by the types that they stand for, and those of `servers`. The servers in
    `offered` are for all clients, unless a key says otherwise."""

    def __init__(
        self,
        sources: Mapping[str, str],
        servers: Mapping[str, McpServer] = NO_SERVERS,
        offered: Sequence[str] = (),
        keys: Sequence[Key] = (),
    ) -> None:
        grants = [("server.mcp", offered), *((f"keys.{key.name}.mcp", key.mcp or ()) for key in keys)]
        patterns = [(place, *parted(one)) for place, listed in grants for one in listed]
        self._types = {name: Source(box(source, servers)) for name, source in sources.items()}
        self._servers = {
            name: Source(
                connector(one), one.prefix, one.running,
                [(place, pattern) for place, server, pattern in patterns if server == name],
            )
            for name, one in servers.items()
        }  # fmt: skip
        self._addresses = {name: one.server for name, one in servers.items()}
        self._offered = offered

    async def aclose(self) -> None:
        """Disconnect from the servers; those that were started here have ended afterwards."""
        await asyncio.gather(*(one.box.aclose() for one in (*self._types.values(), *self._servers.values())))

    def close(self) -> None:
        """`aclose`, for code that does not await."""
        if {**self._types, **self._servers}:
            asyncio.run(self.aclose())

    async def add(
        self, incoming: IncomingRequest, running: Mapping[str, Running], key: Key | None
    ) -> tuple[IncomingRequest, dict[str, Running]]:
        """Return the request with the tools of the servers that its client gets, and the sources of all tools that run
        here.

        A tool of the client's own keeps its name.
        """
        grants = list(map(parted, self._granted(key)))
        request = incoming.request
        if not grants or not _takes_more(incoming):
            return incoming, {**running}
        names = list(dict.fromkeys(server for server, _ in grants))
        found = dict(zip(names, await asyncio.gather(*(self._servers[one].tools(one) for one in names)), strict=True))
        named = {name: self._named(incoming, name) for name in names}
        ran, tools = {**running}, {tool.name: tool for tool in request.tools or ()}
        labels: dict[str, str] = {}
        for server, pattern in grants:
            source = self._servers[server]
            for tool in source.fitting(pattern, found[server]):
                if tool.name not in tools and named[server].offers(tool.name, tool.name.removeprefix(source.prefix)):
                    tools[tool.name] = tool
                    ran[tool.name] = Running(source, tool.name)
                    labels[tool.name] = named[server].label
        offering = replace(incoming, request=replace(request, tools=tuple(tools.values())))
        return _with_servers(offering, labels), ran

    def _named(self, incoming: IncomingRequest, name: str) -> NamedServer:
        """Return an operator's server with the label that the client uses, or with its own name."""
        address = self._addresses[name]
        return next((one for one in incoming.servers if one.means(name, address)), NamedServer(name, "", ()))

    def _granted(self, key: Key | None) -> Sequence[str]:
        """Return the servers, or some of their tools, that the owner of a key gets."""
        own = key.mcp if key else None
        return self._offered if own is None else own

    async def join(self, incoming: IncomingRequest) -> tuple[IncomingRequest, dict[str, Running]]:
        """Return the request with the operator's tools in place of the hosted ones that it asks for, and the sources of
        these tools."""
        running: dict[str, Running] = {}
        tools = [*(incoming.request.tools or ())]
        left = set(incoming.ignored)
        used = {tool.name for tool in tools}
        for kind, where in incoming.hosted:
            name = next((one for one in self._types if f"{kind}_".startswith(f"{one}_")), "")
            if name in used:
                continue
            if found := await self._tool(name):
                used.add(name)
                running[name] = Running(self._types[name], found.name)
                tools.append(replace(found, name=name))
                left.discard(where)
        choice = _choice(incoming, running)
        if not running:
            return incoming, running
        request = replace(incoming.request, tools=tuple(tools), choice=choice)
        return replace(incoming, request=request, ignored=tuple(sorted(left))).with_runs(
            dict.fromkeys(running, "")
        ), running

    async def _tool(self, name: str) -> Tool[..., Any] | None:
        """Return the tool for a type; None if there is none, or if its server is unavailable, which is logged."""
        if name not in self._types:
            return None
        found = await self._types[name].tools(name)
        if len(found) == 1:
            return found[0]
        if found:
            log.warning("the server for %s has %d tools: name one of them (mcp:SERVER#NAME)", name, len(found))
        return None


def _takes_more(incoming: IncomingRequest) -> bool:
    """Whether the operator's tools may be added: unless the request demands a call, forbids calls, or wants only a value
    of a schema. A client that offers no tool and names no server expects that value from one reply."""
    request = incoming.request
    if request.schema and not (request.tools or incoming.servers):
        return False
    return (request.choice, request.prompt, incoming.several) == ("auto", None, ())


def _with_servers(incoming: IncomingRequest, labels: Mapping[str, str]) -> IncomingRequest:
    """Return the request with the servers that its client named, so that calls of their tools can be reported; `labels`
    are the servers' labels by the names of the tools. A server that offers no tool stays in the list of ignored fields.
    """
    by_label = {label: list[Tool[..., Any]]() for label in labels.values()}
    for tool in incoming.request.tools or ():
        if tool.name in labels:
            by_label[labels[tool.name]].append(tool)
    ignored, listings = {*incoming.ignored}, dict[str, tuple[Tool[..., Any], ...]]()
    for one in incoming.servers:
        if one.label in by_label:
            ignored -= {*one.where}
            listings |= {} if one.listed else {one.label: tuple(by_label[one.label])}
    reported = replace(incoming, ignored=tuple(sorted(ignored)), listings=listings)
    return reported.with_runs(labels) if incoming.tells_servers else reported


def _choice(incoming: IncomingRequest, running: Mapping[str, Running]) -> str:
    """Return the tool choice, which may name one of these tools. Raises Refused if it demands a tool that nobody runs."""
    kind = incoming.demanded
    if not kind:
        return incoming.request.choice
    fitting = [name for name in running if kind == "required" or f"{kind}_".startswith(f"{name}_")]
    if not fitting:
        raise not_run(kind)
    return "required" if kind == "required" else fitting[0]


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
    rounds the model must answer with what it has. `on_run` gets each call before it runs.
    """
    so_far = _Turns(request, running, reported, longest, turns, on_run)
    while not so_far.over:
        listening = _RoundFilter(running)
        async with aclosing(ask(so_far.request)) as events:
            async for event in events:
                for passed in listening.take(event):
                    yield passed
        async with aclosing(so_far.add(listening.reply)) as made:
            async for one in made:
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
        self._spent = Usage()
        self._steps: list[Step] = []

    async def add(self, reply: Reply) -> AsyncGenerator[Event | Done[Reply]]:
        """Run the calls of one round, or end with it. Yields the events for the client."""
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
            if call.name in self._reported:  # announced before the call runs, which may take long
                for event in (CallStart(call.name, call.id), ArgumentsDelta(call.json), CallEnd()):
                    yield event
            ran.append((call, await self._result(call)))
            if call.name in self._reported:
                yield CallResult(ran[-1][1])
        reported = [(call, result) for call, result in ran if call.name in self._reported]
        reply_part = replace(reply, calls=tuple(call for call, _ in reported))
        self._steps.append(Step(reply_part, tuple(result for _, result in reported)))
        self._go_on([assistant(reply), *(answer(call, result.text) for call, result in ran)])

    async def _result(self, call: ToolCall) -> ToolResult:
        self._on_run(call)
        one = self._running[call.name]
        return await one.source.run(call, one.name, self._longest)

    def _go_on(self, messages: list[Message]) -> None:
        """Set the next request. A required call was made, so calls are now optional; after the last round they are
        forbidden."""
        tools = self.request.tools or ()
        if len(self._steps) == self._most:
            tools = tuple(tool for tool in tools if tool.name not in self._running)
        self.request = replace(self.request, messages=[*self.request.messages, *messages], tools=tools, choice="auto")


class _RoundFilter:
    """Filters the events of one round: calls of the tools in `running` are held back, and so is its end."""

    def __init__(self, running: Mapping[str, Running]) -> None:
        self._running = running
        self._within = False
        self.reply = Reply()

    def take(self, event: Event | Done[Reply]) -> list[Event]:
        """Return the events to pass on."""
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
