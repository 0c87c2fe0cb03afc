"""A model wrapper for hierarchical selection: the model chooses a group, then a group in it, then a tool.

    index = ts.ToolIndex(groups={"mail": mail_box, "home": ["light_*", "heating_*"]}, tools=tools)
    ts.run("Turn the lamp on", tools=index)                       # with groups from the user
    ts.run("Turn the lamp on", tools=tools, model=HierarchyRouter(ts.model("ollama:NAME")))    # with computed groups

If no branch fits, it searches all tools like `ToolRouter`.
"""

from __future__ import annotations

import contextlib
import fnmatch
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from ..drive import Done, play
from ..errors import MissingExtra, UsageError
from ..events import Event
from ..models.base import Capability, Model
from ..plan.effects import Ask
from ..running import in_thread
from ..types import Request, Tool
from . import group_tree as grouping
from .conversation_queries import used
from .descent import LOOKS, levels
from .group_tree import LIST, Group
from .index_memory_cache import Finder, Toolset
from .router import ToolRouter

BESIDE = 6
"""The most tools that are offered in every list: the pinned ones, and those that the conversation used last."""


Spec = tuple[Group, ...]


class Trees:
    """Computes the groups of each set of tools, and caches those that were used last. Threads may share one; a thread
    that needs groups while they are being computed waits."""

    def __init__(self, sets: int = 16) -> None:
        self._sets = sets
        self._cache: OrderedDict[tuple[int, ...], tuple[Spec, Toolset, Group]] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, spec: Spec, tools: Toolset, most: int) -> Group | None:
        """The groups if they are cached; never waits."""
        key = _key(spec, tools, most)
        cached = self._cache.get(key)
        if cached is None:
            return None
        # The thread that holds the lock may just have evicted the entry.
        with contextlib.suppress(KeyError):
            self._cache.move_to_end(key)
        return cached[2]

    def of(self, spec: Spec, tools: Toolset, most: int) -> Group:
        """The groups, from the cache or computed. Raises MissingExtra."""
        key = _key(spec, tools, most)
        with self._lock:
            if key not in self._cache:
                self._cache[key] = (
                    spec,
                    tools,
                    _grouped(spec, tools, most),
                )  # keeps alive the objects whose ids are the key
            self._cache.move_to_end(key)
            while len(self._cache) > self._sets:
                self._cache.popitem(last=False)
            return self._cache[key][2]


def _key(spec: Spec, tools: Toolset, most: int) -> tuple[int, ...]:
    return (most, id(spec), *map(id, tools))


def _grouped(spec: Spec, tools: Toolset, most: int) -> Group:
    try:
        from .word_groups import by_words
    except ImportError as error:
        raise MissingExtra("groups of tools need numpy and PyStemmer: pip install 'toolspeak[search]'") from error
    return grouping.tree(grouping.resolve_groups(spec, tools, strict=False), tools, by_words(tools), most)


TREES = Trees()
"""The cache of this process."""


class HierarchyRouter(ToolRouter):
    """A model wrapper that offers the groups of many tools, then the members of the group that the model opens, and so
    on. A few tools are offered all at once.

    `groups` maps names to tools, names or patterns (see `search.group_tree.given`); the default is the groups of
    `index`. Tools in no group are grouped by common prefixes of names, then by words. `most` is the usual length of a
    list, `looks` the number of lists that are opened for one reply before all tools are searched. Other parameters are
    those of ToolRouter.
    """

    def __init__(
        self, model: Model, groups: Any = None, index: Finder | None = None, *, most: int = LIST, looks: int = LOOKS,
        **routed: Any,
    ) -> None:  # fmt: skip
        super().__init__(model, index, **routed)
        for name, value, least in (("most", most, 4), ("looks", looks, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UsageError(f"{name}: expected a whole number of {least} or more, received {value!r}")
        self._groups = grouping.plain(groups) if groups is not None else ()
        self._most = most
        self._looks = looks

    @property
    def _by_room(self) -> bool:
        return False  # whoever uses this class wants groups whenever a list would be long

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The events of the reply; see the protocol."""
        return super().stream(request) if self._no_selection_needed(request) else self._by_levels(request)

    async def narrowed(self, request: Request) -> Request:
        """The first request to the inner model, with the first list."""
        if self._no_selection_needed(request):
            return await super().narrowed(request)
        return self._first(request, await self._tree(request))

    def narrowed_now(self, request: Request) -> Request:
        """As `narrowed`, for code that does not await."""
        if self._no_selection_needed(request):
            return super().narrowed_now(request)
        return self._first(request, TREES.of(self._spec, request.tools or (), self._most))

    def _first(self, request: Request, tree: Group) -> Request:
        effect = levels(request, tree, beside=self._beside(request)).send(None)
        return effect.request if isinstance(effect, Ask) else request

    def _no_selection_needed(self, request: Request) -> bool:
        """Whether there is nothing to select: there are few tools, or one is required."""
        return self.fits(request) or request.choice not in ("auto", "required")

    async def _by_levels(self, request: Request) -> AsyncGenerator[Event]:
        try:
            tree = await self._tree(request)
        except MissingExtra as error:
            self._do_without(error)
            tree = None
        if tree is None:
            async for event in super().stream(request):
                yield event
            return
        plan = levels(request, tree, can=self.capabilities, beside=self._beside(request), looks=self._looks)
        async with aclosing(play(plan, self.model, others={"search": _Searching(self)})) as events:
            async for event in events:
                if not isinstance(event, Done):
                    yield event

    def _beside(self, request: Request) -> list[Tool[..., Any]]:
        tools = {tool.name: tool for tool in request.tools or ()}
        names = [name for pattern in self.pinned for name in fnmatch.filter(tools, pattern)]
        names += [name for name in used(request.messages) if name in tools]
        return [tools[name] for name in dict.fromkeys(names)][:BESIDE]

    # the groups of a request's tools

    @property
    def _spec(self) -> Spec:
        return self._groups or getattr(self.index, "groups", ())

    async def _tree(self, request: Request) -> Group:
        spec, tools = self._spec, request.tools or ()
        return TREES.known(spec, tools, self._most) or await in_thread(lambda: TREES.of(spec, tools, self._most))


class _Searching:
    """The same model with tools that a search selects."""

    def __init__(self, levelled: HierarchyRouter) -> None:
        self.levelled = levelled
        self.name = levelled.name
        self.capabilities: frozenset[Capability] = levelled.capabilities

    def stream(self, request: Request) -> AsyncIterator[Event]:
        return ToolRouter.stream(self.levelled, request)
