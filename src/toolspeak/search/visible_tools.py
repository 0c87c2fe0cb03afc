"""Selects the tools that a model sees over a whole conversation: some at its beginning, later ones only added.

The view is recomputed from the messages in each request, in order, so that any process gets the same one. The first
messages decide which tools are at the head of the prompt. A tool that comes into view later, because it was searched
for, called, or matches a later question, is added at the message that introduced it, so that a server's prefix cache
still applies. Only when the room for additions is used up is everything selected anew: one cache miss in many turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..types import Message, Request
from .conversation_queries import AnsweredRound, Names, called, error, ranked, typed
from .index_memory_cache import IndexedTools, Toolset
from .priority import named

MOST = 127
"""The most shown tools, beside `search_tools`: some providers reject more than 128."""
LATER = 5
"""The most tools that a later question adds."""
AFTER_ERROR = 3
"""The most tools that a tool error adds."""


@dataclass(frozen=True, slots=True)
class Room:
    """The limits of a view: `count` selected tools, `whole` tokens for all definitions (None: no limit), `tokens` for
    those that match a question. Tokens are estimated. `all`: there is room for every tool that is not deferred."""

    count: int
    tokens: float
    whole: float | None = None
    all: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """The tools of a request that a model sees.

    - `first`: the places of those at the head of the prompt, in the order of all tools
    - `later`: the places of those that were added, in the order of adding, each with the index of the message that
      introduced it (None: no message)
    - `best`: the scores of those that match the questions, best first
    - `rounds`: the searches that were made, by the index of the answer that followed them
    """

    indexed: IndexedTools
    first: tuple[int, ...]
    best: Mapping[int, float]
    later: Mapping[int, int | None] = field(default_factory=dict[int, "int | None"])
    rounds: Mapping[int, tuple[AnsweredRound[Names], ...]] = field(
        default_factory=dict[int, tuple[AnsweredRound[Names], ...]]
    )

    @property
    def places(self) -> tuple[int, ...]:
        """The places of all shown tools, those at the head first."""
        return (*self.first, *self.later)

    @property
    def hidden(self) -> int:
        """The number of tools that are not at the head."""
        return len(self.indexed.tools) - len(self.first)

    def at_head(self) -> Toolset:
        """The tools at the head."""
        return tuple(self.indexed.tools[place] for place in self.first)

    def added(self) -> Toolset:
        """The tools that were added."""
        return tuple(self.indexed.tools[place] for place in self.later)


def view(
    indexed: IndexedTools,
    request: Request,
    rounds: Mapping[int, tuple[AnsweredRound[Names], ...]],
    pinned: tuple[str, ...],
    room: Room,
) -> View:
    """The tools to show for a request. `rounds` are the searches in its conversation."""
    builder = _ViewBuilder(indexed, request, pinned, room)
    begun = _first_answer(request.messages)
    for place in range(begun):
        builder.refer(place)
    builder.begin(begun)
    for place in range(begun, len(request.messages)):
        for one in rounds.get(place, ()):
            builder.keep(_places(indexed, (name for names in one.results for name in names)), place)
        builder.read(place)
    if request.choice in indexed.places:
        builder.demand(indexed.places[request.choice])
    return View(indexed, builder.head(), builder.best, builder.later, rounds)


def scored_view(indexed: IndexedTools, request: Request, pinned: tuple[str, ...], room: Room) -> View:
    """The tools for a model that scores one tool at a time: those that match the last question, whatever was shown
    before."""
    builder = _ViewBuilder(indexed, replace(request, deferred={}), pinned, room)
    builder.choose(len(request.messages), request.choice)
    return View(indexed, builder.head(), builder.best)


def _first_answer(messages: Sequence[Message]) -> int:
    """The index of the first answer to the user. A greeting before all questions does not count."""
    spoken = False
    for place, message in enumerate(messages):
        spoken = spoken or message.get("role") == "user"
        if spoken and message.get("role") == "assistant":
            return place
    return len(messages)


def _places(indexed: IndexedTools, names: Iterable[str]) -> list[int]:
    return [indexed.places[name] for name in names if name in indexed.places]


class _ViewBuilder:
    """Builds a view, message by message."""

    def __init__(self, indexed: IndexedTools, request: Request, pinned: tuple[str, ...], room: Room) -> None:
        self.indexed = indexed
        self.messages = request.messages
        self.pinned = pinned
        self._closed = set(_places(indexed, request.deferred))
        self._referred: dict[int | None, list[int]] = {}
        for name, at in request.deferred.items():
            self._referred.setdefault(at, []).extend(_places(indexed, [name]))
        self._open = [place for place in range(len(indexed.tools)) if place not in self._closed]
        self._most = MOST + len(self._open) if room.all else MOST
        self.room = room
        self.chosen: dict[int, None] = {}
        self.later: dict[int, int | None] = {}
        self.best: dict[int, float] = {}
        self._added = 0.0
        self._used: dict[int, None] = {}

    def head(self) -> tuple[int, ...]:
        """The places of the tools at the head, in the order of all."""
        return tuple(sorted(self.chosen))

    # the beginning of a conversation

    def begin(self, upto: int) -> None:
        """Selects the head, by the messages up to that index: permanent tools, matching tools, then any."""
        self.chosen, self.later, self._added = {}, {}, 0.0
        self._take(self.indexed.matching(self.pinned), None)
        whole = self.room.whole
        left = None if whole is None else whole - self._size(self.chosen)
        left = self._take([*self._used, *self._permanent(upto)], left)
        scores = dict(ranked(self._search, self.messages[:upto], MOST))
        self.best = dict(list(scores.items())[: self.room.count])
        if self.room.all:
            self.chosen |= dict.fromkeys(self._open)
            return
        tokens = self.room.tokens if left is None else min(self.room.tokens, left)
        self._take([*scores, *self._open], tokens, self.room.count)

    def _best_for_errors(self, upto: int) -> None:
        """Adds to the best tools those that match errors since the last user message."""
        for message in self.messages[:upto][::-1]:
            if message.get("role") == "user":
                break
            if text := error(message):
                for place, score in self._search(text, AFTER_ERROR):
                    self.best.setdefault(place, score)

    def choose(self, upto: int, choice: str) -> None:
        """As `begin`, for a model that scores by likelihood: only matching tools, unless a call is required."""
        demanded = _places(self.indexed, [choice])
        self._take([*demanded, *self.indexed.matching(self.pinned)], None)
        self.best = dict(ranked(self._search, self.messages[:upto], self.room.count))
        self._best_for_errors(upto)
        if not self.best and choice == "required":  # one of them must be called, whether or not any matches
            self.best = dict.fromkeys(range(min(self.room.count, len(self.indexed.tools))), 0.0)
        used = dict.fromkeys(name for message in self.messages[::-1] for name in reversed(called(message)))
        whole = self.room.tokens if self.room.whole is None else self.room.whole
        self._take([*_places(self.indexed, used), *self.best], whole - self._size(self.chosen))
        self.best = {place: score for place, score in self.best.items() if place in self.chosen}

    def _permanent(self, upto: int) -> list[int]:
        """The places of permanent tools: those in the instructions, the most frequent first, and the client's own."""
        words = named(self.messages[:upto])
        names = [(-words[name], place) for name, place in self.indexed.places.items() if name in words]
        standing = [*(place for _, place in sorted(names)), *self.indexed.own]
        return [place for place in standing if place not in self._closed]

    def _search(self, text: str, k: int) -> list[tuple[int, float]]:
        """The tools that match a text, without deferred ones."""
        match = self.indexed.search(text, k + len(self._closed))
        return [(place, score) for place, score in match if place not in self._closed][:k]

    def _take(self, places: Iterable[int], left: float | None, count: int = MOST) -> float | None:
        """Takes as many of these places as there is room for, skipping tools that are too large, and returns the
        remaining room."""
        for place in places:
            if count == 0 or len(self.chosen) >= self._most:
                break
            size = self.indexed.size(place)
            if place in self.chosen or (left is not None and size > left and self.chosen):
                continue
            self.chosen[place] = None
            count -= 1
            left = None if left is None else left - size
        return left

    def _size(self, places: Iterable[int]) -> float:
        return sum(map(self.indexed.size, places))

    # later messages

    def read(self, place: int) -> None:
        """Adds the tools that one message introduces."""
        self.refer(place)
        message = self.messages[place]
        if message.get("role") == "assistant":
            self.keep(_places(self.indexed, called(message)), place + 1)
        elif message.get("role") == "user" and typed(message):
            fitting = ranked(self._search, self.messages[: place + 1], LATER)
            self.best = dict(fitting) or self.best
            self._add_matching([tool_place for tool_place, _ in fitting], place)
        elif text := error(message):
            self._add_matching([tool_place for tool_place, _ in self._search(text, AFTER_ERROR)], place)

    def refer(self, place: int) -> None:
        """Adds the deferred tools that a message refers to."""
        self.keep(self._referred.get(place, ()), place)

    def keep(self, places: Sequence[int], at: int) -> None:
        """Adds permanent tools."""
        self._used |= dict.fromkeys(places)
        self.add(places, at)

    def add(self, places: Iterable[int], at: int) -> None:
        """Adds these tools at that message, regardless of room."""
        for place in places:
            if place not in self.chosen and place not in self.later and len(self.chosen) + len(self.later) < self._most:
                self.later[place] = at
                self._added += self.indexed.size(place)

    def demand(self, place: int) -> None:
        """Adds the required tool, for which there is always room."""
        if place not in self.chosen and place not in self.later:
            if len(self.chosen) + len(self.later) >= self._most:
                (self.later or self.chosen).popitem()
            self.later[place] = None

    def _add_matching(self, places: Sequence[int], at: int) -> None:
        """Adds tools that match a question, as far as there is room. If additions have used up the room, everything is
        selected anew."""
        new = [place for place in places if place not in self.chosen and place not in self.later]
        left = (
            self.room.tokens if self.room.whole is None else min(self.room.tokens, self.room.whole)
        ) / 2 - self._added
        if (
            self.later
            and new
            and (self._size(new) > left or len(self.chosen) + len(self.later) + len(new) > self._most)
        ):
            self.begin(at + 1)
            return
        for place in new:
            if self.indexed.size(place) <= left:
                left -= self.indexed.size(place)
                self.add([place], at)
