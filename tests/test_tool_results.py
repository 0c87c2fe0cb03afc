"""What a model reads of a result: JSON of anything, within a limit, never an exception."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import uuid
from collections import OrderedDict, deque, namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pydantic
import pytest
from hypothesis import strategies as st

from properties import property_test
from toolspeak.tool_results import jsonable, result_text


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


@dataclasses.dataclass
class Point:
    x: int
    colour: Colour


class Model(pydantic.BaseModel):
    when: dt.date
    path: Path


class Silent:
    pass


class Customer:
    def __init__(self, name: str) -> None:
        self.name = name
        self.orders: list[Order] = []


class Order:
    def __init__(self, number: int, customer: Customer) -> None:
        self.number, self.customer, self._secret = number, customer, "hidden"

    def total(self) -> int:
        return 1


class Slotted:
    __slots__ = ("_y", "unset", "x")

    def __init__(self, x: int) -> None:
        self.x, self._y = x, 2


@attrs.define
class Attrs:
    x: int
    colour: Colour


class Talking:
    def __str__(self) -> str:
        return "I am talking"


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no")

    @property
    def model_dump(self) -> Any:
        raise RuntimeError("no")


class Array:
    def tolist(self) -> list[int]:
        return [1, 2]


Named = namedtuple("Named", "a b")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain ü text", "plain ü text"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (1.5, "1.5"),
        ({"a": [1, "ü"]}, '{"a": [1, "ü"]}'),
        (float("nan"), '"NaN"'),
        ([float("inf"), float("-inf")], '["Infinity", "-Infinity"]'),
        (Point(1, Colour.RED), '{"x": 1, "colour": "red"}'),
        (Size.BIG, "3"),
        (Model(when=dt.date(2026, 1, 2), path=Path("/x")), '{"when": "2026-01-02", "path": "/x"}'),
        (dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC), '"2026-01-02T03:04:00+00:00"'),
        (dt.timedelta(hours=1), '"1:00:00"'),
        (decimal.Decimal("1.50"), '"1.50"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Path("/tmp/x"), '"/tmp/x"'),
        (b"text", '"text"'),
        (b"\xff\x00", '{"base64": "/wA="}'),
        ({3, 1, 2}, "[1, 2, 3]"),
        ((1, "a"), '[1, "a"]'),
        (Named(1, 2), '{"a": 1, "b": 2}'),
        (deque([1]), "[1]"),
        (OrderedDict(a=1), '{"a": 1}'),
        ({1: "a", None: "b", Colour.RED: "c", (1, 2): "d"}, '{"1": "a", "null": "b", "red": "c", "[1, 2]": "d"}'),
        ({1: "a", "1": "b", "1 (2)": "c"}, '{"1": "a", "1 (2)": "b", "1 (2) (2)": "c"}'),
        (Silent(), '"<Silent>"'),
        (Order(3, Customer("Ann")), '{"number": 3, "customer": {"name": "Ann", "orders": []}}'),
        ([Slotted(1)], '[{"x": 1}]'),
        (Attrs(1, Colour.RED), '{"x": 1, "colour": "red"}'),
        (SimpleNamespace(a=1, b=[2]), '{"a": 1, "b": [2]}'),
        (Talking(), '"I am talking"'),
        (Broken(), '"<Broken>"'),
        (Array(), "[1, 2]"),
        ((i for i in range(3)), '"<generator>"'),
        (len, '"<built-in function len>"'),
        (lambda: 0, '"<function>"'),
        (int, "\"<class 'int'>\""),
        (ValueError("bad"), '{"type": "ValueError", "message": "bad"}'),
        (range(3), "[0, 1, 2]"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        (["lone \ud800"], '["lone \ufffd"]'),
        ([10**5000], '["<an integer of 16610 bits>"]'),
    ],
)
def test_anything_has_a_text(value: Any, text: str):
    assert result_text(value) == text
    text.encode()


def test_cycles_and_depth():
    loop: Any = {"a": 1}
    loop["self"] = loop
    assert result_text(loop) == '{"a": 1, "self": "<cycle>"}'
    twice = [1]
    assert result_text([twice, twice]) == "[[1], [1]]"
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert "<too deep>" in result_text(deep)


def test_objects_that_refer_to_each_other_are_opened_a_few_levels_deep() -> None:
    """Each of 20 refers to all others: opened without a bound, they would be as many texts as there are paths."""
    people = [Customer(str(i)) for i in range(20)]
    for one in people:
        one.orders = [other for other in people if other is not one]  # type: ignore[misc]
    data = jsonable(people[0])
    third = data["orders"][0]["orders"][1]
    assert (data["orders"][0]["orders"][0], third["name"], set(third["orders"])) == (
        "<cycle>",
        "2",
        {"<too deep>", "<cycle>"},
    )


def test_a_long_text_keeps_head_and_tail():
    text = result_text("a" * 5000 + "MIDDLE" + "z" * 5000, 1000)
    assert len(text) <= 1000
    assert text.startswith("aaa")
    assert text.endswith("zzz")
    assert "MIDDLE" not in text
    left = int(text.split("[… ")[1].split(" ")[0])
    assert left == 10006 - (len(text) - len(f"\n[… {left} characters left out …]\n"))


def test_a_long_list_keeps_head_and_tail():
    rows = [{"id": i, "name": f"row {i}"} for i in range(10_000)]
    text = result_text(rows, 2000)
    assert 1000 < len(text) <= 2000
    data = json.loads(text)
    assert data[0] == rows[0]
    assert data[-1] == rows[-1]
    (mark,) = [row for row in data if isinstance(row, str)]
    assert mark == f"… {10_000 - (len(data) - 1)} more items left out …"


def test_a_long_dict_says_what_is_missing():
    data = json.loads(result_text({f"key{i}": i for i in range(5000)}, 1000))
    assert data["key0"] == 0
    assert data["key4999"] == 4999
    assert data["…"] == f"{5000 - (len(data) - 1)} more fields left out"


def test_the_small_parts_of_a_large_result_stay_whole():
    value = {"rows": list(range(10_000)), "note": "x" * 10_000, "total": 10_000, "ok": True}
    text = result_text(value, 2000)
    assert len(text) <= 2000
    data = json.loads(text)
    assert (data["total"], data["ok"]) == (10_000, True)
    assert data["rows"][0] == 0
    assert data["rows"][-1] == 9_999
    assert data["note"].startswith("xxx")
    assert "characters left out" in data["note"]


def test_no_limit():
    assert len(result_text(["x"] * 100_000, None)) > 400_000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text() | st.integers(), inner, max_size=30),
    max_leaves=200,
)


@property_test(100, VALUES, st.integers(0, 2000))
def test_every_result_is_json_within_its_limit(value: Any, limit: int):
    text = result_text(value, limit)
    assert len(text) <= max(limit, 200)
    text.encode()
    if not isinstance(value, str):
        json.loads(text)


@property_test(100, VALUES)
def test_what_fits_is_whole(value: Any):
    if not isinstance(value, str):
        assert json.loads(result_text(value, None)) == jsonable(value)
