"""Caches indexes of the tools in requests: computed once for each set of tools, off the event loop, in bounded memory."""

from __future__ import annotations

import asyncio
import fnmatch
import hashlib
import sys
import threading
from collections import OrderedDict
from concurrent.futures import Future
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from ..plan.token_estimate import about_tool
from ..types import Tool
from .index import ToolIndex
from .priority import own

Toolset = tuple[Tool[..., Any], ...]

QUESTIONS = 64
"""Questions whose results are cached for each set of tools."""

QUESTION, RESULT, VIEWED = 2_100, 120, 130
"""Bytes of a cached question, bytes of each of its results, and the most results."""


@runtime_checkable
class Finder(Protocol):
    """Finds tools for a question: a ToolIndex."""

    def search(self, question: str, k: int = 10) -> list[tuple[Tool[..., Any], float]]:
        """The best tools with their scores, at most `k`, best first."""
        ...

    def __len__(self) -> int: ...

    def __contains__(self, name: object) -> bool: ...


class IndexedTools:
    """The tools of a request, their places among them, and their index. `quick`: a search does not take long."""

    def __init__(self, tools: Toolset, finder: Finder, *, quick: bool) -> None:
        self.tools = tools
        self.quick = quick
        self.places = {tool.name: place for place, tool in enumerate(tools)}
        self.finder = finder
        self._sizes: dict[int, int] = {}
        self._matching: tuple[tuple[str, ...], tuple[int, ...]] = ((), ())
        self._searched: dict[tuple[str, int], list[tuple[int, float]]] = {}

    def size(self, place: int) -> int:
        """The estimated tokens of a tool's definition."""
        if place not in self._sizes:
            self._sizes[place] = about_tool(self.tools[place])
        return self._sizes[place]

    def matching(self, patterns: tuple[str, ...]) -> tuple[int, ...]:
        """The places of the tools whose names match one of the patterns."""
        known, places = self._matching
        if known != patterns:
            places = tuple(place for name, place in self.places.items() if _fits(name, patterns))
            self._matching = patterns, places  # a single assignment, since other threads use other patterns
        return places

    @cached_property
    def own(self) -> list[int]:
        """The places of the client's own tools; see `priority.own`."""
        return own([tool.name for tool in self.tools])

    def search(self, question: str, k: int) -> list[tuple[int, float]]:
        """The places of the best tools for a question with their scores, at most `k`. Every request of a conversation
        repeats its questions, so the results of the latest ones are cached."""
        others = max(0, len(self.finder) - len(self.tools))  # in the index, but not offered
        if (cached := self._searched.get((question, k + others))) is not None:
            return cached
        match = self.finder.search(question, k + others)
        places = [(self.places[tool.name], score) for tool, score in match if tool.name in self.places][:k]
        if len(self._searched) >= QUESTIONS:
            self._searched = dict(list(self._searched.items())[QUESTIONS // 2 :])
        self._searched[question, k + others] = places
        return places


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


class Indexes:
    """Builds an index for each set of tools, and caches those used last: at most `sets`, with at most `tools` in all,
    and `size` estimated bytes. Tools stay in memory as long as their index.

    A set is recognized if it has the same tool objects, or tools with the same content. Threads and event loops may
    share one; whoever needs an index while it is being built waits for it.
    """

    def __init__(self, sets: int = 64, tools: int = 50_000, size: int = 96_000_000) -> None:
        self._sets = sets
        self._tools = tools
        self._size = size
        self._entries: OrderedDict[tuple[int, ...], _CachedIndex] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    async def of(self, tools: Toolset, finder: Finder | None = None) -> IndexedTools:
        """The set of tools with its index: `finder` if that has all the tools. Raises MissingExtra."""
        future = self._begun(tools, finder)
        return future.result() if future.done() else await asyncio.wrap_future(future)

    def now(self, tools: Toolset, finder: Finder | None = None) -> IndexedTools:
        """As `of`, blocking."""
        return self._begun(tools, finder).result()

    def _begun(self, tools: Toolset, finder: Finder | None) -> Future[IndexedTools]:
        with self._lock:
            for entry in reversed(self._entries.values()):
                if entry.tools is tools and entry.finder is finder:
                    self._entries.move_to_end(entry.key)
                    return entry.index
            key = (id(finder), *map(id, tools))
            if entry := self._entries.get(key):
                entry.tools = tools
                self._entries.move_to_end(key)
                return entry.index
            entry = self._entries[key] = _CachedIndex(key, tools, finder)
            self._evict()
        threading.Thread(target=self._make, args=(entry,), name="toolspeak-index", daemon=True).start()
        return entry.index

    def _evict(self) -> None:
        total = sum(len(entry.tools) for entry in self._entries.values())
        size = sum(entry.size for entry in self._entries.values())
        while len(self._entries) > 1 and (len(self._entries) > self._sets or total > self._tools or size > self._size):
            _, old = self._entries.popitem(last=False)
            total -= len(old.tools)
            size -= old.size

    def _make(self, entry: _CachedIndex) -> None:
        try:
            finder = self._finder(entry)
            if finder is not entry.finder:
                with self._lock:
                    entry.size += sys.getsizeof(finder)
                    self._evict()
            # An index built here searches by words only; one from the caller may have to call an embedder.
            entry.index.set_result(IndexedTools(entry.tools, finder, quick=finder is not entry.finder))
        except BaseException as error:  # noqa: BLE001 - handed to those who wait
            with self._lock:
                if self._entries.get(entry.key) is entry:
                    del self._entries[entry.key]
            entry.index.set_exception(error)

    def _finder(self, entry: _CachedIndex) -> Finder:
        finder = entry.finder
        if finder is not None and all(tool.name in finder for tool in entry.tools):
            return finder
        entry.digest, key = _content_key(entry.tools)
        with self._lock:
            entry.size = in_memory(len(entry.tools), key)
            self._evict()
            others = [one for one in self._entries.values() if one.digest == entry.digest and one.index.done()]
        for one in others:
            if not one.index.exception():
                return one.index.result().finder
        return ToolIndex(entry.tools)


class _CachedIndex:
    """A cached set of tools, and its index, complete or being built."""

    def __init__(self, key: tuple[int, ...], tools: Toolset, finder: Finder | None) -> None:
        self.key = key
        self.tools = tools  # keeps them alive, so that no other tool gets one of their ids
        self.finder = finder
        self.digest, self.size = b"", 0
        self.index: Future[IndexedTools] = Future()
        self.index.set_running_or_notify_cancel()  # a waiter that is cancelled must not cancel it for the others


def in_memory(count: int, length: int) -> int:
    """The most bytes that so many tools with so much text take, with the cached results of their questions."""
    return 1_000 * count + 8 * length + QUESTIONS * (QUESTION + RESULT * min(count, VIEWED))


def _content_key(tools: Toolset) -> tuple[bytes, int]:
    """A key that is equal for tools with equal content, and the bytes of that content."""
    digest, size = hashlib.blake2b(digest_size=16), 0
    for tool in tools:
        text = repr((tool.name, tool.description, tool.parameters, tool.examples)).encode("utf-8", "replace")
        digest.update(text)
        size += len(text)
    return digest.digest(), size
