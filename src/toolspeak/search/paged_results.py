"""A model wrapper that shows large tool results page by page; see `plan.result_pages`.

    model = PagedResults(ts.model("ollama:NAME"))

`run` and similar functions, and the gateway, wrap a model by themselves. If a conversation has a result of more than a
page, or one that was cleared, the model is offered `read_more` from there on, and its calls are answered here. Pages
that it read appear at the same place in later requests of the conversation: they are cached in this process, by the
beginning of the conversation. Another process shows only the cut result, and the model may read the page again.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from ..api.json_stream import records
from ..events import Event, Noted
from ..models.base import Model, TokenCounter
from ..models.context import SMALL, after_context, asks_context, context_of, find_context
from ..models.offload import offloaded, request_size
from ..models.wrapper import Wrapper
from ..plan.calls import answer, checked, problem_text
from ..plan.prompted import text_of
from ..plan.result_pages import (
    PageRow,
    PageSize,
    ResultPages,
    TextPage,
    is_result,
    page,
    page_text,
    read_tool,
    too_large,
)
from ..plan.token_estimate import about_message, about_request
from ..tool_results import LIMIT
from ..types import Message, Note, Request, Tool, ToolCall
from .conversation_queries import AnsweredCalls, AnsweredRound, Remember
from .internal_tools import Ear, answered_here, events_of, without_beginning

SHARE = 4
"""A result may take one part in so many of a known context."""
TOGETHER = 2
"""The results of one turn may take one part in so many."""
ANSWER = 8
"""One part in so many is left for the reply, if its length has no limit."""
LEAST = 50
"""Tokens of the smallest page."""
READS = 8
"""The most rounds of reading in one reply."""
MANY = 1_000_000_000
"""More tokens or characters than anything has: no limit."""
WHOLE = PageSize(MANY, MANY, MANY)
NO_ROOM = "There is no room to read more of it. Do with what is known, or call the tool again for less."
READ = AnsweredCalls[TextPage](1_024)
"""The cache of pages that were read in the conversations of this process."""


class PagedResults(Wrapper[Model]):
    """A model wrapper that shows a part of each large result; the model may read more with `read_more`.

    A page has `tokens` (0: every result is shown whole), by default a quarter of the model's `context` (by default
    what the model reports), and at most `characters`. The results of one turn may take half of the context. If none of
    these is known every result is shown whole. `clear` is the token limit of a conversation and the number of last
    results, for `plan.clearing`. Requests to a model that scores by likelihood are not changed.
    """

    def __init__(
        self,
        model: Model,
        *,
        tokens: int | None = None,
        context: int | None = None,
        characters: int | None = LIMIT,
        clear: tuple[int, int] | None = None,
        read: AnsweredCalls[TextPage] = READ,
    ) -> None:
        super().__init__(model)
        self._tokens = MANY if tokens == 0 else tokens
        self._context = context
        self._characters = characters or MANY
        self._clear = clear
        self._read = read

    def around(self, model: Model) -> Self:
        """The same wrapper around another model."""
        outer = copy.copy(self)
        outer.model = model
        return outer

    @property
    def context(self) -> int | None:
        """The model's context size in tokens, if known."""
        return self._context or context_of(self.model)

    @property
    def size(self) -> PageSize:
        """The size of a page."""
        return self._size(self.context)

    def _size(self, context: int | None) -> PageSize:
        if "scored" in self.capabilities:
            return WHOLE
        tokens = self._tokens
        together = max(2 * LEAST, context // TOGETHER) if context and tokens != MANY else MANY
        if tokens is None:
            tokens = max(LEAST, context // SHARE) if context else MANY
        return PageSize(tokens, self._characters, together)

    # requests

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The events of the reply; see the protocol."""
        if self._asks(request):
            return after_context(self.model, lambda: self._stream(request))
        return self._stream(request)

    def _stream(self, request: Request) -> AsyncIterator[Event]:
        return self._paging(request) if self.needed(request) else self.model.stream(request)

    def _asks(self, request: Request) -> bool:
        """Whether the model's context has to be known for a request, and its server is still to be asked for it."""
        if not asks_context(self.model, self._context):
            return False
        return too_large(request.messages, self._size(SMALL))

    async def narrowed(self, request: Request) -> Request:
        """The first request to the inner model."""
        if self._asks(request):
            await find_context(self.model)
        return await offloaded(request_size(request), self.narrowed_now, request)

    def narrowed_now(self, request: Request) -> Request:
        """As `narrowed`, for code that does not await."""
        return self._begun(request).request if self.needed(request) else request

    async def count(self, request: Request) -> int | None:
        """The tokens of the first request to the inner model; None if it cannot count."""
        return await self.model.count(await self.narrowed(request)) if isinstance(self.model, TokenCounter) else None

    def needed(self, request: Request) -> bool:
        """Whether anything in a request may have to be cut or cleared. Pages that were read come from results that
        were cut."""
        if request.prompt is not None:
            return False
        if self._clear is not None:
            return True
        return any(map(is_result, request.messages)) and too_large(request.messages, self.size)

    async def _paging(self, request: Request) -> AsyncGenerator[Event]:
        begun = await offloaded(request_size(request), self._begun, request)
        events = self._read_here(begun, request) if begun.offered else _noted(begun.notes, self.model, begun.request)
        async with aclosing(events):
            async for event in events:
                yield event

    def _read_here(self, begun: PagedRequest, request: Request) -> AsyncGenerator[Event]:
        reads = PageReader(begun, self.size, self.context, partial(self._read.remember, request.messages))
        ask = partial(events_of, self.model)
        return answered_here(reads, ask, begun.notes, hold=request.schema is not None)

    def _begun(self, request: Request) -> PagedRequest:
        """The conversation with large results cut, the pages that were read in it, and old results cleared."""
        tool = self._tool(request)
        pages = ResultPages(self.size, tool.name)
        cut = pages.cut(request.messages)
        pages.know(cut if self._clear else ())
        rounds = self._read.recall(request.messages if tool.name else ())
        rows, places = _with_pages(cut, rounds, pages.texts, tool.name)
        rows, cleared = pages.clear(rows, *self._clear) if self._clear else (rows, 0)
        late = {name: places[at] for name, at in request.late.items() if at < len(places)}
        sent = replace(request, messages=[row.message for row in rows], late=late)
        counts = {"results-cut": sum(bool(row.whole) for row in cut), "results-cleared": cleared}
        notes = [Note(rule, str(count)) for rule, count in counts.items() if count]
        return _offering(PagedRequest(sent, pages.texts, tool, False, notes), pages.first(rows))

    def _tool(self, request: Request) -> Tool[..., Any]:
        """The tool that reads pages; without a name if it cannot be called."""
        if "scored" in self.capabilities or not request.tools:
            return Tool("")
        return read_tool(_names(request))


@dataclass(frozen=True, slots=True)
class PagedRequest:
    """The first request to the model: the readable `texts`, the `tool` that reads them, and whether it is `offered`."""

    request: Request
    texts: Mapping[str, str]
    tool: Tool[..., Any]
    offered: bool
    notes: Sequence[Note]


def _offering(begun: PagedRequest, first: int | None) -> PagedRequest:
    """The same with the reading tool, introduced at that place, unless another tool is required."""
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
    """Answers the calls of `read_more` within one reply; see `internal_tools`."""

    most = READS
    what = "reads"

    def __init__(self, begun: PagedRequest, size: PageSize, context: int | None, remember: Remember[TextPage]) -> None:
        request = begun.request
        self.name = begun.tool.name
        self.names: Collection[str] = _names(request)
        self._begun = begun
        self._size = size
        context = context or MANY
        self._limit = context - (request.max_tokens or context // ANSWER)
        self._used = about_request(request)
        self._rate = 1.0
        self._messages = list(request.messages)
        self._rounds: list[AnsweredRound[TextPage]] = []
        self._remember = remember

    def next_request(self, *, last: bool) -> Request:
        """The request with the conversation so far."""
        begun = self._begun.request
        if not last:
            return replace(begun, messages=list(self._messages))
        tools = tuple(tool for tool in _offered(begun) if tool.name != self.name)
        hidden = (*begun.hidden, self._begun.tool)  # if a prompted model still calls it, that must not become text
        return replace(begun, messages=list(self._messages), tools=tools, hidden=hidden)

    async def answer(self, ear: Ear, calls: Sequence[ToolCall], *, beside: bool) -> list[Note]:
        """Reads a page for each call. The tokens that the server counted correct the estimate."""
        usage, message = ear.end.usage, ear.message(calls)
        if not usage.estimated:
            self._rate = max(self._rate, usage.prompt_tokens / self._used)
        self._used += about_message(message)
        read = [self._page(call) for call in calls]
        self._rounds.append(AnsweredRound(message, tuple(read), beside))
        if not beside:
            self._messages += [self._rounds[-1].message, *results(self._rounds[-1], self._begun.texts, self.name)]
        return [Note("result-read", one.problem or f"{one.result}: {one.start} to {one.end}") for one in read]

    def end(self, text: str, called: Sequence[str]) -> None:
        """Caches the pages for later requests of the conversation."""
        self._remember(text, called, self._rounds)

    def _page(self, call: ToolCall) -> TextPage:
        """The page that a call reads, as far as it fits."""
        call, problems = checked(call, [self._begun.tool])
        if problems:
            return TextPage("", problem=problem_text(problems))
        room = int(self._limit / self._rate) - self._used - LEAST
        if room < LEAST:
            return TextPage("", problem=NO_ROOM)
        size = PageSize(min(self._size.tokens, room), self._size.characters)
        read = page(self._begun.texts, call.arguments, size)
        self._used += about_message(answer(call, page_text(self._begun.texts, read, self.name)))
        return read


def results(one: AnsweredRound[TextPage], texts: Mapping[str, str], tool: str) -> list[Message]:
    """The results of the reads in one reply, as messages."""
    calls = records(one.message.get("tool_calls"))
    return [
        answer(ToolCall(str(call.get("id", "")), tool, {}), page_text(texts, read, tool))
        for call, read in zip(calls, one.results, strict=False)
    ]


def _with_pages(
    rows: Sequence[PageRow],
    rounds: Mapping[int, Sequence[AnsweredRound[TextPage]]],
    texts: Mapping[str, str],
    tool: str,
) -> tuple[list[PageRow], list[int]]:
    """The rows with the pages that were read, at their places; and the new index of each row. A page that was read in
    a reply with calls of the client comes before the results of those."""
    messages: list[PageRow] = []
    places: list[int] = []
    for place, row in enumerate(rows):
        before, after, own = "", list[PageRow](), records(row.message.get("tool_calls"))
        for one in rounds.get(place, ()):
            read = [PageRow(result, read=True) for result in results(one, texts, tool)]
            if not one.beside:
                messages += [PageRow(one.message), *read]
                before += text_of(one.message)
            elif own:
                own = [*records(one.message.get("tool_calls")), *own]
                after += read
        places.append(len(messages))
        message: Message = {**row.message, "tool_calls": own} if after else row.message
        messages += [PageRow(without_beginning(message, before), row.whole), *after]
    return messages, places


async def _noted(notes: Sequence[Note], model: Model, request: Request) -> AsyncGenerator[Event]:
    """The events of a model, with the notes after its first event: until then the request can still be sent to another
    model, or fail."""
    async with aclosing(events_of(model, request)) as events:
        async for event in events:
            for note in notes:
                yield Noted(note)
            notes = ()
            yield event
