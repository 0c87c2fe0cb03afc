"""Intervals and tests against known values, and against what they promise."""

from __future__ import annotations

import math
from itertools import product

import pytest

from toolspeak.evals.stats import Estimate, difference, mean, median, sign_test, wilson


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    # Newcombe 1998 (Statistics in Medicine 17:857), the score method without continuity correction
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_as_published(right: int, total: int, low: float, high: float) -> None:
    found = wilson(right, total)
    assert found.value == right / total
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_wilson_at_the_ends() -> None:
    assert wilson(20, 20).high == 1.0
    assert wilson(0, 0).low == 0.0
    assert math.isnan(wilson(0, 0).value)


@pytest.mark.parametrize(
    ("won", "lost", "p"),
    # sums of binomial coefficients over powers of two
    [(23, 6, 0.0023), (10, 4, 0.1796), (0, 0, 1.0), (5, 5, 1.0), (6, 0, 2 / 64), (0, 1, 1.0)],
)
def test_the_sign_test(won: int, lost: int, p: float) -> None:
    assert sign_test(won, lost) == pytest.approx(p, abs=5e-5)
    assert sign_test(lost, won) == sign_test(won, lost)


def test_the_sign_test_of_many() -> None:
    assert 0 < sign_test(3000, 2000) < 1e-40


def test_a_difference_of_none_that_changed_is_around_zero() -> None:
    found = difference(60, 0, 0, 40)
    assert found.value == 0
    assert found.low == pytest.approx(-found.high)
    assert 0 < found.high < 0.1


def test_a_difference_turns_round_with_its_runs() -> None:
    one, other = difference(30, 12, 5, 53), difference(30, 5, 12, 53)
    assert one.value == pytest.approx(0.07)
    assert (one.low, one.high) == (pytest.approx(-other.high), pytest.approx(-other.low))


def test_pairs_that_go_together_make_it_narrow() -> None:
    paired, unrelated = difference(50, 6, 4, 40), difference(28, 28, 26, 18)
    assert paired.high - paired.low < 0.8 * (unrelated.high - unrelated.low)


@pytest.mark.parametrize(("won", "lost"), [(0.3, 0.1), (0.15, 0.15), (0.05, 0.0)])
def test_the_interval_of_a_difference_covers_the_truth(won: float, lost: float) -> None:
    """Exactly, over every outcome of 24 pairs: in at least 93 of 100 it holds the true difference."""
    n, both = 24, 0.4
    chances = (both, won, lost, 1 - both - won - lost)
    covered = whole = 0.0
    for a, b, c in product(range(n + 1), repeat=3):
        counts = (a, b, c, n - a - b - c)
        if counts[3] < 0 or any(count and not chance for count, chance in zip(counts, chances, strict=True)):
            continue
        ways = math.factorial(n) / math.prod(map(math.factorial, counts))
        chance = ways * math.prod(p**k for p, k in zip(chances, counts, strict=True))
        found = difference(*counts)
        whole += chance
        covered += chance * (found.low - 1e-12 <= won - lost <= found.high + 1e-12)
    assert whole == pytest.approx(1)
    assert covered > 0.93


def test_the_mean_of_groups() -> None:
    found = mean([wilson(50, 100), wilson(50, 100), wilson(0, 100), wilson(100, 100)])
    assert found.value == 0.5
    assert found.low == pytest.approx(1 - found.high)
    assert 0.45 < found.low < 0.5
    assert mean([Estimate(0.4, 0.3, 0.6)]) == Estimate(0.4, pytest.approx(0.3), pytest.approx(0.6))
    assert math.isnan(mean([]).value)


def test_the_median() -> None:
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 2, 3]) == 2.5
    assert math.isnan(median([]))
