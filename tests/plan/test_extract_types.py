"""Types that cannot be extracted: what is none is refused and never run as Python code, and an error says what to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from replies import calls, native
from toolspeak.events import Finished, Noted
from toolspeak.nlu.scored import _too_nested
from toolspeak.types import Note, Problem

EXPECTED = "expected a type or a JSON Schema"
SWAPPED = "they may be swapped"


@dataclass
class Person:
    name: str


@dataclass
class Unreadable:
    order: "orders:Order"  # type: ignore  # noqa: F722


TEXTS = ["orders:Order", "Order", "int", "Alice is 31", "__import__('os').abort()", '{"type": "object"}', b"int"]
VALUES = [5, Person("Alice"), list["orders:Order"], list["Missing"], Unreadable]  # type: ignore  # noqa: F722, F821


@pytest.mark.parametrize("kind", [*TEXTS, *VALUES], ids=repr)
def test_what_is_no_type_is_refused(kind: Any, tmp_path: Path) -> None:
    model = ts.model("local")
    for attempt in (
        lambda: ts.extract("Alice is 31", kind, model=model),
        lambda: list(ts.stream_extract("Alice is 31", kind, model=model)),
        lambda: ts.run("Alice is 31", output=kind, model=model),
        lambda: ts.batch([{"text": "Alice is 31"}], tmp_path / "out.jsonl", verb="extract", kind=kind, model=model),
    ):
        with pytest.raises(ts.UsageError, match=EXPECTED) as error:
            attempt()
        assert SWAPPED not in str(error.value)


@pytest.mark.parametrize("first", [Person, {"type": "object", "properties": {"name": {"type": "string"}}}])
@pytest.mark.parametrize("second", ["Alice is 31", [{"role": "user", "content": "Alice is 31"}]])
def test_swapped_arguments_are_named_as_such(first: Any, second: Any) -> None:
    with pytest.raises(ts.UsageError, match=SWAPPED):
        ts.extract(first, second, model="local")
    with pytest.raises(ts.UsageError, match=SWAPPED):
        list(ts.stream_extract(first, second, model="local"))


def test_a_tool_whose_record_has_an_unreadable_field() -> None:
    def place(order: Unreadable) -> str:
        return order.order

    place.__annotations__["order"] = Unreadable
    with pytest.raises(ts.InvalidTool, match="has a type that cannot be read"):
        ts.Toolbox(place)


@pytest.mark.parametrize("text", [b"Hi", bytearray(b"Hi"), memoryview(b"Hi")])
def test_bytes_are_no_question(text: Any) -> None:
    for attempt in (
        lambda: ts.extract(text, Person, model="local"),
        lambda: ts.run(text, model="local"),
        lambda: ts.decide(text, tools=[], model="local"),
        lambda: ts.generate("local", text),
        lambda: ts.explain(text, model="local"),
    ):
        with pytest.raises(ts.UsageError, match="decode them first"):
            attempt()


# ------------------------------------------------------------------ types that a scored model cannot fill

MISSING = Note("unfilled-objects", "a model seldom fills lists of objects; use another one")


@dataclass
class Item:
    name: str
    count: int


@dataclass
class Crowd:
    people: list[Person]


def test_the_error_says_what_to_do_about_lists_of_objects() -> None:
    reply = [*calls(("record_crowd", {}))[:-1], Noted(MISSING), Finished("tool_calls")]
    with pytest.raises(
        ts.GenerationError, match=r"\(an array of object\)\. A model seldom fills lists of objects; use"
    ):
        ts.extract("Nobody", Crowd, model=native(reply), tries=1)


@pytest.mark.costly
def test_the_embedded_model_says_that_it_seldom_fills_lists_of_objects() -> None:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    with pytest.raises(ts.GenerationError, match=r"seldom fills .* lists of objects, and is not asked again") as error:
        ts.extract("Pens.", list[Item], model="local")
    assert len(error.value.attempts) == 1


@pytest.mark.parametrize(
    ("expected", "nested"),
    [("array of object", True), ("object or null", True), ("string", False), ('one of "object"', False)],
)
def test_only_missing_objects_are_noted(expected: str, nested: bool) -> None:
    assert bool(_too_nested([Problem("/x", expected, "nothing", "")])) == nested
