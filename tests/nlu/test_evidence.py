"""Values that a request shows without a model: by form, by the argument's name beside them, as an option described."""

from __future__ import annotations

from typing import Any

import pytest

from toolspeak.nlu import evidence
from toolspeak.nlu.assignment import reading
from toolspeak.nlu.entities import spans as pieces
from toolspeak.nlu.entities.number_units import unit_support
from toolspeak.nlu.entities.numbers import numbers
from toolspeak.stems import stems

NONE: frozenset[str] = frozenset()


def text(description: str = "") -> dict[str, Any]:
    return {"type": "string", "description": description}


def shown(request: str, *spans: tuple[int, int]) -> list[str]:
    return [request[slice(*span)] for span in spans]


def test_a_piece_has_the_form_that_a_description_shows() -> None:
    request = "who looked at kettle/steam after order Q-118 came in?"
    schemas = {"order": text("Such as 'B-204'."), "repository": text("'owner/name'"), "note": text("Anything.")}
    found = evidence.by_form(request, schemas)
    assert {name: request[slice(*span)] for name, span in found.items()} == {
        "order": "Q-118",
        "repository": "kettle/steam",
    }


def test_two_pieces_of_one_form_show_nothing() -> None:
    assert not evidence.by_form("compare Q-118 with Q-119", {"order": text("Such as 'B-204'.")})
    assert not evidence.by_form("pay Q-118", {"order": text("Like 'B-204'."), "invoice": text("Like 'C-300'.")})


@pytest.mark.parametrize(
    ("request_", "name", "found"),
    [
        ("stop the pump in zone north-4 now", "zone", ["north-4"]),
        ("the customer number 'K 12', please", "customer_number", ["K 12"]),
        ("a flight from Oslo to Rome", "origin", ["Oslo"]),
        ("a flight from Oslo to Rome", "destination", ["Rome"]),
        ("what is the zone?", "zone", []),
        ("the herbarium of Uppsala", "herbarium", ["Uppsala"]),
    ],
)
def test_what_stands_beside_a_name(request_: str, name: str, found: list[str]) -> None:
    assert shown(request_, *evidence.named(request_, name)) == found


def test_what_is_told_outright() -> None:
    request = "scale db up, project=finance zone='eu 1', thanks"
    assert [request[slice(*span)] for name in ("project", "zone") if (span := evidence.assigned(request, name))] == [
        "finance"
    ]


def test_an_option_that_a_description_names() -> None:
    assert evidence.option("a menu for vegans, please", text("Diet, e.g. vegan, kosher, halal.")) == "vegan"
    assert evidence.option("vegan or halal", text("Diet, e.g. vegan, kosher, halal.")) is None
    assert evidence.option("a big one", text("Size.")) is None


def test_what_is_no_value() -> None:
    request = "Book a room every night"
    assert evidence.hollow(request, (0, 4), "hotel")
    assert evidence.hollow(request, (12, 17), "time")
    assert evidence.hollow(request, (7, 11), "room")
    assert not evidence.hollow(request, (18, 23), "time")


def test_a_switch_is_spoken_of() -> None:
    told = "Include earlier positions."
    assert evidence.spoken("show Ida with all earlier positions", "include_history", told, NONE)
    assert not evidence.spoken("show Ida without earlier positions", "include_history", told, NONE)
    assert not evidence.spoken("show Ida", "include_history", told, NONE)
    assert not evidence.spoken("earlier positions", "include_history", told, frozenset(stems(told)))


@pytest.mark.parametrize(
    ("request_", "name", "speaks"),
    [
        ("a room of 12 square meters", "area", True),
        ("walk 12 km", "distance", True),
        ("walk 12 km", "weight", False),
        ("it costs $12", "price", True),
        ("a table for 12", "party_size", True),
        ("12 of us", "guests", True),
        ("the top 12 songs", "limit", True),
        ("songs of 12 minutes", "limit", False),
        ("12 % off", "discount", True),
    ],
)
def test_a_unit_speaks_for_an_argument(request_: str, name: str, speaks: bool) -> None:
    (one,) = numbers(request_)
    assert (unit_support(request_, one, name, NONE) > 0) is speaks


@pytest.mark.parametrize(
    ("request_", "description", "value"),
    [
        ("keep it for three weeks", "How long, in days.", 21),
        ("an upload of 2 minutes", "Timeout in seconds.", 120),
        ("an upload of 2 minutes", "How long it takes.", 2),
        ("90 minutes", "Duration in hours.", 1.5),
        ("3 and a half hours", "Duration in hours.", 3.5),
    ],
)
def test_a_time_in_the_unit_that_is_asked_for(request_: str, description: str, value: float) -> None:
    (one,) = numbers(request_)
    assert reading(one, {"type": "number", "description": description}) == value


def test_a_name_without_a_word_is_never_said() -> None:
    assert evidence.named("_ is 'a', and 'b'", "_") == []


def test_a_name_that_comes_again_and_again_is_read_in_linear_time() -> None:
    read = 0

    request = "zone 'a' " * 20_000
    before = pieces.quotations

    def counted(text: str) -> Any:
        nonlocal read
        read += 1
        return before(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "quotations", counted)
        assert len(evidence.named(request, "zone")) == 20_000
    assert read == 1
