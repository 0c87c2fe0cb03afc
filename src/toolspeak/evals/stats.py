"""Statistics of accuracy: confidence intervals for a share, a mean of shares and a paired difference, and an exact
sign test.

Intervals are at 95 % by default. All formulas are closed-form, so the same data always gives the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its confidence interval."""

    value: float
    low: float
    high: float


def wilson(right: float, total: int, z: float = Z) -> Estimate:
    """A share with its score interval (Wilson 1927), which has a width even at 0 and 1. For no cases, the interval is
    0 to 1.

    `right` may be a sum of fractions. Fractions vary at most as much as 0 and 1 do, so the interval is wide enough.
    """
    if not total:
        return Estimate(math.nan, 0.0, 1.0)
    share = right / total
    middle = share + z * z / (2 * total)
    width = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return Estimate(
        share, min(share, max(0.0, (middle - width) / scale)), max(share, min(1.0, (middle + width) / scale))
    )


def mean(parts: Sequence[Estimate]) -> Estimate:
    """The unweighted mean of independent estimates. The sides of their intervals are added in quadrature (Zou and
    Donner 2008)."""
    if not parts:
        return Estimate(math.nan, 0.0, 1.0)
    n = len(parts)
    value = sum(part.value for part in parts) / n
    below = math.sqrt(sum((part.value - part.low) ** 2 for part in parts)) / n
    above = math.sqrt(sum((part.high - part.value) ** 2 for part in parts)) / n
    return Estimate(value, value - below, value + above)


def sign_test(won: int, lost: int) -> float:
    """The exact two-sided p-value of a split as uneven as `won` to `lost` by fair coin tosses: McNemar's test on the
    pairs that changed."""
    total = won + lost
    tail = sum(math.comb(total, i) for i in range(min(won, lost) + 1))
    return min(1.0, 2 * tail / 2**total)


def difference(both: int, won: int, lost: int, neither: int, z: float = Z) -> Estimate:
    """The second share minus the first, with the interval of Newcombe 1998, method 10 (score intervals and the
    correlation of the pairs).

    The counts are of cases that are right in both, only in the second (`won`), only in the first (`lost`), or in
    neither.
    """
    total = both + won + lost + neither
    if not total:
        return Estimate(math.nan, -1.0, 1.0)
    first, second = wilson(both + lost, total, z), wilson(both + won, total, z)
    value = second.value - first.value
    phi = _correlation(both, won, lost, neither)
    low = _side(second.value - second.low, first.high - first.value, phi)
    high = _side(first.value - first.low, second.high - second.value, phi)
    return Estimate(value, max(-1.0, value - low), min(1.0, value + high))


def _side(a: float, b: float, phi: float) -> float:
    return math.sqrt(max(0.0, a * a - 2 * phi * a * b + b * b))


def _correlation(both: int, won: int, lost: int, neither: int) -> float:
    """The phi coefficient of the pairs, reduced if it is positive, as the method demands."""
    product = (both + lost) * (won + neither) * (both + won) * (lost + neither)
    if not product:
        return 0.0
    uneven = both * neither - won * lost
    if uneven > 0:
        uneven = max(uneven - (both + won + lost + neither) / 2, 0)
    return uneven / math.sqrt(product)


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle values; NaN for an empty sequence."""
    ordered = sorted(values)
    n = len(ordered)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2 if n else math.nan
