"""Groups tools by the words they have in common, for tools that the user has not grouped.

Each tool is a vector: its terms, weighted by field and by rarity, are projected to a few hundred numbers with signs
that depend only on the term (a random projection that is the same everywhere). The vectors are divided by spherical
k-means, starting with vectors that are far apart. Nothing is random.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..schema.infer import AnyTool
from ..stems import PART
from .fields import weights
from .group_tree import LIST, Group, Member, Split, in_order, tools_in, tree
from .terms import terms

Floats = NDArray[np.float32]
WIDTH = 256
"""Numbers in a vector."""
ROUNDS = 12
"""The most iterations of k-means."""
LABEL, WORDS = 3, 12
"""Words in a group's name, and in its description."""
CROWDED = 15
"""The largest size of a part, in tenths of the mean."""
LONGEST_NAME = 40
"""Characters of a group's name."""
LONGEST = 200
"""The most characters of a tool's name from which a group's name may be taken."""


def grouped(tools: Sequence[AnyTool], groups: Group | None = None, most: int = LIST) -> Group:
    """All the tools in groups: those of `groups`, then by common prefixes of names, then by words. Lists have about
    `most` members."""
    return tree(groups or Group(""), tools, by_words(tools), most)


def by_words(tools: Sequence[AnyTool]) -> Split:
    """A Split that divides a list of these tools, or of groups of them, by their words."""
    known = Words(tools)

    def split(members: Sequence[Member], most: int) -> Sequence[Group]:
        inside = [list(tools_in(member)) if isinstance(member, Group) else [member] for member in members]
        vectors = np.stack([known.vector(group) for group in inside])
        parts = _parts(vectors, min(most, -(-len(members) // 4)))
        if len(parts) < 2:
            return in_order(members, most)
        labels = known.telling([[tool for i in part for tool in inside[i]] for part in parts])
        return [
            Group("_".join(terms[:LABEL])[:LONGEST_NAME] or "more", tuple(members[i] for i in part), ", ".join(terms))
            for part, terms in zip(parts, labels, strict=True)
        ]

    return split


def _written_terms(tools: Sequence[AnyTool]) -> dict[str, str]:
    """The terms in the tools' names, each with its original spelling."""
    return {
        term: piece.lower() for tool in tools for piece in PART.findall(tool.name[:LONGEST]) for term in terms(piece)
    }


class Words:
    """The words of tools: a vector for each tool, and the words that distinguish tools."""

    def __init__(self, tools: Sequence[AnyTool]) -> None:
        self.rows = {tool.name: weights(tool) for tool in tools}
        self.places = {name: place for place, name in enumerate(self.rows)}
        counts: dict[str, int] = {}
        for row in self.rows.values():
            for term in row:
                counts[term] = counts.get(term, 0) + 1
        self.rare = {term: math.log(len(self.rows) / n) for term, n in counts.items() if n < len(self.rows)}
        shared = {
            term: worth for term, worth in self.rare.items() if counts[term] > 1
        }  # a term of a single tool connects nothing
        self.vectors = np.zeros((len(self.rows), WIDTH), np.float32)
        signs: dict[str, Floats] = {}
        for place, row in enumerate(self.rows.values()):
            used = [(signs.get(term), term, worth * shared[term]) for term, worth in row.items() if term in shared]
            if used:
                rows = np.stack([have if have is not None else signs.setdefault(t, _signs(t)) for have, t, _ in used])
                self.vectors[place] = _of_length_one(np.array([worth for *_, worth in used], np.float32) @ rows)

    def vector(self, tools: Sequence[AnyTool]) -> Floats:
        """The vector of several tools: their mean, scaled to length 1."""
        return _of_length_one(self.vectors[[self.places[tool.name] for tool in tools]].mean(axis=0))

    def question(self, text: str) -> Floats:
        """The vector of a question, from those of its words that tools have."""
        vector = np.zeros(WIDTH, np.float32)
        for term in dict.fromkeys(terms(text)):
            if term in self.rare:
                vector += np.float32(self.rare[term]) * _signs(term)
        return _of_length_one(vector)

    def _counted(self, tools: Sequence[AnyTool], whole: dict[str, float]) -> dict[str, float]:
        """The total weight of each distinguishing term in these tools. The weights are also added to `whole`."""
        counts: dict[str, float] = {}
        for tool in tools:
            for term, worth in self.rows[tool.name].items():
                if term in self.rare:
                    counts[term] = counts.get(term, 0.0) + worth
                    whole[term] = whole.get(term, 0.0) + worth
        return counts

    def telling(self, parts: Sequence[Sequence[AnyTool]]) -> list[list[str]]:
        """For each part, the words that distinguish it from the others, as they are spelled in the names of its tools."""
        whole: dict[str, float] = {}
        counted = [self._counted(part, whole) for part in parts]
        words: list[list[str]] = []
        for part, counts in zip(parts, counted, strict=True):
            written = _written_terms(part)
            best = sorted(
                (t for t in written if t in counts and not t.isdigit()),
                key=lambda term: (-counts[term] * counts[term] / whole[term], term),
            )
            words.append(list(dict.fromkeys(written[term] for term in best))[:WORDS])
        return words


def _of_length_one(vector: Floats) -> Floats:
    length = float(np.sqrt(vector @ vector))
    return vector / np.float32(length) if length else vector


def _signs(term: str) -> Floats:
    """A vector of +1 and -1 that depends only on the term."""
    bits = np.frombuffer(hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=WIDTH // 8).digest(), np.uint8)
    return np.unpackbits(bits).astype(np.float32) * np.float32(2) - np.float32(1)


def _parts(vectors: Floats, count: int) -> list[list[int]]:
    """The places of the vectors in at most `count` parts. Each part is in order, and parts are in the order of their
    first."""
    centres = _far_apart(vectors, count)
    nearest = np.zeros(len(vectors), np.int64)
    for turn in range(ROUNDS):
        now = _nearest(vectors @ centres.T)
        if turn and np.array_equal(now, nearest):
            break
        nearest = now
        centres = np.stack([_centre(vectors[nearest == i], centre) for i, centre in enumerate(centres)])
    parts = [np.flatnonzero(nearest == i).tolist() for i in range(len(centres))]
    return sorted((part for part in parts if part), key=lambda part: part[0])


def _nearest(near: Floats) -> NDArray[np.int64]:
    """For each row, the highest column that is not full, so that no part is much larger than the others."""
    count, parts = near.shape
    room = [-(-count * CROWDED // (parts * 10))] * parts
    chosen = np.full(count, -1, np.int64)
    for at in np.argsort(-near, axis=None, kind="stable").tolist():
        row, part = divmod(at, parts)
        if chosen[row] < 0 and room[part]:
            chosen[row] = part
            room[part] -= 1
    return chosen


def _far_apart(vectors: Floats, count: int) -> Floats:
    """Initial centers: first the vector that is closest to all, then always one of those farthest from the chosen
    ones.

    Of the farthest it takes the one with the most close neighbors, so that an outlier does not start a group of its
    own.
    """
    places = [int(np.argmax(vectors @ vectors.mean(axis=0)))]
    near = vectors @ vectors[places[0]]
    while len(places) < count:
        far = np.argsort(near, kind="stable")[: max(1, len(vectors) // count)]
        company = vectors[far] @ vectors[far].sum(axis=0)
        places.append(int(far[int(np.argmax(company))]))
        near = np.maximum(near, vectors @ vectors[places[-1]])
    return vectors[places]


def _centre(vectors: Floats, before: Floats) -> Floats:
    return _of_length_one(vectors.mean(axis=0)) if len(vectors) else before
