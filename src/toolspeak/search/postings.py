"""Postings of the index: for each term the tools that have it, with weights, as sorted arrays and a small overlay for
additions.

A tool's weights depend only on the tool, and a term's rarity is counted over all present tools. So a score does not
depend on whether a tool is in the base or in the overlay.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
Floats = NDArray[np.float32]
Row = Mapping[str, float]
"""The terms of a tool with their weights."""

OVERLAY, SHARE = 128, 64
"""The overlay is merged when it has more tools than this, and more than one in so many of the base."""

TERM, LATE = 250, 120
"""Bytes of a term, and of an addition that is not merged yet."""


class Postings:
    """The weights of terms in tools. A tool is identified by its place: 0, 1, 2, … in the order of adding."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.tool_counts: list[int] = []  # by term: the number of present tools that have it
        self.there: Bools = np.zeros(0, np.bool_)
        self.count = 0
        self._starts: NDArray[np.int64] = np.zeros(1, np.int64)
        self._places: Ints = np.zeros(0, np.int32)
        self._weights: Floats = np.zeros(0, np.float32)
        self._merged = 0  # places in the base
        self._overlay: dict[int, list[int]] = {}  # by term: its positions in `_late`
        self._late = _Additions()

    def __len__(self) -> int:
        """The number of places, including those of removed tools."""
        return len(self.there)

    def __sizeof__(self) -> int:
        """The approximate bytes in memory; most are for rare terms."""
        return TERM * len(self.ids) + 8 * len(self._places) + LATE * len(self._late.numbers) + len(self.there)

    def add(self, rows: Sequence[Row]) -> None:
        """Appends tools."""
        first = len(self.there)
        self.there = np.concatenate((self.there, np.ones(len(rows), np.bool_)))
        self.count += len(rows)
        ids = self.ids
        numbers = [ids.setdefault(term, len(ids)) for row in rows for term in row]
        weights = [weight for row in rows for weight in row.values()]
        places = [place for place, row in enumerate(rows, first) for _ in row]
        counts = self.tool_counts
        counts += [0] * (len(ids) - len(counts))
        for number in numbers:
            counts[number] += 1
        late, come = self._late, len(self._late.numbers)
        late.numbers.extend(numbers)
        late.places.extend(places)
        late.weights.extend(weights)
        if len(self.there) - self._merged > max(OVERLAY, self._merged // SHARE):
            self._merge()
            return
        for at, number in enumerate(numbers, come):
            self._overlay.setdefault(number, []).append(at)

    def remove(self, place: int, row: Row) -> None:
        """Removes a tool; `row` must be the one that was added. Its place stays empty until `compact`."""
        self.there[place] = False
        self.count -= 1
        for term in row:
            self.tool_counts[self.ids[term]] -= 1

    def compact(self) -> NDArray[np.int64]:
        """Removes the empty places. Returns the new place of every old one."""
        self._merge()
        new = np.cumsum(self.there) - 1
        present = self.there[self._places]
        ends = np.zeros(len(present) + 1, np.int64)
        np.cumsum(present, out=ends[1:])
        self._starts = ends[self._starts]
        self._places = new[self._places[present]].astype(np.int32)
        self._weights = self._weights[present]
        self.there = np.ones(self.count, np.bool_)
        self._merged = self.count
        self._drop_unused_terms()
        return new

    def _drop_unused_terms(self) -> None:
        """Removes terms that no tool has any more."""
        used = np.array(self.tool_counts, np.int64) > 0
        lengths = np.diff(self._starts)
        self._starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[used])))
        self.ids = {term: i for i, term in enumerate(term for term, number in self.ids.items() if used[number])}
        self.tool_counts = [count for count in self.tool_counts if count]

    def scores(self, words: Iterable[str]) -> Floats:
        """For each place, the share of a question's weight that it covers, from 0 to 1. Words that no tool has do not
        count."""
        scores = np.zeros(len(self.there), np.float32)
        whole = 0.0
        for word in words:
            number = self.ids.get(word, -1)
            if number < 0 or not self.tool_counts[number]:
                continue
            rare = self.rarity(number)
            whole += rare
            self._score(scores, number, np.float32(rare))
        if whole:
            scores /= np.float32(whole)
            scores[~self.there] = 0
        return scores

    def rarity(self, number: int) -> float:
        """The weight of a term by the number of tools that have it (BM25's idf, as in Lucene)."""
        count = self.tool_counts[number]
        return math.log(1 + (self.count - count + 0.5) / (count + 0.5))

    def _score(self, scores: Floats, number: int, rare: np.float32) -> None:
        if number + 1 < len(self._starts):
            postings = slice(self._starts[number], self._starts[number + 1])
            scores[self._places[postings]] += self._weights[postings] * rare
        if number in self._overlay:
            at = self._overlay[number]
            places = np.frombuffer(self._late.places, np.int32)[at]
            scores[places] += np.frombuffer(self._late.weights, np.float32)[at] * rare

    def _merge(self) -> None:
        """Merges the overlay into the base. Its places come after the present ones, so each term's list only grows at
        its end."""
        # The base is in compressed rows: the entries of term n are at `_starts[n]` to `_starts[n + 1]`.
        of = np.array(self._late.numbers, np.int64)
        new = np.array(self._late.places, np.int32)
        weigh = np.array(self._late.weights, np.float32)
        order = np.argsort(of, kind="stable")
        starts = np.full(len(self.tool_counts) + 1, self._starts[-1])
        starts[: len(self._starts)] = self._starts
        at = starts[1:][of[order]]
        self._places = np.insert(self._places, at, new[order])
        self._weights = np.insert(self._weights, at, weigh[order])
        grown = np.bincount(of + 1, minlength=len(starts))
        self._starts = starts + np.cumsum(grown)
        self._merged = len(self.there)
        self._overlay = {}
        self._late = _Additions()


class _Additions:
    """The overlay, in the order of adding: term numbers, places, weights."""

    def __init__(self) -> None:
        self.numbers, self.places, self.weights = array("q"), array("i"), array("f")


def best(scores: Floats, k: int) -> list[tuple[int, float]]:
    """The `k` places with the highest scores above 0, with their scores, best first; ties by place."""
    places = np.flatnonzero(scores > 0)
    if k < len(places):  # only of these: numpy's partition is many times slower if most values are equal, such as 0
        best_scores = scores[places]
        places = places[best_scores >= np.partition(best_scores, len(best_scores) - k)[len(best_scores) - k]]
    places = places[np.argsort(-scores[places], kind="stable")][:k]
    return list(zip(places.tolist(), scores[places].tolist(), strict=True))
