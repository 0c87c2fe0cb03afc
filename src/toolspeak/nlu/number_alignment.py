"""Assigns the numbers of a request to arguments, all at once, by the words around them and by likelihood.

Taken one after another, a weak model gives the first number to the first argument. Together, an argument
that the words speak for keeps its number, and what is left goes where it fits best.
"""

from __future__ import annotations

from collections.abc import Sequence

MOST = 10
"""Places that are tried for one set of arguments; more would be 2 to that power."""


def assign(worth: Sequence[Sequence[float | None]], needed: Sequence[bool]) -> list[int | None]:
    """For each argument the place that it takes, None for none; no place is taken twice, and the sum is the greatest.

    `worth[i][j]` is what argument i gains at place j, None where it cannot stand there. A `needed` argument takes a
    place whatever it costs, as long as there is one. Of equals, the earlier arguments take the earlier places.
    """
    best: dict[int, tuple[float, tuple[int | None, ...]]] = {0: (0.0, ())}
    for row, need in zip(worth, needed, strict=True):
        following: dict[int, tuple[float, tuple[int | None, ...]]] = {}
        for taken, (total, chosen) in best.items():
            _keep(following, taken, total - (1000.0 if need else 0.0), (*chosen, None))
            for place, gain in enumerate(row[:MOST]):
                if gain is not None and not taken >> place & 1:
                    _keep(following, taken | 1 << place, total + gain, (*chosen, place))
        best = following
    return list(max(best.values(), key=lambda one: one[0])[1])


def _keep(
    best: dict[int, tuple[float, tuple[int | None, ...]]], taken: int, total: float, chosen: tuple[int | None, ...]
) -> None:
    if taken not in best or total > best[taken][0]:
        best[taken] = (total, chosen)
