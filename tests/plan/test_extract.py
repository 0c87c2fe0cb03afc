"""A value of a Python type out of a text, checked and asked again like a call."""

from __future__ import annotations

import enum
import json
import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
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
    ("kind", "reply", "value"),
    [
        (Literal["positive", "negative"], "positive", "positive"),
        (Literal["positive", "very good"], "**Very good**.", None),
        (Literal["positive", "very good"], "```\nvery good\n```", "very good"),
        (Literal["positive", "negative"], "It is positive or negative", None),
        (Colour, "'red'.", Colour.RED),
        (Colour | None, "blue", Colour.BLUE),
        (date, "2026-11-23.", date(2026, 11, 23)),
        (int, "31.", 31),
        (int, "-31!", -31),
        ({"enum": ["a", "b"]}, "`b`", "b"),
        (int, "thirty-one", None),
        (str, "Alice", None),
        (int | str, "Alice", None),
        (str | None, "Alice", None),
    ],
)
def test_a_value_without_the_quotes_of_json(kind: Any, reply: str, value: Any) -> None:
    """Where any text would do, a text may just as well be an excuse: it is no value then."""
    for model in (native(reply), ts.Scripted([reply])):
        if value is None:
            with pytest.raises(ts.GenerationError):
                ts.extract("some text", kind, model=model, tries=1)
        else:
            assert ts.extract("some text", kind, model=model, tries=1) == value


def test_a_word_that_is_no_choice_is_said_what_the_choices_are() -> None:
    model = native("great", "positive")
    assert ts.extract("some text", Literal["positive", "negative"], model=model) == "positive"
    assert "negative" in str(model.requests[1].messages[-1]["content"])


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (Person, "a value of Person"), (list[int], "a value of list[int]"), (int | None, "a value of int | None"),
        (Literal["a"], "a value of Literal['a']"), ({"type": "object", "title": "Mail"}, "a value of the schema 'Mail'"),
        ({"type": "object"}, "a value of the schema"),
    ],
)  # fmt: skip
def test_an_error_says_which_value_was_wanted(kind: Any, wanted: str) -> None:
    with pytest.raises(ts.GenerationError) as caught:
        ts.extract("some text", kind, model=native("I would rather not.", repeat=True))
    assert str(caught.value) == f"{wanted} was wanted, and a text came: 'I would rather not.'"


@pytest.mark.parametrize("reply", ["{}", "31", "[" * 9999, "It is 5.", "In {braces} and [brackets]."])
def test_what_is_not_the_whole_value_is_no_call(reply: str) -> None:
    for kind in (Person, Address):
        with pytest.raises(ts.NoCall):
            ts.extract("Alice is 31", kind, model=native(reply, repeat=True))


@pytest.mark.parametrize(
    ("reply", "why"),
    [('{"name": "Alice"}', "'age' is missing"), ('```\n{"name": "A", "age": 1.5}\n```', "age")],
)
def test_a_value_that_does_not_fit_is_said_what_is_wrong(reply: str, why: str) -> None:
    for model in (native(reply, '{"name": "Alice", "age": 31}'), ts.Scripted([reply, '{"name": "Alice", "age": 31}'])):
        assert ts.extract("Alice is 31", Person, model=model) == Person("Alice", 31)
        assert why in str(model.requests[1].messages[-1]["content"])


def test_a_validators_own_words_are_told() -> None:
    bad = json.dumps({"person": {"name": "A", "age": 1}, "since": "1801-01-01"})
    model = ts.Scripted([bad, bad.replace("1801", "1901")])
    assert ts.extract("some text", Customer, model=model).since.year == 1901
    assert "nobody was a customer before 1900" in str(model.requests[1].messages[-1]["content"])


@pytest.mark.parametrize(
    ("kind", "reply", "value"),
    [
        (Person, 'Sure! {"name": "Alice", "age": 31} Anything else?', Person("Alice", 31)),
        (Person, 'In [short]:\n```json\n{"name": "Alice", "age": 31}\n```\nI hope {this} helps.', Person("Alice", 31)),
        (
            Person,
            'Not {"name": "Bob"} but {"name": "Alice", "age": 31}, so {"name": "Alice", "age": 31}.',
            Person("Alice", 31),
        ),
        (list[int], "They are [1, 2].", [1, 2]),
        (Person, "Sure: {'name': 'Alice', 'age': 31,}", Person("Alice", 31)),
    ],
)
def test_a_value_among_words(kind: Any, reply: str, value: Any) -> None:
    for model in (native(reply), ts.Scripted([reply])):
        assert ts.extract("Alice is 31", kind, model=model, tries=1) == value


@pytest.mark.parametrize(
    "reply",
    [
        '{"name": "Alice", "age": 31,}',
        "{'name': 'Alice', 'age': 31}",
        "Sure! {'name': 'Alice', 'age': 31} Anything else?",
        '```json\n{"name": "Alice", "age": 31,}\n```',
        '{"person": {"name": "Alice", "age": 31}}',
        '{"record_person": {"name": "Alice", "age": 31}}',
        "{'Person': {'name': 'Alice', 'age': 31,},}",
        '[{"name": "Alice", "age": 31}]',
    ],
)
def test_a_value_in_nearly_valid_json(reply: str) -> None:
    for model in (native(reply), ts.Scripted([reply])):
        assert ts.extract("Alice is 31", Person, model=model, tries=1) == Person("Alice", 31)


def test_an_unwrapped_value_keeps_its_digits() -> None:
    class Bill(pydantic.BaseModel):
        total: Decimal

    digits = "0.1000000000000000000001"
    for reply in (f'{{"bill": {{"total": {digits},}}}}', f'[{{"total": {digits}}}]'):
        assert ts.extract("x", Bill, model=native(reply), tries=1) == Bill(total=Decimal(digits))


def test_a_datetime_without_a_zone() -> None:
    class Visit(pydantic.BaseModel):
        at: pydantic.NaiveDatetime

    model = native('{"at": "2026-03-01T09:00:00Z"}', '{"at": "2026-03-01T09:00:00"}')
    assert ts.extract("x", Visit, model=model) == Visit(at=datetime(2026, 3, 1, 9))
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    "reply",
    [
        '[{"name": "Alice", "age": 31}, {"name": "Bob", "age": 27}]',
        '{"person": {"name": "Alice", "age": 31}, "other": {"name": "Bob", "age": 27}}',
        "{'name': 'Alice', 'age': 31} or {'name': 'Bob', 'age': 27}",
    ],
)
def test_more_than_the_value_is_not_unwrapped(reply: str) -> None:
    with pytest.raises(ts.NoCall):
        ts.extract("some text", Person, model=native(reply), tries=1)


@pytest.mark.parametrize(
    "reply", ['{"name": "Alice", // net\n "age": 31}', '```json\n{"name": "Alice" "age": 31}\n```']
)
def test_json_that_cannot_be_repaired_is_named_as_such(reply: str) -> None:
    model = native(reply, '{"name": "Alice", "age": 31}')
    assert ts.extract("Alice is 31", Person, model=model) == Person("Alice", 31)
    order = str(model.requests[1].messages[-1]["content"])
    assert order.startswith("That is not valid JSON: Expecting ")
    assert order.endswith("Answer with a call to record_person, nothing else.")


def test_two_values_among_words_are_none() -> None:
    reply = 'It is {"name": "Alice", "age": 31} or {"name": "Bob", "age": 27}.'
    with pytest.raises(ts.NoCall):
        ts.extract("some text", Person, model=native(reply), tries=1)


class Open(pydantic.BaseModel, extra="allow"):
    city: str


class Closed(pydantic.BaseModel, extra="forbid"):
    city: str


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Address, Address(city="Rome")),
        (Open, Open(city="Rome", mood="fine")),  # type: ignore[call-arg]
        ({"type": "object", "properties": {"city": {"type": "string"}}}, {"city": "Rome"}),
        (
            {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": True},
            {"city": "Rome", "mood": "fine"},
        ),
    ],
)
def test_other_keys_by_the_types_own_rule(kind: Any, value: Any) -> None:
    assert extract(kind, {"city": "Rome", "mood": "fine"}) == value
    assert ts.extract("x", kind, model=native('{"city": "Rome", "mood": "fine"}'), tries=1) == value


def test_other_keys_within_records() -> None:
    given = {"person": {"name": "A", "age": 1, "x": 1}, "addresses": [{"city": "Rome", "y": 2}], "since": "2001-02-03"}
    made = extract(Customer, given)
    assert (made.person, made.addresses) == (Person("A", 1), [Address(city="Rome")])
    assert extract(list[Address], {"value": [{"city": "Rome", "mood": "fine"}], "z": 1}) == [Address(city="Rome")]


def test_other_keys_that_are_forbidden() -> None:
    assert extract(Closed, {"city": "Rome", "mood": "fine"}, {"city": "Rome"}) == Closed(city="Rome")
    with pytest.raises(ts.GenerationError, match="mood"):
        extract(Closed, {"city": "Rome", "mood": "fine"}, tries=1)


@pytest.mark.parametrize(
    ("schema", "arguments", "value"),
    [
        ({"type": "array", "items": {"type": "integer"}}, {"value": [1, 2]}, [1, 2]),
        ({"title": "A city", "type": "string", "minLength": 2}, {"value": "Rome"}, "Rome"),
        (
            {
                "$ref": "#/$defs/Place",
                "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}}},
            },
            {"value": {"city": "Rome"}},
            {"city": "Rome"},
        ),
    ],
)
def test_a_json_schema_as_the_kind(schema: Any, arguments: Any, value: Any) -> None:
    assert extract(schema, arguments) == value


def test_what_is_no_json_schema() -> None:
    with pytest.raises(ts.InvalidTool):
        ts.extract("x", {"type": "thing", "properties": {}}, model=native("x"))


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "thing", "properties": {}}, "/type"),
        ({"type": "strng"}, "/type"),
        ({"type": "object", "properties": {"a": {"type": "strng"}}}, "/properties/a/type"),
        ({"type": "array", "items": {"pattern": "["}}, "/items/pattern"),
        ({"$ref": "#/$defs/a"}, "/$ref"),
    ],
)
def test_a_wrong_schema_is_told_by_the_place_in_it(schema: Any, place: str) -> None:
    """Not by the place in the tool that is made of it, which nobody wrote."""
    with pytest.raises(ts.InvalidTool, match="^the schema is invalid, at " + re.escape(place)) as raised:
        ts.extract("x", schema, model=native("x"))
    assert raised.value.tool == ""


def test_lists_on_the_embedded_model() -> None:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    assert ts.extract("The numbers are 3, 5 and 8.", list[int], model="local") == [3, 5, 8]
    assert ts.extract("Alice is 31 and Bob is 27.", list[Person], model="local") == [
        Person("Alice", 31),
        Person("Bob", 27),
    ]


# ------------------------------------------------------------------ as it is being written


@dataclass(frozen=True, slots=True)
class Party:
    guests: list[Person]
    day: date | None = None


PARTY = '{"guests": [{"name": "Alice", "age": 31}, {"name": "Bob", "age": 27}], "day": "2026-11-23"}'
WHOLE = Party([Person("Alice", 31), Person("Bob", 27)], date(2026, 11, 23))


@pytest.mark.parametrize("form", ["native", "prompted", "plain", "fenced"])
def test_a_value_while_it_is_written(form: str) -> None:
    if form == "native":
        pieces = [ts.ArgumentsDelta(PARTY[i : i + 3]) for i in range(0, len(PARTY), 3)]
        model = native([ts.CallStart("record_party", "c"), *pieces, ts.CallEnd(), ts.Finished("tool_calls")])
    else:
        called = f'{{"tool": "record_party", "tool_input": {PARTY}}}'
        texts = {"prompted": called, "plain": PARTY, "fenced": f"Here:\n```json\n{PARTY}\n```"}
        model = ts.Scripted([texts[form]])
    seen = list(ts.stream_extract("Alice, Bob", Party, model=model))
    assert seen[-1] == WHOLE
    assert all(isinstance(one, Party) for one in seen)
    assert len(seen) > 5
    names = [one.guests[0].name for one in seen if one.guests]
    assert {"A", "Alice"} & set(names)  # a text grows
    first = next(one for one in seen if one.guests and len(one.guests) == 2)
    assert (first.guests[0], first.day) == (Person("Alice", 31), None)


def test_a_wrapped_value_while_it_is_written() -> None:
    text = '{"value": [1, 22, 333]}'
    pieces = [ts.ArgumentsDelta(letter) for letter in text]
    model = native([ts.CallStart("record_list", "c"), *pieces, ts.CallEnd(), ts.Finished("tool_calls")])
    seen = list(ts.stream_extract("1, 22, 333", list[int], model=model))
    assert seen[0] in ([], [1])
    assert seen[-1] == [1, 22, 333]
    assert all(set(one[:-1]) <= {1, 22, 333} for one in seen)


def test_asked_again_the_value_begins_anew() -> None:
    model = ts.Scripted(['{"name": "Al"}', '{"name": "Alice", "age": 31}'])
    seen = list(ts.stream_extract("Alice is 31", Person, model=model))
    assert seen[-1] == Person("Alice", 31)
    assert (seen[0].name, seen[0].age) == ("Al", None)
    assert [one.name for one in seen][1:] == ["Alice"] * (len(seen) - 1)


def test_a_model_is_made_field_by_field() -> None:
    text = json.dumps({"person": {"name": "A", "age": 1}, "addresses": [{"city": "Rome"}], "since": "2001-02-03"})
    seen = list(ts.stream_extract("x", Customer, model=ts.Scripted([text])))
    assert isinstance(seen[1], Customer)
    assert isinstance(next(one for one in seen if one.addresses).addresses[0], Address)
    assert seen[-1].since == date(2001, 2, 3)


# ------------------------------------------------------------------ the result of a run


def weather(city: str) -> str:
    """Get the current weather in a city."""
    return f"{city}: 21 °C"


class Report(pydantic.BaseModel):
    city: str
    celsius: int


def test_a_run_with_a_typed_result() -> None:
    model = native(
        calls(("weather", {"city": "Oslo"})),
        "It is 21 °C in Oslo.",
        calls(("record_report", {"city": "Oslo", "celsius": 21})),
    )
    reply = ts.run("Weather in Oslo?", tools=[weather], output=Report, model=model)
    assert (reply.text, reply.output) == ("It is 21 °C in Oslo.", Report(city="Oslo", celsius=21))
    assert [len(step.results) for step in reply.steps] == [1, 0]
    last = model.requests[-1]
    assert (last.choice, [tool.name for tool in last.tools or ()]) == ("record_report", ["record_report"])
    assert "21 °C in Oslo" in str(last.messages[-1]["content"])
    assert reply.messages[-1]["content"] == reply.text


def test_an_answer_that_is_the_value_needs_no_further_request() -> None:
    model = native(calls(("weather", {"city": "Oslo"})), 'Here: {"city": "Oslo", "celsius": 21}')
    reply = ts.run("Weather in Oslo?", tools=[weather], output=Report, model=model)
    assert reply.output == Report(city="Oslo", celsius=21)
    assert len(model.requests) == 2


def test_a_run_that_ends_without_a_word_has_no_value() -> None:
    assert ts.run("Hi", output=Report, model=native("")).output is None


def test_a_run_whose_answer_never_becomes_a_value_keeps_what_it_did() -> None:
    model = native(calls(("weather", {"city": "Oslo"})), *["Hello."] * 9)
    with pytest.raises(ts.GenerationError, match="a value of Report was wanted") as caught:
        ts.run("Weather in Oslo?", tools=[weather], output=Report, model=model)
    assert caught.value.run is not None
    assert [len(step.results) for step in caught.value.run.steps] == [1, 0]
    assert "21 °C" in str(caught.value.run.messages)


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
