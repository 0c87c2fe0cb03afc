"""How many calls a request wants: what is told side by side, and one after another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plan.test_fill import Weighing, tool
from toolspeak import drive
from toolspeak.plan.several import alternatives, calls_for, clauses, further, side_by_side

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
        ("add salt and Stir it", "salt", ["salt"]),
        ("Paris", "Paris", ["Paris"]),
    ],
)
def test_what_stands_side_by_side(text: str, piece: str, pieces: list[str]) -> None:
    start = text.index(piece)
    assert [text[a:b] for a, b in side_by_side(text, (start, start + len(piece)))] == pieces


def several(given: Any, text: str, **arguments: Any) -> list[dict[str, Any]]:
    return alternatives(given, text, arguments)


def test_as_many_values_of_two_arguments_are_paired() -> None:
    given = tool("substance", "level", substance=TEXT, level={**NUMBER, "description": "In meters"})
    assert several(given, "water and iron at 0 meters and 1000 meters", substance="water", level=0) == [
        {"substance": "water", "level": 0},
        {"substance": "iron", "level": 1000},
    ]


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


@pytest.mark.parametrize(
    ("found", "call"),
    [
        ({"city": "Rome"}, {"city": "Rome", "days": 3}),
        ({"city": "Paris"}, None),
        ({"city": "the same place"}, None),
        ({"days": 5}, {"city": "Paris", "days": 5}),
        ({"city": "somewhere warm"}, None),
        ({}, None),
    ],
)
def test_a_further_call_has_something_new(found: dict[str, Any], call: dict[str, Any] | None) -> None:
    assert further("Paris for 3 days, then Rome or somewhere warm", {"city": "Paris", "days": 3}, found) == call


def test_clauses_are_filled_one_by_one() -> None:
    add = tool("a", "b", a=NUMBER, b=NUMBER)
    calls, _ = asyncio.run(drive.arun(calls_for(add, "What is 1 plus 2, and what is 5 plus 7?"), Weighing()))
    assert calls == [{"a": 1, "b": 2}, {"a": 5, "b": 7}]
    one, _ = asyncio.run(
        drive.arun(calls_for(add, "What is 1 plus 2, and what is 5 plus 7?", several=False), Weighing())
    )
    assert one == [{"a": 1, "b": 2}]
