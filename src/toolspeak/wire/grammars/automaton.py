"""Converts a text that ends at a mark to an automaton, for notations without lazy matching and complements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ...schema.bounded_cache import BoundedCache
from .rules import EMPTY, Chars, Pattern, Text

SPACES = " \t\n\r"
Place = tuple[int, int, str]
"""A pattern's number, a position in it, and inside a word of alternatives its rest."""
Places = frozenset[Place]


@dataclass(slots=True)
class AutomatonState:
    """The possible next characters: those that lead to another state, and those that end the text, with the place in its
    `goto` of what follows."""

    on: list[tuple[Chars, int]] = field(default_factory=list[tuple[Chars, int]])
    out: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])


class _Search:
    """Searches for all patterns at once."""

    def __init__(self, text: Text) -> None:
        self.goto = len(text.goto)
        self.patterns: list[Pattern] = [tuple(word) for word, _ in text.goto]
        self.patterns += [*text.barred, *text.not_first]
        anchored = len(self.patterns) - len(text.not_first)
        self.everywhere = self._closure((n, 0, "") for n in range(anchored))
        self.start = self._closure((n, 0, "") for n in range(len(self.patterns)))
        self.letters = sorted({c for p in self.patterns for place in p for c in "".join(place) or SPACES})

    def _closure(self, places: Iterable[Place]) -> Places:
        """The places, extended by those after optional whitespace and by those at the start of words."""
        reached: set[Place] = set()
        todo = list(places)
        while todo:
            n, i, left = todo.pop()
            may = self.patterns[n][i] if i < len(self.patterns[n]) else None
            if isinstance(may, tuple) and not left:
                reached |= {(n, i, word) for word in may}
                continue
            reached.add((n, i, left))
            if may == "":
                todo.append((n, i + 1, ""))
        return frozenset(reached)

    def step(self, places: Places, c: str) -> Places | int | None:
        """Where a character leads: to other places, out of the text, or nowhere."""
        nexts: set[Place] = set()
        for n, i, left in places:
            may = self.patterns[n][i]
            if left:
                if left[0] == c:
                    nexts.add((n, i, left[1:]) if len(left) > 1 else (n, i + 1, ""))
            elif c in (may or SPACES):
                nexts.add((n, i + 1, "") if may else (n, i, ""))
        done = sorted(n for n, i, _ in nexts if i == len(self.patterns[n]))
        if done:
            return done[0] if done[0] < self.goto else None
        return self._closure(nexts) | self.everywhere


_automata = BoundedCache[Text, list[AutomatonState]](8_000_000)
"""Automata by their texts, without what follows. Most texts of a dialect are the same whatever the tools."""
EACH, BY_CHARACTER = 1_000, 200
"""Bytes of a state, and of a character that it tells apart."""


def automaton(text: Text) -> list[AutomatonState]:
    """The states of a text, the first one first. If the text may end anywhere, it may end in each state."""
    words = replace(text, goto=tuple((word, EMPTY) for word, _ in text.goto))
    states = _automata.get(words)
    if states is None:
        states = _states(words)
        characters = sum(len(among.ranges) for state in states for among, _ in state.on)
        _automata.put(words, states, EACH * len(states) + BY_CHARACTER * characters)
    return states


def _states(text: Text) -> list[AutomatonState]:
    search = _Search(text)
    numbers = {search.start: 0}
    todo, states = [search.start], list[AutomatonState]()
    while todo:
        places = todo.pop(0)
        state = AutomatonState()
        states.append(state)
        known: dict[Places, list[str]] = {}
        apart: list[str] = []
        for c in search.letters:
            there = search.step(places, c)
            if isinstance(there, frozenset) and there == search.everywhere:
                continue
            apart.append(c)
            if isinstance(there, frozenset):
                known.setdefault(there, []).append(c)
            elif there is not None:
                state.out.append((c, there))
        known_sets = [(Chars(tuple((c, c) for c in cs)), there) for there, cs in known.items()]
        rest = (Chars(tuple((c, c) for c in apart), but=True), search.everywhere)
        for among, there in (*known_sets, rest):
            if there not in numbers:
                numbers[there] = len(numbers)
                todo.append(there)
            state.on.append((among, numbers[there]))
    return states
