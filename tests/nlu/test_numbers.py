"""Numbers and lists in a text: what they are, and where they stand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from properties import property_test
from toolspeak.nlu.entities.numbers import numbers, runs, written_lists
from toolspeak.nlu.number_alignment import assign


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3, 8.5 and twelve", [3, 8.5, 12]),
        ("twenty-five days", [25]),
        ("1,200 CHF and -4 or +7", [1200, -4, 7]),
        ("100 million shares, 1.5 billion, 2 hundred thousand", [100_000_000, 1_500_000_000, 200_000]),
        ("$5k a month", [5000]),
        ("298K and 2.5 m^3", [298, 2.5]),
        ("a 2x2 table, v1.2.3 on 192.168.0.1, B12, 4b7", []),
        ("roll twice, once", [2, 1]),
        ("6.4e23 kg, 3 x 10^-2 and 2e3", [6.4e23, 0.03, 2000]),
        ("three and a half", [3.5]),
        ("1e999 is more than -2e999, 3 is not", [3]),
        ("", []),
    ],
)
def test_what_numbers_are(text: str, values: list[float]) -> None:
    assert [one.value for one in numbers(text)] == values


@pytest.mark.parametrize(
    ("text", "value", "digits"),
    [
        ("12345678901234567.89", 12345678901234567.89, "12345678901234567.89"),
        ("+1.00000000000000000001 thousand", 1000.0, "1000.00000000000000001000"),
        ("12345678901234567.12 million", 12345678901234567120000, ""),
        ("1.005 thousand", 1005, ""),
        ("2.50", 2.5, ""),
    ],
)
def test_a_number_keeps_the_digits_that_a_float_loses(text: str, value: float, digits: str) -> None:
    assert [(one.value, one.digits) for one in numbers(text)] == [(value, digits)]


@pytest.mark.parametrize(
    ("text", "percent"), [("5%", True), ("5 percent", True), ("5 per cent", True), ("5 points", False)]
)
def test_percents(text: str, percent: bool) -> None:
    assert [one.percent for one in numbers(text)] == [percent]


@property_test(100, st.text("0123456789.,-+$% abkmx[]", max_size=60))
def test_numbers_stand_where_they_say(text: str) -> None:
    found = numbers(text)
    assert found == sorted(found, key=lambda one: one.span)
    for one in found:
        assert text[slice(*one.span)].strip()


def test_a_long_text_is_read_in_linear_time() -> None:
    for text in ("1" * 50_000, "1," * 50_000, "[" * 50_000, "[1, " * 20_000, "hundred " * 20_000):
        numbers(text)
        written_lists(text)


@pytest.mark.parametrize(
    ("text", "lists"),
    [
        ("of [1, 2] and ['a', 'b']", [[1, 2], ["a", "b"]]),
        ("the table [[1, 2], [3, 4]].", [[[1, 2], [3, 4]]]),
        ("[see below] and [1, 2", []),
        ("[[1, 2]", [[1, 2]]),
    ],
)
def test_written_lists(text: str, lists: list[Any]) -> None:
    assert [value for _, value in written_lists(text)] == lists


def test_runs_of_numbers() -> None:
    text = "A with 12, 24 and 36, B with 15, 30, 45; 7 alone"
    assert [[one.value for one in run] for run in runs(text, numbers(text))] == [[12, 24, 36], [15, 30, 45]]


class TestAssign:
    def test_the_sum_is_the_greatest(self) -> None:
        assert assign([[5.0, 4.0], [5.0, 0.0]], [True, True]) == [1, 0]

    def test_what_is_needed_takes_a_place_whatever_it_costs(self) -> None:
        assert assign([[9.0], [-50.0]], [False, True]) == [None, 0]

    def test_what_is_not_needed_takes_none_that_costs(self) -> None:
        assert assign([[-1.0], [None]], [False, True]) == [None, None]

    def test_of_equals_the_earlier_takes_the_earlier(self) -> None:
        assert assign([[1.0, 1.0], [1.0, 1.0]], [True, True]) == [0, 1]

    def test_no_arguments(self) -> None:
        assert assign([], []) == []
