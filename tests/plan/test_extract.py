"""A value of a Python type out of a text, checked and asked again like a call."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, NamedTuple, TypedDict

import pydantic
import pytest

import toolspeak as ts
from replies import calls, native


@dataclass
class Person:
    name: str
    age: int


class Address(pydantic.BaseModel):
    city: str
    zip: str | None = None


class Customer(pydantic.BaseModel):
    person: Person
    addresses: list[Address] = []
    since: date

    @pydantic.field_validator("since")
    @classmethod
    def not_too_early(cls, value: date) -> date:
        if value.year < 1900:
            raise ValueError("nobody was a customer before 1900")
        return value


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: int


class Film(TypedDict):
    title: str
    year: int


class Box(pydantic.BaseModel):
    items: list[Box] = []


def extract(kind: Any, *arguments: Any, **options: Any) -> Any:
    class Model(ts.Scripted):
        async def stream(self, request: ts.Request) -> Any:
            turn = len(self.requests)
            name = (request.tools or ())[0].name
            self.replies = [calls((name, given)) for given in arguments]
            assert request.choice == name
            async for event in super().stream(request):
                yield event
            assert len(self.requests) == turn + 1

    return ts.extract("some text", kind, model=Model([], capabilities=["tools"]), **options)


@pytest.mark.parametrize(
    ("kind", "arguments", "value"),
    [
        (Person, {"name": "Alice", "age": 31}, Person("Alice", 31)),
        (Person, {"name": "Alice", "age": "31"}, Person("Alice", 31)),
        (Address, {"city": "Rome"}, Address(city="Rome")),
        (list[int], {"value": [1, 2]}, [1, 2]),
        (dict[str, int], {"value": {"a": 1}}, {"a": 1}),
        (list[Person], {"value": [{"name": "A", "age": 1}]}, [Person("A", 1)]),
        (int, {"value": 5}, 5),
        (Literal["yes", "no"], {"value": "yes"}, "yes"),
        (Colour, {"value": "red"}, Colour.RED),
        (Film, {"title": "M", "year": 1931}, {"title": "M", "year": 1931}),
        (Point, {"value": [1, 2]}, Point(1, 2)),
        (date, {"value": "2026-11-21"}, date(2026, 11, 21)),
        (int | None, {"value": None}, None),
        (Box, {"value": {"items": [{"items": []}]}}, Box(items=[Box()])),
    ],
)
def test_a_value_of_the_type(kind: Any, arguments: Any, value: Any) -> None:
    assert extract(kind, arguments) == value


def test_a_nested_model() -> None:
    given = {
        "person": {"name": "A", "age": 1},
        "addresses": [{"city": "Rome"}, {"city": "Bari", "zip": "70100"}],
        "since": "2001-02-03",
    }
    made = extract(Customer, given)
    assert made.person == Person("A", 1)
    assert [address.zip for address in made.addresses] == [None, "70100"]
    assert made.since == date(2001, 2, 3)


def test_what_does_not_fit_is_asked_again() -> None:
    assert extract(Person, {"name": "Alice"}, {"name": "Alice", "age": 31}) == Person("Alice", 31)


def test_what_only_the_type_can_judge_is_asked_again_too() -> None:
    person = {"name": "A", "age": 1}
    made = extract(Customer, {"person": person, "since": "1801-01-01"}, {"person": person, "since": "1901-01-01"})
    assert made.since.year == 1901
    with pytest.raises(ts.GenerationError, match="before 1900") as caught:
        extract(Customer, *[{"person": person, "since": f"180{i}-01-01"} for i in range(2)], tries=2)
    assert len(caught.value.attempts) == 2


@pytest.mark.parametrize(
    ("kind", "reply", "value"),
    [
        (Person, '{"name": "Alice", "age": 31}', Person("Alice", 31)),
        (Person, '```json\n{"name": "Alice", "age": "31"}\n```\n', Person("Alice", 31)),
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (dict[str, int], '{"value": {"a": 1}}', {"a": 1}),
        (int, " 31\n", 31),
        (int | None, "null", None),
    ],
)
def test_a_value_written_without_the_call(kind: Any, reply: str, value: Any) -> None:
    """Asked for a call, many models write just the value."""
    for model in (native(reply), ts.Scripted([reply])):
        assert ts.extract("Alice is 31", kind, model=model) == value


@pytest.mark.parametrize(
    "reply", ['{"name": "Alice"}', "{}", "31", '{"name": "A", "age": 1.5}', "[" * 9999, "It is 5."]
)
def test_what_is_not_the_whole_value_is_no_call(reply: str) -> None:
    for kind in (Person, Address):
        with pytest.raises(ts.NoCall):
            ts.extract("Alice is 31", kind, model=native(reply, repeat=True))


def test_no_call_at_all() -> None:
    with pytest.raises(ts.NoCall, match="Alice"):
        ts.extract("Alice is 31", Person, model=native("Alice is 31 years old.", repeat=True))


@pytest.mark.parametrize("kind", ["Person", 5, object()])
def test_what_is_no_type(kind: Any) -> None:
    with pytest.raises(ts.InvalidTool, match="extract"):
        ts.extract("x", kind, model=native("x"))


def test_a_typed_dict_of_the_standard_library() -> None:
    class Point(TypedDict):
        x: int
        y: int

    model = native(calls(("record_point", {"x": 1, "y": 2})))
    assert ts.extract("1, 2", Point, model=model) == {"x": 1, "y": 2}
