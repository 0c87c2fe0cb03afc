"""Finds the best assignment of numbers to arguments, from a score for each number and argument.

An argument whose words surround a number keeps it, and the remaining numbers go where they fit best.
"""

from __future__ import annotations

from collections.abc import Sequence

MOST = 10
"""The most places for one set of arguments: the search takes 2 to that power."""


def assign(worth: Sequence[Sequence[float | None]], needed: Sequence[bool]) -> list[int | None]:
    """For each argument its place, or None; no place is used twice, and the sum of the scores is maximal.

    `worth[i][j]` is the score of argument i at place j, None if it is impossible. A `needed` argument takes a place at
    any cost, if one is left. On equal sums, earlier arguments get earlier places.
    """
    # Dynamic programming: for each set of used places (as bits), the best sum and the places chosen so far.
    best: dict[int, tuple[float, tuple[int | None, ...]]] = {0: (0.0, ())}
    for row, need in zip(worth, needed, strict=True):
        following: dict[int, tuple[float, tuple[int | None, ...]]] = {}
        for used, (total, chosen) in best.items():
            # 1000 nats are more than any score: a needed argument stays without a place only if none is left.
            _keep(following, used, total - (1000.0 if need else 0.0), (*chosen, None))
            for place, gain in enumerate(row[:MOST]):
                if gain is not None and not used >> place & 1:
                    _keep(following, used | 1 << place, total + gain, (*chosen, place))
        best = following
    return list(max(best.values(), key=lambda one: one[0])[1])


def _keep(
    best: dict[int, tuple[float, tuple[int | None, ...]]], used: int, total: float, chosen: tuple[int | None, ...]
) -> None:
    if used not in best or total > best[used][0]:
        best[used] = (total, chosen)
