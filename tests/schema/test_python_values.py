"""What a function gets for the types that JSON has no form of: iterables, sets, decimals."""

from __future__ import annotations

from collections.abc import Iterable, Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

import pydantic
import pytest

import toolspeak as ts
from replies import calls, native


@dataclass
class Order:
    items: Iterable[str]


def value_of(annotation: Any, value: Any) -> Any:
    """What a function with a parameter of this type gets."""

    def keep(value: Any) -> Any:
        return value

    keep.__annotations__["value"] = annotation
    return ts.Toolbox(keep).call({"name": "keep", "arguments": {"value": value}})


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Iterable[str], ["a", "b"]),
        (Iterable[str] | None, ["a"]),
        (dict[str, Iterable[int]], {"a": [1, 2]}),
        (list[Iterable[int]], [[1], [2]]),
        (Annotated[Iterable[int], pydantic.Field(min_length=1)], [1]),
    ],
)
def test_an_iterable_is_a_list(annotation: Any, value: Any) -> None:
    assert value_of(annotation, value) == value


def test_an_iterable_inside_a_record_is_a_list() -> None:
    assert value_of(Order, {"items": ["a"]}) == Order(["a"])
    with pytest.raises(ts.InvalidCall):
        value_of(Iterable[int], ["a"])


def test_an_iterable_is_extracted_as_a_list() -> None:
    model = native(calls(("record_iterable", {"value": [1, 2]})))
    assert ts.extract("1 and 2", Iterable[int], model=model) == [1, 2]


@pytest.mark.parametrize("annotation", [set[int], frozenset[int], AbstractSet[int], set[int] | None])
def test_repetitions_are_nothing_wrong_in_a_set(annotation: Any) -> None:
    assert value_of(annotation, [1, 1, 2]) == {1, 2}


def test_the_length_of_a_set_is_that_without_repetitions() -> None:
    with pytest.raises(ts.InvalidCall, match="at least 2 items"):
        value_of(Annotated[set[int], pydantic.Field(min_length=2)], [1, 1])


def test_repetitions_that_a_schema_forbids_are_refused() -> None:
    numbers = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    tool = ts.Tool("f", "", {"type": "object", "properties": {"x": numbers}}, lambda x: x)
    with pytest.raises(ts.InvalidCall, match="must be a list without repetitions"):
        ts.Toolbox(tool).call({"name": "f", "arguments": {"x": [1, 1]}})


@pytest.mark.parametrize("value", ["abc", "1,10", "NaN", ""])
@pytest.mark.parametrize("annotation", [Decimal, Decimal | None, Annotated[Decimal, pydantic.Field(gt=0)]])
def test_a_wrong_decimal_is_answered_in_words(annotation: Any, value: str) -> None:
    with pytest.raises(ts.InvalidCall) as error:
        value_of(annotation, value)
    (problem,) = error.value.problems
    assert "a decimal number such as 1.10" in problem.message
    assert "[0-9]" not in problem.message


def test_a_wrong_date_without_a_zone_is_answered_in_words() -> None:
    with pytest.raises(ts.InvalidCall, match="a date and time without a zone such as 2026-01-31T09:30:00"):
        value_of(pydantic.NaiveDatetime, "tomorrow")
    assert value_of(pydantic.NaiveDatetime, "2026-01-31T09:30:00") == datetime(2026, 1, 31, 9, 30)
