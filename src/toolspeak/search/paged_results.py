"""A model that reads results of tools which are too large for it a part at a time; see `plan.result_pages`.

    model = PagedResults(ts.model("ollama:NAME"))

`run` and its like, and the gateway, put it around a model by themselves. Where a conversation holds a result of more
than a page, or one that was cleared, the model is offered `read_more` from there on, and its calls are answered here.
What it read stands in the conversation of later requests too, at the same place: it is kept in this process, by how the
conversation began. Another process shows the cut result alone, and the model may read on again."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from ..api.json_stream import records
from ..events import Event, Noted
from ..models.base import Counter, Model
from ..models.context import context_of
from ..models.offload import offloaded, request_size
from ..models.wrapper import Wrapper
from ..plan.calls import answer
from ..plan.prompted import text_of
from ..plan.result_pages import Page, PageSize, ResultPages, Row, page, page_text, read_tool, too_large
from ..plan.token_estimate import about_message, about_request
from ..tool_results import LIMIT
from ..types import Message, Note, Request, Tool, ToolCall
from .inner_calls import Ear, answered_here, events_of, without_beginning
from .query import AnsweredCalls, AnsweredRound, Remember

SHARE = 4
"""A result gets one part of so many of a known context."""
TOGETHER = 2
"""The results of one turn get one part of so many of it."""
ANSWER = 8
"""The reply is left one part of so many of it, where its length is not bounded."""
LEAST = 50
"""Tokens of the smallest page that is read."""
READS = 8
"""How often a model may read on before it must do with what it has read."""
MANY = 1_000_000_000
"""Tokens or characters that nothing exceeds: there is no bound."""
WHOLE = PageSize(MANY, MANY, MANY)
NO_ROOM = "There is no room to read more of it. Do with what is known, or call the tool again for less."
READ = AnsweredCalls[Page](1_024)
"""What was read in the conversations of this process."""


class PagedResults(Wrapper[Model]):
    """A model that is shown a part of each large result, and may read more of it by `read_more`.

    A page is of `tokens` (0: every result is shown whole), else of a quarter of the model's `context` (without one: what
    the model tells of itself), and of `characters` at most; the results of one turn have half of that context together.
    Where none of these is known every result is shown whole. `clear` are the tokens of a
    conversation and the number of last results for `plan.clearing`. A model that is scored is left as it is."""

    def __init__(
        self,
        model: Model,
        *,
        tokens: int | None = None,
        context: int | None = None,
        characters: int | None = LIMIT,
        clear: tuple[int, int] | None = None,
        read: AnsweredCalls[Page] = READ,
    ) -> None:
        super().__init__(model)
        self._tokens = MANY if tokens == 0 else tokens
        self._context = context
        self._characters = characters or MANY
        self._clear = clear
        self._read = read

    def around(self, model: Model) -> Self:
        """The same around another model."""
        made = copy.copy(self)
        made.model = model
        return made

    @property
    def context(self) -> int | None:
        """How many tokens the model reads and writes at once, where that is known."""
        return self._context or context_of(self.model)

    @property
    def size(self) -> PageSize:
        """How much of a result is read at once."""
        if "scored" in self.capabilities:
            return WHOLE
        context, tokens = self.context, self._tokens
        together = max(2 * LEAST, context // TOGETHER) if context and tokens != MANY else MANY
        if tokens is None:
            tokens = max(LEAST, context // SHARE) if context else MANY
        return PageSize(tokens, self._characters, together)

    # asking

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The reply's events; see the protocol."""
        return self._paging(request) if self.needed(request) else self.model.stream(request)

    async def narrowed(self, request: Request) -> Request:
        """The request as the model is asked it first."""
        return await offloaded(request_size(request), self.narrowed_now, request)

    def narrowed_now(self, request: Request) -> Request:
        """As `narrowed`, for code that does not await."""
        return self._begun(request).request if self.needed(request) else request

    async def count(self, request: Request) -> int | None:
        """The tokens of what the model would be asked first; None where it cannot tell."""
        return await self.model.count(await self.narrowed(request)) if isinstance(self.model, Counter) else None

    def needed(self, request: Request) -> bool:
        """Whether anything of a request may have to be cut or cleared: what was read had been cut before."""
        if request.prompt is not None:
            return False
        return self._clear is not None or too_large(request.messages, self.size)

    async def _paging(self, request: Request) -> AsyncGenerator[Event]:
        begun = await offloaded(request_size(request), self._begun, request)
        events = self._read_here(begun, request) if begun.offered else _noted(begun.notes, self.model, begun.request)
        async with aclosing(events):
            async for event in events:
                yield event

    def _read_here(self, begun: PagedRequest, request: Request) -> AsyncGenerator[Event]:
        reads = PageReader(begun, self.size, self.context, partial(self._read.remember, request.messages))
        ask = partial(events_of, self.model)
        return answered_here(reads, ask, begun.notes, held=request.schema is not None)

    def _begun(self, request: Request) -> PagedRequest:
        """The conversation with its large results cut, the pages that were read in it, and the old results cleared."""
        tool = self._tool(request)
        pages = ResultPages(self.size, tool.name)
        cut = pages.cut(request.messages)
        pages.know(cut if self._clear else ())
        rounds = self._read.recall(request.messages if tool.name else ())
        rows, places = _with_pages(cut, rounds, pages.texts, tool.name)
        rows, cleared = pages.clear(rows, *self._clear) if self._clear else (rows, 0)
        late = {name: places[at] for name, at in request.late.items() if at < len(places)}
        asked = replace(request, messages=[row.message for row in rows], late=late)
        counts = {"results-cut": sum(bool(row.whole) for row in cut), "results-cleared": cleared}
        notes = [Note(rule, str(count)) for rule, count in counts.items() if count]
        return _offering(PagedRequest(asked, pages.texts, tool, False, notes), pages.first(rows))

    def _tool(self, request: Request) -> Tool[..., Any]:
        """The tool that reads on; without a name where it cannot be called."""
        if "scored" in self.capabilities or not request.tools:
            return Tool("")
        return read_tool(_names(request))


@dataclass(frozen=True, slots=True)
class PagedRequest:
    """A request as the model is asked it first: the `texts` that can be read, the `tool` that reads them, and whether
    it is `offered`."""

    request: Request
    texts: Mapping[str, str]
    tool: Tool[..., Any]
    offered: bool
    notes: Sequence[Note]


def _offering(begun: PagedRequest, first: int | None) -> PagedRequest:
    """The same with the tool that reads on, defined at that place, unless another is demanded."""
    request, name = begun.request, begun.tool.name
    if first is None or request.choice not in ("auto", "required", "none"):
        return begun
    tools = (*_offered(request), begun.tool)
    return replace(begun, request=replace(request, tools=tools, late={**request.late, name: first}), offered=True)


def _offered(request: Request) -> tuple[Tool[..., Any], ...]:
    return request.tools or ()


def _names(request: Request) -> set[str]:
    return {tool.name for tool in (*_offered(request), *request.hidden)}


class PageReader:
    """Answers the calls that read on, within one reply; see `inner_calls`."""

    most = READS
    what = "reads"

    def __init__(self, begun: PagedRequest, size: PageSize, context: int | None, remember: Remember[Page]) -> None:
        request = begun.request
        self.name = begun.tool.name
        self.names: Collection[str] = _names(request)
        self._begun = begun
        self._size = size
        context = context or MANY
        self._room = context - (request.max_tokens or context // ANSWER) - about_request(request)
        self._messages = list(request.messages)
        self._rounds: list[AnsweredRound[Page]] = []
        self._remember = remember

    def next_request(self, *, last: bool) -> Request:
        """The request as the conversation has gone on."""
        begun = self._begun.request
        if not last:
            return replace(begun, messages=list(self._messages))
        tools = tuple(tool for tool in _offered(begun) if tool.name != self.name)
        hidden = (*begun.hidden, self._begun.tool)  # a prompted model that calls it all the same is not to be quoted
        return replace(begun, messages=list(self._messages), tools=tools, hidden=hidden)

    async def answer(self, ear: Ear, calls: Sequence[ToolCall], *, beside: bool) -> list[Note]:
        """Reads a page for each call."""
        read = [self._page(call) for call in calls]
        self._rounds.append(AnsweredRound(ear.message(calls), tuple(read), beside))
        if not beside:
            self._messages += [self._rounds[-1].message, *results(self._rounds[-1], self._begun.texts, self.name)]
        return [Note("result-read", one.problem or f"{one.result}: {one.start} to {one.end}") for one in read]

    def end(self, text: str, called: Sequence[str]) -> None:
        """Keeps what was read for later requests of the conversation."""
        self._remember(text, called, self._rounds)

    def _page(self, call: ToolCall) -> Page:
        """What a call reads, as far as there is room for it."""
        if self._room < LEAST:
            return Page("", problem=NO_ROOM)
        size = PageSize(min(self._size.tokens, self._room), self._size.characters)
        read = page(self._begun.texts, call.arguments, size)
        self._room -= about_message(answer(call, page_text(self._begun.texts, read, self.name)))
        return read


def results(one: AnsweredRound[Page], texts: Mapping[str, str], tool: str) -> list[Message]:
    """The answers to the reads in one reply, as the conversation goes on."""
    calls = records(one.message.get("tool_calls"))
    return [
        answer(ToolCall(str(call.get("id", "")), tool, {}), page_text(texts, read, tool))
        for call, read in zip(calls, one.results, strict=False)
    ]


def _with_pages(
    rows: Sequence[Row], rounds: Mapping[int, Sequence[AnsweredRound[Page]]], texts: Mapping[str, str], tool: str
) -> tuple[list[Row], list[int]]:
    """The rows with the pages that were read where they were read; where each row is then. A page that was read beside
    a call of the client's stands before the result of that."""
    made: list[Row] = []
    places: list[int] = []
    for place, row in enumerate(rows):
        before, after, own = "", list[Row](), records(row.message.get("tool_calls"))
        for one in rounds.get(place, ()):
            read = [Row(result, read=True) for result in results(one, texts, tool)]
            if not one.beside:
                made += [Row(one.message), *read]
                before += text_of(one.message)
            elif own:
                own = [*records(one.message.get("tool_calls")), *own]
                after += read
        places.append(len(made))
        message: Message = {**row.message, "tool_calls": own} if after else row.message
        made += [Row(without_beginning(message, before), row.whole), *after]
    return made, places


async def _noted(notes: Sequence[Note], model: Model, request: Request) -> AsyncGenerator[Event]:
    """The events of a model, behind its first one the notes: until then all can be asked elsewhere, or refused."""
    async with aclosing(events_of(model, request)) as events:
        async for event in events:
            for note in notes:
                yield Noted(note)
            notes = ()
            yield event
