"""Of many tools a model is shown those that fit what is asked, and may search for others.

    model = Routed(ts.model("ollama:NAME"), shown=10, pinned=["ask_user", "files_*"])
    ts.run("Will it rain in Xiamen?", tools=five_thousand, model=model)

`run` and its like, and the gateway, do this by themselves where there are more tools than a model can be shown.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Self

from ..errors import MissingExtra, ModelError, UsageError
from ..events import Event, Finished, Noted
from ..models.base import Capability, Counter, Model, Scorer
from ..models.speaker import speaking
from ..running import in_thread
from ..types import Message, Note, Request, Tool, Usage
from ..wire.collect import add_usage
from .kept import Finder, Indexed, Indexes, Toolset, size
from .lookup import Ear, search_tool, told
from .question import Finds, errors, ranked, used
from .ratio import learn, ratio

log = logging.getLogger(__name__)

FEW, MANY = 10, 20
"""Tools that are chosen for a question: for a model that tells likelihoods, which are those that run here and were
taught no tools, and for any other."""
FEW_TOKENS, MANY_TOKENS = 2_000, 8_000
"""What the definitions of the tools that are shown may have, in tokens, for the same."""
SPARE, WEIGHED_SPARE = 2, 4
"""Up to so many times as many tools are all shown where their definitions fit: hiding some of 25 costs more than it
saves. A model that decides by likelihood reads one definition at a time, so that it can be given more of them."""
MOST = 127
"""Tools that are shown at most, `search_tools` beside them: some providers refuse more than 128."""
FOUND = 5
"""Tools that one search finds."""
AFTER_ERROR = 3
"""Tools that are shown more for each error of a tool."""
SEARCHES = 3
"""How often a model may search before it must do with what it has found."""
INDEXES = Indexes()
"""The indexes of this process."""
FINDS = Finds()
"""What was found in the conversations of this process."""


@dataclass(frozen=True, slots=True)
class View:
    """What a model is shown of the tools of a request: `places` are where they stand among all, `best` the same of those
    that fit what is asked, best first, with their scores."""

    indexed: Indexed
    places: tuple[int, ...]
    best: Mapping[int, float]

    @property
    def tools(self) -> Toolset:
        """The tools that are shown, in the order of the whole set: the same ones give the same prompt."""
        return tuple(self.indexed.tools[place] for place in self.places)

    @property
    def hidden(self) -> int:
        """How many are not shown."""
        return len(self.indexed.tools) - len(self.places)


class Routed:
    """A model that is shown, of many tools, those that fit a request; all of them where they are few.

    Shown are the tools whose names are `pinned` (or fit such a pattern), the one that is demanded, those that the
    conversation has called, those that the model's searches in it found, and the `shown` tools that `index` finds best
    for what the user asked last; all within `tokens` of definitions, in that order, the pinned and the demanded in any
    case. A model that was not shown all may call `search_tools`, unless it decides by likelihood; that is answered here.
    Whatever was not shown can be called too, by its exact name.

    `shown` tools or fewer are all shown, and twice as many where they fit in `tokens`. Without an `index`, or where a
    request offers others than that knows, one is made for the request's tools and kept. Where the extra `search` is
    missing all tools are shown, with a warning; if `strict`, MissingExtra is raised. A text model is spoken for.
    """

    def __init__(
        self,
        model: Model,
        index: Finder | None = None,
        *,
        shown: int | None = None,
        tokens: int | None = None,
        pinned: Sequence[str] = (),
        strict: bool = True,
        indexes: Indexes = INDEXES,
        finds: Finds | None = None,
    ) -> None:
        if not isinstance(model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"model: expected a model, such as ts.model('local'), received {model!r}")
        if index is not None and not isinstance(index, Finder):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"index: expected a ToolIndex, received {type(index).__name__}")
        for name, value in (("shown", shown), ("tokens", tokens)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UsageError(f"{name}: expected a whole number of 1 or more, received {value!r}")
        if isinstance(pinned, str) or not all(isinstance(one, str) for one in pinned):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"pinned: expected a list of names or patterns, received {pinned!r}")
        self.model = speaking(model)
        self.index = index
        self.pinned = tuple(pinned)
        self.strict = strict
        self._shown = shown
        self._tokens = tokens
        self._indexes = indexes
        self._finds = FINDS if finds is None else finds

    def around(self, model: Model) -> Self:
        """The same around another model."""
        made = copy.copy(self)
        made.model = speaking(model)
        return made

    def searching(self, index: Finder) -> Self:
        """The same, with this index."""
        made = copy.copy(self)
        made.index = index
        return made

    @property
    def name(self) -> str:
        """The model's own."""
        return self.model.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The model's own."""
        return self.model.capabilities

    @property
    def shown(self) -> int:
        """How many tools are chosen for a question."""
        return self._shown or (FEW if "score" in self.capabilities else MANY)

    @property
    def tokens(self) -> int:
        """How many tokens the definitions may have."""
        return self._tokens or (FEW_TOKENS if "score" in self.capabilities else MANY_TOKENS)

    # asking

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The reply's events; see the protocol."""
        return self.model.stream(request) if self.fits(request) else self._routed(request)

    async def count(self, request: Request) -> int | None:
        """The tokens of what the model would be asked first; None where it cannot tell."""
        if not isinstance(self.model, Counter):
            return None
        return await self.model.count(await self.narrowed(request))

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """Passed on to the model."""
        if not isinstance(self.model, Scorer):
            raise ModelError(f"{self.name} gives no likelihoods")
        return await self.model.score(prompt, continuations)

    async def aclose(self) -> None:
        """Closes what the model has open."""
        if close := getattr(self.model, "aclose", None):
            await close()

    async def narrowed(self, request: Request) -> Request:
        """The request as the model is asked it first."""
        if self.fits(request):
            return request
        view = await self._view(request)
        return self._asked(request, view)[0] if view else request

    def narrowed_now(self, request: Request) -> Request:
        """As `narrowed`, for code that does not await."""
        if self.fits(request):
            return request
        try:
            indexed = self._indexes.now(request.tools or (), self.index)
        except MissingExtra as error:
            self._do_without(error)
            return request
        return self._asked(request, self._chosen(indexed, request, self._finds.recall(request.messages)))[0]

    def fits(self, request: Request) -> bool:
        """Whether all tools of a request are shown."""
        tools = request.tools or ()
        if request.prompt is not None:
            return True
        if len(tools) > MOST:
            return False
        if len(tools) <= self.shown:
            return True
        if "weighs" in self.capabilities:
            return len(tools) <= WEIGHED_SPARE * self.shown
        return len(tools) <= SPARE * self.shown and sum(map(size, tools)) * ratio(self.model) <= self.tokens

    async def _routed(self, request: Request) -> AsyncGenerator[Event]:
        found = self._finds.recall(request.messages)
        view = await self._view(request, found)
        if view is None:
            async with aclosing(_events(self.model, request)) as events:
                async for event in events:
                    yield event
            return
        first: Event | None = Noted(Note("tools-shown", f"{len(view.places)} of {len(view.indexed.tools)}"))
        usage, said, searched = Usage(), "", False
        messages: list[Message] = list(request.messages)
        left = SEARCHES
        while True:
            asked, search = self._asked(replace(request, messages=messages), view, last=not left)
            ear = Ear(search.name, view.indexed.places, after=said, held=request.schema is not None)
            async with aclosing(_events(self.model, asked)) as events:
                async for event in events:
                    if first:  # not before the model has begun: until then all can be asked elsewhere, or refused
                        yield first
                        first = None
                    for heard in ear.hear(event):
                        yield heard
            usage = add_usage(usage, ear.end.usage)
            searches = ear.searches()
            goes_on = bool(searches and left and not ear.called)
            for event in ear.rest(dropped=goes_on):
                yield event
            said += ear.text
            results: list[str] = []
            for call in searches:
                names = await self._search(view, call.arguments["query"])
                found, searched = (*names, *found), True
                results.append(told([view.indexed.tools[view.indexed.places[name]] for name in names]))
                yield Noted(Note("tools-searched", f"{call.arguments['query']}: {', '.join(names) or 'nothing'}"))
            if not goes_on:
                break
            left -= 1
            messages = [*messages, *ear.messages(searches, results)]
            view = await self._choose(view.indexed, request, found)
        if searched:
            self._finds.remember(request.messages, said, ear.called, found)
        yield Finished(ear.finish, usage)

    def _asked(self, request: Request, view: View, *, last: bool = False) -> tuple[Request, Tool[..., Any]]:
        """The request as the model is asked it, and the tool to search by, whether or not it is offered."""
        search = search_tool(view.indexed.places)
        named = request.choice in view.indexed.places
        offered = view.hidden and not (named or last or "weighs" in self.capabilities)
        ranked = {view.indexed.tools[place].name: score for place, score in view.best.items()}
        return replace(request, tools=(*view.tools, search) if offered else view.tools, ranked=ranked), search

    # choosing

    async def _view(self, request: Request, found: tuple[str, ...] | None = None) -> View | None:
        """What is shown for a request; None for all."""
        try:
            indexed = await self._indexes.of(request.tools or (), self.index)
        except MissingExtra as error:
            self._do_without(error)
            return None
        names = self._finds.recall(request.messages) if found is None else found
        view = await self._choose(indexed, request, names)
        if await learn(self.model, view.tools, self.tokens):
            view = await self._choose(indexed, request, names)
        return view

    def _do_without(self, error: MissingExtra) -> None:
        if self.strict:
            raise error
        global _warned  # noqa: PLW0603 - told once a process
        if not _warned:
            _warned = True
            log.warning("all tools are shown, however many: %s", error)

    async def _choose(self, indexed: Indexed, request: Request, found: Sequence[str]) -> View:
        """As `_chosen`, beside the loop where a search may take long."""
        if indexed.quick:
            return self._chosen(indexed, request, found)
        return await in_thread(lambda: self._chosen(indexed, request, found))

    def _chosen(self, indexed: Indexed, request: Request, found: Sequence[str]) -> View:
        """What is shown, `found` being what the model has searched for."""
        places = indexed.places
        demanded = [places[request.choice]] if request.choice in places else []
        sure = [*demanded, *indexed.matching(self.pinned)]  # the demanded first: it is never one too many
        wanted = [places[name] for name in (*used(request.messages), *found) if name in places]
        best = self._best(indexed, request)
        taken = dict.fromkeys(sure[:MOST])
        left = self.tokens / ratio(self.model) - sum(map(indexed.size, taken))
        for place in (*wanted, *best):
            if place in taken or len(taken) == MOST or (indexed.size(place) > left and taken):
                continue
            taken[place] = None
            left -= indexed.size(place)
        return View(indexed, tuple(sorted(taken)), {place: best[place] for place in best if place in taken})

    def _best(self, indexed: Indexed, request: Request) -> dict[int, float]:
        """The places of the tools that fit what is asked, the best first, with their scores."""
        best = dict(ranked(indexed.search, request.messages, self.shown))
        for error in errors(request.messages):
            for place, score in indexed.search(error, AFTER_ERROR):
                best.setdefault(place, score)
        if not best and request.choice == "required":  # one of them must be called, whatever was asked
            return dict.fromkeys(range(min(self.shown, len(indexed.tools))), 0.0)
        return best

    async def _search(self, view: View, query: str) -> list[str]:
        """The names of the tools that a search finds beside those that are shown."""
        shown = set(view.places)
        if not query:
            return []
        indexed, most = view.indexed, len(shown) + FOUND
        ranked = indexed.search(query, most) if indexed.quick else await in_thread(lambda: indexed.search(query, most))
        return [view.indexed.tools[place].name for place, _ in ranked if place not in shown][:FOUND]


_warned = False


def _events(model: Model, request: Request) -> AsyncGenerator[Event]:
    """A model's events, so that they can be closed."""
    stream = model.stream(request)
    return stream if isinstance(stream, AsyncGenerator) else _closable(stream)  # pyright: ignore[reportUnknownVariableType]


async def _closable(stream: AsyncIterator[Event]) -> AsyncGenerator[Event]:
    async for event in stream:
        yield event
