"""How many calls a request wants: what is told side by side, and one after another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nlu.test_slots import Weighing, tool
from toolspeak import drive
from toolspeak.nlu.multiple import rows
from toolspeak.nlu.multiple.calls import alternatives, calls_for, clauses
from toolspeak.nlu.multiple.value_mentions import mentions

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


@pytest.mark.parametrize(
    ("text", "piece", "pieces"),
    [
        ("points of water and iron at sea level", "water", ["water", "iron"]),
        ("points of water and iron at sea level", "iron", ["water", "iron"]),
        ("the weather in Paris, Rome and New York.", "Rome", ["Paris", "Rome", "New York"]),
        ("the genes 'BRCA1' and 'BRCA2' of mice", "BRCA1", ["BRCA1", "BRCA2"]),
        ("a neuron cell, a muscle cell and a skin cell", "neuron", ["neuron", "muscle", "skin"]),
        ("the weather in Paris, France", "Paris", ["Paris"]),
        ("the weather in Austin, TX and in Boise, ID", "Austin", ["Austin", "Boise"]),
        ("The weather in Austin, TX, and then for Boise, ID", "Austin, TX", ["Austin, TX", "Boise, ID"]),
        ("add salt and Stir it", "salt", ["salt"]),
        ("Paris", "Paris", ["Paris"]),
        ("a recipe with lentils and keep it short", "lentils", ["lentils"]),
        ("turn the lamp off in the attic, close the door", "attic", ["attic"]),
        ("Is KX12 delayed? And what about QF407?", "KX12", ["KX12", "QF407"]),
        (
            "the price of fish and chips and then of bread and butter",
            "fish and chips",
            ["fish and chips", "bread and butter"],
        ),
        ("the user is 'ann' and the password is 'secret'", "ann", ["ann"]),
        ("from Lima to Quito, then from Quito to Bogota", "Lima", ["Lima", "Quito"]),
        ("Is it raining in Turin? How about Milan?", "Turin", ["Turin", "Milan"]),
        ("Compare the weather of Boston with that of Miami.", "Boston", ["Boston", "Miami"]),
        ("set the bedroom to 18 degrees and the kitchen to 21", "bedroom", ["bedroom", "kitchen"]),
        ("the oak had a height of 9 feet, the stone pine had a height of 6", "oak", ["oak", "stone pine"]),
    ],
)
def test_texts_that_are_alike(text: str, piece: str, pieces: list[str]) -> None:
    found = mentions(text, {"what": TEXT}, {"what": piece})
    assert [one.value for one in found] == pieces


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("a wall of 3 meters and a wall of 7 meters", [3, 7]),
        ("a wall of 3 meters and 2 doors", [3]),
        ("at 3, 5 and 8 degrees", [3, 5, 8]),
        ("between 3 and 8 degrees", [3]),
        ("a depth of 3, and then another with a depth of 9", [3, 9]),
        ("a depth of 3, and another one with a depth of 9", [3, 9]),
        ("costs $3 a night and seats 4 guests", [3]),
        ("a wall of 3 meters that is 40 meters away", [3]),
    ],
)
def test_numbers_that_are_alike(text: str, numbers: list[int]) -> None:
    found = mentions(text, {"size": NUMBER}, {"size": 3})
    assert [one.value for one in found] == numbers


def several(given: Any, text: str, **arguments: Any) -> list[dict[str, Any]]:
    return alternatives(given, text, arguments)[0]


def test_as_many_values_of_two_arguments_are_paired_where_the_request_says_so() -> None:
    given = tool("substance", "level", substance=TEXT, level={**NUMBER, "description": "In meters"})
    text = "water and iron at 0 meters and 1000 meters"
    assert several(given, text + " respectively", substance="water", level=0) == [
        {"substance": "water", "level": 0},
        {"substance": "iron", "level": 1000},
    ]
    assert len(several(given, text, substance="water", level=0)) == 4


def test_a_clause_tells_a_call() -> None:
    given = tool("city", "days", city=TEXT, days=NUMBER)
    text = "A forecast of 3 days for Lima, one of 5 days for Quito and also one of 10 days for La Paz."
    assert [tuple(call.values()) for call in several(given, text, city="Lima", days=3)] == [
        ("Lima", 3),
        ("Quito", 5),
        ("La Paz", 10),
    ]


def test_numbers_come_round() -> None:
    given = tool("a", "b", a=NUMBER, b=NUMBER)
    text = "How many ways are there to take 3 out of 12, 5 out of 20 and 2 out of 9?"
    assert [tuple(call.values()) for call in several(given, text, a=3, b=12)] == [(3, 12), (5, 20), (2, 9)]
    assert len(several(given, "Split 120 dollars among 4 people after 3 minutes at 9 am", a=120, b=4)) == 1


def test_two_percentages_are_of_two_things() -> None:
    given = tool("tip", tip={"type": "number"})
    assert several(given, "Add a 15% tip and 8% tax", tip=0.15) == [{"tip": 0.15}]
    assert len(several(given, "Add a tip of 15% and then a tip of 8%", tip=0.15)) == 2


def test_what_a_clause_does_not_tell_is_the_first_ones() -> None:
    given = tool("city", "days", "unit", city=TEXT, days=NUMBER, unit={"enum": ["metric", "imperial"]})
    text = "In metric units, show Lima for 3 days, then show Quito, and then show Lima for 7 days"
    assert [tuple(call.values()) for call in several(given, text, city="Lima", days=3, unit="metric")] == [
        ("Lima", 3, "metric"),
        ("Quito", 3, "metric"),
        ("Lima", 7, "metric"),
    ]


def test_every_clause_has_its_groups() -> None:
    given = tool("record", "domain", record={"enum": ["MX", "TXT", "NS"]}, domain=TEXT)
    text = "the MX and TXT records of acme.org and the NS record of corp.net"
    assert [tuple(call.values()) for call in several(given, text, record="MX", domain="acme.org")] == [
        ("MX", "acme.org"),
        ("TXT", "acme.org"),
        ("NS", "corp.net"),
    ]


def test_a_number_of_a_further_clause_is_the_first_arguments() -> None:
    given = tool("city", "rooms", "beds", city=TEXT, rooms=NUMBER, beds=NUMBER)
    text = "a hotel in Lima with 3 rooms and 4 beds; then a hotel in Quito with 5"
    assert several(given, text, city="Lima", rooms=3, beds=4) == [
        {"city": "Lima", "rooms": 3, "beds": 4},
        {"city": "Quito", "rooms": 5, "beds": 4},
    ]


def test_an_option_of_one_clause_is_not_the_others() -> None:
    given = tool("city", "days", city=TEXT, days=NUMBER, hourly={"type": "boolean"}, note=TEXT)
    text = "Show Lima for 3 days, and show Quito for 5 days hourly with the note 'rain'"
    assert several(given, text, city="Lima", days=3, hourly=True, note="rain") == [
        {"city": "Lima", "days": 3},
        {"city": "Quito", "days": 5, "hourly": True, "note": "rain"},
    ]
    text = "Show Lima for 3 days, and show Quito for 5 days, both with the note 'rain'"
    assert [call["note"] for call in several(given, text, city="Lima", days=3, note="rain")] == ["rain", "rain"]


def test_a_route_of_several_legs() -> None:
    given = tool("start", "end", start=TEXT, end=TEXT)
    text = "from Lima to Quito, then from Quito to Bogota and finally from Bogota back to Lima"
    assert [tuple(call.values()) for call in several(given, text, start="Lima", end="Quito")] == [
        ("Lima", "Quito"),
        ("Quito", "Bogota"),
        ("Bogota", "Lima"),
    ]


def test_a_date_for_each() -> None:
    day = {**TEXT, "description": "YYYY-MM-DD"}
    given = tool("city", "day", city=TEXT, day=day)
    text = "a room in Lima on 2024-03-01 and one in Quito on 2024-03-05"
    assert [tuple(call.values()) for call in several(given, text, city="Lima", day="2024-03-01")] == [
        ("Lima", "2024-03-01"),
        ("Quito", "2024-03-05"),
    ]


def test_more_calls_than_a_request_has_are_a_misreading() -> None:
    given = tool("city", "days", city=TEXT, days=NUMBER)
    cities, days = ", ".join(f"Town{letter}" for letter in "abcdefghijklmnop"), ", ".join(map(str, range(20)))
    text = f"Show Lima, {cities} and Quito for 3, {days} and 99 days"
    assert several(given, text, city="Lima", days=3) == [{"city": "Lima", "days": 3}]
    text = " and ".join("Show Lima for 3 days, then Quito for 5 days" for _ in range(9))
    assert several(given, text, city="Lima", days=3) == [{"city": "Lima", "days": 3}]


def test_each_quoted_series_is_one_call() -> None:
    given = tool("id", "tags", id=NUMBER, tags={"type": "array", "items": TEXT})
    text = "Put the tags 'a' and 'b' on the page with the ID 3, and the tag 'c' on the page with the ID 4"
    assert several(given, text, id=3, tags=["a", "b"]) == [{"id": 3, "tags": ["a", "b"]}, {"id": 4, "tags": ["c"]}]


def test_others_are_crossed() -> None:
    given = tool("city", "days", city=TEXT, days=NUMBER)
    calls = several(given, "Paris and Rome for 3 days, 5 days or 7 days", city="Paris", days=3)
    assert [(call["city"], call["days"]) for call in calls] == [
        (city, days) for city in ("Paris", "Rome") for days in (3, 5, 7)
    ]


def test_options_named_side_by_side() -> None:
    given = tool("kind", kind={"enum": ["insertion", "deletion", "none"]})
    assert several(given, "for insertion and deletion", kind="insertion") == [
        {"kind": "insertion"},
        {"kind": "deletion"},
    ]


def test_an_option_that_is_denied_is_none() -> None:
    given = tool("city", "unit", city=TEXT, unit={"enum": ["celsius", "fahrenheit"]})
    assert len(several(given, "Weather in Rome in celsius, not in fahrenheit", city="Rome", unit="celsius")) == 1
    assert len(several(given, "Weather in Rome in celsius and in fahrenheit", city="Rome", unit="celsius")) == 2


def test_options_that_are_not_side_by_side_are_one_each() -> None:
    unit = {"enum": ["celsius", "fahrenheit"]}
    given = tool("value", "to", value=NUMBER, to=unit)
    assert several(given, "Convert 30 from celsius to fahrenheit", value=30, to="fahrenheit") == [
        {"value": 30, "to": "fahrenheit"}
    ]


def test_a_number_of_the_same_unit_elsewhere_is_another_thing() -> None:
    given = tool("distance", "time", distance=NUMBER, time=NUMBER)
    text = "How fast is a car that covers 450 meters in 20 seconds and stops after 30 meters?"
    assert several(given, text, distance=450, time=20) == [{"distance": 450, "time": 20}]


def test_a_plain_word_is_no_sibling_of_an_address() -> None:
    given = tool("email", email=TEXT)
    assert several(given, "Create ann@x.org and role admin", email="ann@x.org") == [{"email": "ann@x.org"}]


def test_an_option_may_end_in_a_sign() -> None:
    given = tool("language", language={"enum": ["C", "C++", "C#", "Java"]})
    assert several(given, "Write it in Java and then in C# too", language="Java") == [
        {"language": "Java"},
        {"language": "C#"},
    ]


def test_options_that_differ_in_case_alone_are_told_apart() -> None:
    given = tool("kind", kind={"enum": ["AA", "Aa", "aa"]})
    assert several(given, "the frequency of AA", kind="AA") == [{"kind": "AA"}]


def test_each_list_is_one_call() -> None:
    given = tool("numbers", numbers={"type": "array", "items": NUMBER})
    assert several(given, "the mean of [1, 2] and of [3, 4]", numbers=[1, 2]) == [
        {"numbers": [1, 2]},
        {"numbers": [3, 4]},
    ]


def test_one_thing_is_one_call() -> None:
    given = tool("start", "end", start=TEXT, end=TEXT)
    assert several(given, "from Paris and then Rome", start="Paris", end="Rome") == [{"start": "Paris", "end": "Rome"}]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("The first bird is blue. The second bird is red.", 2),
        ("Fetch the sequence of X, then fetch it again as text, and finally fetch all of it", 3),
        ("Is it warm in Rome and how is it in Oslo today", 2),
        ("My name is Ann. I live here.", 1),
        ("one thing", 1),
    ],
)
def test_clauses(text: str, parts: int) -> None:
    assert max(1, len(clauses(text))) == parts


def test_several_calls_or_the_first_alone() -> None:
    add = tool("a", "b", a=NUMBER, b=NUMBER)
    calls, _ = asyncio.run(drive.arun(calls_for(add, "What is 1 plus 2, and what is 5 plus 7?"), Weighing()))
    assert calls == [{"a": 1, "b": 2}, {"a": 5, "b": 7}]
    one, _ = asyncio.run(
        drive.arun(calls_for(add, "What is 1 plus 2, and what is 5 plus 7?", several=False), Weighing())
    )
    assert one == [{"a": 1, "b": 2}]


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("a lamp in red and then 3 meters high", [{"color": ["red"], "size": [3]}]),
        (
            "a wall of 3 meters in 'red', then a wall of 7 meters in 'blue'",
            [{"size": [3], "color": ["red"]}, {"size": [7], "color": ["blue"]}],
        ),
    ],
)
def test_a_call_begins_where_an_argument_comes_again_and_not_at_a_word(text: str, groups: list[Any]) -> None:
    found = mentions(text, {"color": TEXT, "size": NUMBER}, {"color": "red", "size": 3})
    made = rows.clauses(text, found)
    assert [{name: [one.value for one in row] for name, row in part.groups.items()} for part in made] == groups
