"""A model wrapper that selects tools: of many, the model sees those that match the conversation, and may search for
others.

    model = ToolRouter(ts.model("ollama:NAME"), max_tools=10, pinned=["ask_user", "files_*"])
    ts.run("Will it rain in Xiamen?", tools=five_thousand, model=model)

`run` and similar functions, and the gateway, do this by themselves if there are more tools than a model can be shown.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Self

from ..errors import MissingExtra, UsageError
from ..events import Event
from ..models.base import Model, TokenCounter
from ..models.context import SMALL, after_context, asks_context, context_of, find_context
from ..models.tool_calling import calling
from ..models.wrapper import Wrapper
from ..plan.token_estimate import about_tool
from ..running import in_thread
from ..types import Note, Request, Tool, ToolCall
from .conversation_queries import AnsweredCalls, AnsweredRound, Names, Remember
from .index_memory_cache import Finder, IndexedTools, Indexes
from .internal_tools import Ear, answered_here, events_of
from .priority import servers
from .search_tool import SearchConversation, query, replayed, search_tool
from .token_calibration import known, learn, ratio
from .visible_tools import MOST, Room, View, scored_view, view

log = logging.getLogger(__name__)

ALL = 64
"""Up to so many tools are all shown to a model with an unknown context size."""
HALF = 0.5
"""The share of a known context that tool definitions may take."""
FEW, MANY = 10, 20
"""Tools that are selected for a question if not all can be shown: for a model that scores likelihoods, which runs in
this process and was not trained on tools; and for any other."""
FEW_TOKENS, MANY_TOKENS = 2_000, 8_000
"""The token limits for their definitions."""
SPARE, SCORED_SPARE = 2, 4
"""Factors on the number of tools that are shown all at once if their definitions fit: for a model that scores
likelihoods, and for one that decides by them, which reads one definition at a time."""
RESULTS = 5
"""The results of one search."""
SEARCHES = 3
"""The most rounds of searching in one reply."""
INDEXES = Indexes()
"""The indexes of this process."""
FINDS = AnsweredCalls[Names]()
"""The cache of searches in the conversations of this process."""


def _check_count(name: str, value: Any) -> None:
    if value is not None and (type(value) is not int or value < 1):
        raise UsageError(f"{name}: expected a whole number of 1 or more, received {value!r}")


class ToolRouter(Wrapper[Model]):
    """A model wrapper that shows all tools if there is room for them, otherwise those that a conversation needs.

    There is room for definitions of up to half of the model's `context` (by default what the model reports), or of
    `tokens`; if neither is known, for 64 tools. A model that scores likelihoods is shown fewer. If there is no room
    for all, these are shown: tools whose names are `pinned` (or match such a pattern), tools that the instructions
    name, the client's own tools before those of its servers, and `max_tools` tools that match the first question best, or
    any.

    Tools that the conversation calls, that later questions match, or that the model finds with `search_tools`, are
    added where they came up, so that the beginning of the prompt stays the same; see `visible_tools`. Searches are
    answered here. Tools that are not shown can be called too, by their exact names.

    Without an `index`, or if a request offers tools that it does not have, an index of the request's tools is built
    and cached. If the extra `search` is missing, all tools are shown with a warning, or MissingExtra is raised if
    `strict`. A text model is wrapped to call tools.
    """

    def __init__(
        self,
        model: Model,
        index: Finder | None = None,
        *,
        max_tools: int | None = None,
        tokens: int | None = None,
        context: int | None = None,
        pinned: Sequence[str] = (),
        strict: bool = True,
        indexes: Indexes = INDEXES,
        finds: AnsweredCalls[Names] | None = None,
    ) -> None:
        if not isinstance(model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"model: expected a model, such as ts.model('local'), received {model!r}")
        if index is not None and not isinstance(index, Finder):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"index: expected a ToolIndex, received {type(index).__name__}")
        for name, value in (("max_tools", max_tools), ("tokens", tokens), ("context", context)):
            _check_count(name, value)
        if isinstance(pinned, str) or not all(isinstance(one, str) for one in pinned):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"pinned: expected a list of names or patterns, received {pinned!r}")
        super().__init__(calling(model))
        self.index = index
        self.pinned = tuple(pinned)
        self.strict = strict
        self._max_tools = max_tools
        self._tokens = tokens
        self._context = context
        self._indexes = indexes
        self._finds = FINDS if finds is None else finds

    def around(self, model: Model) -> Self:
        """The same wrapper around another model."""
        outer = copy.copy(self)
        outer.model = calling(model)
        return outer

    def searching(self, index: Finder) -> Self:
        """The same wrapper with this index."""
        outer = copy.copy(self)
        outer.index = index
        return outer

    @property
    def tool_count(self) -> int:
        """The number of tools that are selected for a question if not all can be shown."""
        return self._max_tools or (FEW if self._scored else MANY)

    @property
    def tokens(self) -> int:
        """The token limit for their definitions."""
        return self._tokens or (FEW_TOKENS if self._scored else MANY_TOKENS)

    @property
    def whole(self) -> int | None:
        """The token limit for the definitions of all shown tools; None if it is unknown."""
        if self._tokens or self._scored:
            return self.tokens
        context = self._context or context_of(self.model)
        return int(HALF * context) if context else None

    @property
    def _by_room(self) -> bool:
        """Whether all tools are shown for which there is room; otherwise their number decides."""
        return self._max_tools is None and not self._scored

    @property
    def _scored(self) -> bool:
        return "score" in self.capabilities

    # requests

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The events of the reply; see the protocol."""
        if self._asks(request):
            return after_context(self.model, lambda: self._stream(request))
        return self._stream(request)

    def _stream(self, request: Request) -> AsyncIterator[Event]:
        return self.model.stream(request) if self.fits(request) else self._routed(request)

    def _asks(self, request: Request) -> bool:
        """Whether the model's context has to be known for a request, and its server is still to be asked for it."""
        if not asks_context(self.model, self._context):
            return False
        return sum(map(about_tool, request.tools or ())) > HALF * SMALL

    async def count(self, request: Request) -> int | None:
        """The tokens of the first request to the inner model; None if it cannot count."""
        return await super().count(await self.narrowed(request)) if isinstance(self.model, TokenCounter) else None

    async def narrowed(self, request: Request) -> Request:
        """The first request to the inner model."""
        if self._asks(request):
            await find_context(self.model)
        if self.fits(request):
            return request
        view = await self._view(request)
        return self._begun(request, view)[0] if view and view.hidden else request

    def narrowed_now(self, request: Request) -> Request:
        """As `narrowed`, for code that does not await."""
        if self.fits(request):
            return request
        try:
            indexed = self._indexes.now(request.tools or (), self.index)
        except MissingExtra as error:
            self._do_without(error)
            return request
        return self._begun(request, self._chosen(indexed, request))[0]

    def fits(self, request: Request) -> bool:
        """Whether all tools of a request are certainly shown."""
        tools = request.tools or ()
        if request.prompt is not None or not tools:
            return True
        if request.deferred and "scored" not in self.capabilities:
            return False
        if not self._by_room:
            return self._few(tools)
        if self.whole is None:
            return len(tools) <= ALL
        whole = sum(map(about_tool, tools))
        return whole * ratio(self.model) <= self.whole and known(self.model, whole, self.whole)

    def _few(self, tools: Sequence[Tool[..., Any]]) -> bool:
        """The same if the number decides."""
        if len(tools) <= min(self.tool_count, MOST):
            return True
        if self._max_tools is not None or len(tools) > MOST:
            return False
        if "scored" in self.capabilities:
            return len(tools) <= SCORED_SPARE * self.tool_count
        return len(tools) <= SPARE * self.tool_count and sum(map(about_tool, tools)) * ratio(self.model) <= self.tokens

    async def _routed(self, request: Request) -> AsyncGenerator[Event]:
        view = await self._view(request)
        if view is None or not view.hidden:
            async with aclosing(events_of(self.model, request)) as events:
                async for event in events:
                    yield event
            return
        begun, search = self._begun(request, view)
        inner = _Searches(begun, view, search, partial(self._finds.remember, request.messages))
        notes = _left_out(request, view)
        ask = partial(events_of, self.model)
        async with aclosing(answered_here(inner, ask, notes, hold=request.schema is not None)) as events:
            async for event in events:
                yield event

    def _begun(self, request: Request, view: View) -> tuple[Request, Tool[..., Any]]:
        """The first request to the inner model, and the search tool, whether or not it is offered."""
        indexed = view.indexed
        first, every = set(view.first), set(view.places)
        apart = [tool.name for place, tool in enumerate(indexed.tools) if place not in first]
        hidden = tuple(tool for place, tool in enumerate(indexed.tools) if place not in every)
        search = search_tool(indexed.places, len(apart), servers(apart) if indexed.own else [])
        offered = request.choice not in indexed.places and self._searches(request, apart)
        ranked = {indexed.tools[place].name: view.best[place] for place in view.best if place in every}
        messages, late = replayed(view, request.messages, SEARCHES)
        tools = (*view.at_head(), *([search] if offered else []), *view.added())
        sent = replace(request, messages=messages, tools=tools, late=late, hidden=hidden, ranked=ranked, deferred={})
        return sent, search

    def _searches(self, request: Request, apart: Sequence[str]) -> bool:
        """Whether the model can search for tools that are not at the head. For deferred ones the client may have its
        own search."""
        if "scored" in self.capabilities:
            return False
        return bool(apart) if request.search else not request.deferred.keys() >= set(apart)

    # selecting

    async def _view(self, request: Request) -> View | None:
        """The shown tools of a request; None for all."""
        try:
            indexed = await self._indexes.of(request.tools or (), self.index)
        except MissingExtra as error:
            self._do_without(error)
            return None
        view = await self._choose(indexed, request)
        bound = self.whole or self.tokens
        if await learn(self.model, view.at_head(), bound):
            view = await self._choose(indexed, request)
        return view

    def _do_without(self, error: MissingExtra) -> None:
        if self.strict:
            raise error
        global _warned  # noqa: PLW0603 - told once a process
        if not _warned:
            _warned = True
            log.warning("all tools are shown, however many: %s", error)

    async def _choose(self, indexed: IndexedTools, request: Request) -> View:
        """As `_chosen`, off the event loop if a search may take long."""
        if indexed.quick:
            return self._chosen(indexed, request)
        return await in_thread(lambda: self._chosen(indexed, request))

    def _chosen(self, indexed: IndexedTools, request: Request) -> View:
        """The shown tools."""
        times, whole = ratio(self.model), self.whole
        room = Room(self.tool_count, self.tokens / times, None if whole is None else whole / times)
        if "scored" in self.capabilities:
            return scored_view(indexed, request, self.pinned, room)
        opened = [place for name, place in indexed.places.items() if name not in request.deferred]
        fits = sum(map(indexed.size, opened)) <= room.whole if room.whole else len(opened) <= ALL
        if self._by_room and fits:
            if not request.deferred:
                return View(indexed, tuple(opened), {})
            room = replace(room, all=True)
        return view(indexed, request, self._finds.recall(request.messages), self.pinned, room)


def _left_out(request: Request, view: View) -> list[Note]:
    """A note of how many tools are shown, if some are left out. The ones that the client itself defers do not count:
    it shows them when they are needed."""
    seen = set(view.places)
    deferred = sum(tool.name in request.deferred for place, tool in enumerate(view.indexed.tools) if place not in seen)
    wanted = len(view.indexed.tools) - deferred
    return [Note("tools-shown", f"{len(seen)} of {wanted}")] if len(seen) < wanted else []


_warned = False


class _Searches:
    """Answers the searches within one reply; see `internal_tools`."""

    most = SEARCHES
    what = "searches"

    def __init__(self, begun: Request, view: View, search: Tool[..., Any], remember: Remember[Names]) -> None:
        self.name = search.name
        self.names: Collection[str] = view.indexed.places
        self._rounds: list[AnsweredRound[Names]] = []
        self._remember = remember
        self._begun = begun
        self._indexed = view.indexed
        self._tool = search
        self._turn = SearchConversation(list(begun.messages), dict(begun.late), list(begun.tools or ()))

    def next_request(self, *, last: bool) -> Request:
        """The request with the conversation so far."""
        return self._turn.next_request(self._begun, without=self._tool if last else None)

    async def answer(self, ear: Ear, calls: Sequence[ToolCall], *, beside: bool) -> list[Note]:
        """Searches, and adds the results to the tools."""
        visible, results, notes = {tool.name for tool in self._turn.tools}, list[Names](), list[Note]()
        searches = [replace(call, arguments={"query": query(call)}, whole=True) for call in calls]
        for call in searches:
            names = await self._search(visible, call.arguments["query"])
            visible.update(names)
            results.append(tuple(names))
            notes.append(Note("tools-searched", f"{call.arguments['query']}: {', '.join(names) or 'nothing'}"))
        self._rounds.append(AnsweredRound(ear.message(searches), tuple(results), beside))
        if not beside:
            self._turn.add(self._indexed, self._rounds[-1], last=len(self._rounds) >= SEARCHES)
        return notes

    def end(self, text: str, called: Sequence[str]) -> None:
        """Caches the searches for later requests of the conversation."""
        self._remember(text, called, self._rounds)

    async def _search(self, visible: set[str], query: str) -> list[str]:
        """The names of the tools that a search finds in addition to the shown ones, as many as may still be added."""
        if not query:
            return []
        indexed, most = self._indexed, len(visible) + RESULTS
        ranked = indexed.search(query, most) if indexed.quick else await in_thread(lambda: indexed.search(query, most))
        new = [name for place, _ in ranked if (name := indexed.tools[place].name) not in visible]
        return new[: min(RESULTS, max(0, MOST + 1 - len(visible)))]
