"""The arguments of a call, copied from the request: with a scorer that a function stands for, and with the real model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import Field

from toolspeak import drive
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.models.base import Capability
from toolspeak.models.embedded import weights
from toolspeak.models.embedded.local import Local
from toolspeak.nlu.entities import spans
from toolspeak.nlu.slots import fill
from toolspeak.schema.infer import as_tool
from toolspeak.types import Request, Tool


class Weighing:
    """A model that writes what `writes` tells of a prompt, and finds a text as likely as `weighs` tells."""

    name = "weighing"
    capabilities: frozenset[Capability] = frozenset({"score"})

    def __init__(self, writes: Callable[[str], str] = lambda _: "?", weighs: Callable[[str], float] = lambda _: 0.0):
        self.writes, self.weighs = writes, weighs

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        yield TextDelta(self.writes(request.prompt or ""))
        yield Finished()

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        return [self.weighs(text) for text in continuations]


def tool(*required: str, **properties: Any) -> Tool[..., Any]:
    return Tool("do", "Do it.", {"type": "object", "properties": properties, "required": list(required)})


def filled(tool: Tool[..., Any], text: str, model: Any = None) -> dict[str, Any]:
    arguments, _ = asyncio.run(drive.arun(fill(tool, text), model or Weighing()))
    return arguments


STRINGS = {"type": "array", "items": {"type": "string"}}


def test_a_series_is_copied_with_the_likeliest_first_and_last_item() -> None:
    likely = {'["eggs", ': -1.0, '"feta"]': -1.0}
    model = Weighing(weighs=lambda text: likely.get(text, -20.0))
    assert filled(tool("items", items=STRINGS), "Cook with eggs, spinach and feta tonight", model) == {
        "items": ["eggs", "spinach", "feta"]
    }


def test_a_list_without_a_series_is_one_piece() -> None:
    assert filled(tool("items", items=STRINGS), "Hey, buy dish soap", Weighing(lambda _: "dish soap")) == {
        "items": ["dish soap"]
    }


def test_a_list_of_numbers_takes_all_that_are_left() -> None:
    numbers = {"type": "array", "items": {"type": "number"}}
    assert filled(tool("n", n=numbers), "Add 3, 8.5 and twelve") == {"n": [3, 8.5, 12]}


def test_a_list_of_options_takes_those_named() -> None:
    days = {"type": "array", "items": {"enum": ["monday", "tuesday", "friday"]}}
    assert filled(tool("d", d=days), "Water on Monday and Friday") == {"d": ["monday", "friday"]}


def test_numbers_written_in_words_are_numbers() -> None:
    assert filled(tool("days", days={"type": "integer"}), "for twenty-five days") == {"days": 25}


def test_a_text_is_given_to_the_optional_argument_that_it_fits() -> None:
    find = tool(title={"type": "string"}, author={"type": "string"})
    model = Weighing(lambda _: "Le Guin", lambda text: 0.0 if text.startswith("author") else -3.0)
    assert filled(find, "Books by Le Guin?", model) == {"author": "Le Guin"}


def test_a_number_that_the_request_does_not_have_is_not_guessed() -> None:
    assert filled(tool("days", days={"type": "integer"}), "for some days", Weighing(lambda _: "5")) == {}


def test_a_quoted_string_keeps_its_last_mark() -> None:
    model = Weighing(lambda _: "Just landed!")
    assert filled(tool("text", text={"type": "string"}), 'Post "Just landed!" now', model) == {"text": "Just landed!"}


def test_an_option_is_found_in_another_form_and_not_taken_twice() -> None:
    unit = {"enum": ["mile", "meter"]}
    model = Weighing(weighs=lambda text: 1.0 if "mile" in text else 0.0)
    assert filled(tool("a", "b", a=unit, b=unit), "How many miles are in 5000 meters?", model) == {
        "a": "mile",
        "b": "meter",
    }


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Invite Anna, Raj and Tom to the review.", ["Invite Anna", "Raj", "Tom to the review"]),
        ("Hey, put dish soap on the list", []),
        ("tag it with sun and sea", ["tag it with sun", "sea"]),
        ("Hi, please tag beach.jpg with sun and sea, thanks", ["please tag beach.jpg with sun", "sea"]),
        ("one thing", []),
        ("", []),
        (", and ,", []),
    ],
)
def test_series(text: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in spans.series(text)] == parts


@pytest.mark.parametrize(
    ("text", "piece", "found"),
    [
        ("go running", "run", "running"),
        ("three miles", "mile", "miles"),
        ("a carpet", "cat", None),
        ("on", "off", None),
    ],
)
def test_other_forms_of_a_word(text: str, piece: str, found: str | None) -> None:
    place = spans.find_form(text, piece)
    assert (place and text[slice(*place)]) == found


@pytest.mark.parametrize(
    ("text", "described", "value"),
    [
        ("Unlock it", "True to lock, false to unlock.", False),
        ("Lock it", "True to lock, false to unlock.", True),
        ("Leave it", "True to lock, false to unlock.", None),
        ("Lock it", "Whether it is locked. Default: false.", None),
        ("Lock it", "", None),
    ],
)
def test_a_boolean_follows_the_words_of_its_description(text: str, described: str, value: bool | None) -> None:
    assert spans.side(text, described) is value


def test_an_optional_boolean_needs_evidence() -> None:
    sugar = tool(sugar={"type": "boolean"})
    model = Weighing(weighs=lambda text: 1.0 if text == "True" else 0.0)
    assert filled(sugar, "Tea, please", model) == {}
    assert filled(sugar, "Tea with sugar", model) == {"sugar": True}


class TestEmbedded:
    """The embedded model, on requests that differ in what is to be copied."""

    @pytest.fixture
    def model(self) -> Any:
        pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
        if not weights.present():
            pytest.skip("the embedded model was not fetched: make fetch")
        return Local()

    def test_a_series_of_names(self, model: Any) -> None:
        invite = tool("people", people={**STRINGS, "description": "Names of the people"})
        assert filled(invite, "Invite Anna, Raj and Tom, please.", model) == {"people": ["Anna", "Raj", "Tom"]}

    def test_numbers_in_words_beside_a_name(self, model: Any) -> None:
        rent = tool("city", "days", city={"type": "string", "description": "City"}, days={"type": "integer"})
        assert filled(rent, "Rent me a car in Phoenix for five days.", model) == {"city": "Phoenix", "days": 5}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Decimal, "Pay 12.50 today", 12.5),
        (Decimal, "Pay 12345678901234567.89 today", "12345678901234567.89"),
        (Decimal, "Pay 1,234,567,890.123456789 today", "1234567890.123456789"),
        (Decimal | None, "Pay 19.99 today", 19.99),
        (Annotated[Decimal, Field(ge=0, le=100)], "Pay 12.5 % of it", 0.125),
        (list[Decimal], "Pay 1.10, 2.20 and 3.35", [1.1, 2.2, 3.35]),
        (list[Decimal], "Pay 12345678901234567.89 and 2.5", ["12345678901234567.89", 2.5]),
        (list[Decimal], "Pay [12345678901234567.89, 2.5]", ["12345678901234567.89", 2.5]),
        (list[float], "Pay [12345678901234567.89, 2.5]", [1.2345678901234568e16, 2.5]),
        (Decimal, "Pay 1.00000000000000000001 thousand", "1000.00000000000000001000"),
        (float, "Pay 12345678901234567.89 today", 1.2345678901234568e16),
    ],
)
def test_a_decimal_is_a_number_of_the_request(kind: Any, text: str, value: Any) -> None:
    """Nothing is generated, so that no digit changes."""

    def pay(amount: Any) -> None: ...

    pay.__annotations__["amount"] = kind
    assert filled(as_tool(pay), text, Weighing(lambda _: "9")) == {"amount": value}


@pytest.mark.parametrize(
    ("text", "value"), [("Show order 48151", 48151), ("Show order AB-48151", "AB-48151"), ("Show order 0048", "0048")]
)
def test_a_number_or_a_text_is_copied(text: str, value: int | str) -> None:
    schema = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    model = Weighing(lambda _: text.split()[-1])
    assert filled(tool("order", order=schema), text, model) == {"order": value}
