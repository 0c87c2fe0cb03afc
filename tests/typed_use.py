"""How type checkers see the public functions that return values of a type. `make lint` checks this file with pyright; no
test runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, assert_type

import pydantic

import toolspeak as ts


@dataclass
class Person:
    name: str


Size = Annotated[int, pydantic.Field(gt=0)]


def by_class(text: str) -> None:
    """A class gives a value of it."""
    assert_type(ts.extract(text, Person), Person)
    assert_type(ts.extract(text, list[int]), list[int])
    assert_type(ts.run(text, output=Person).output, Person)
    for value in ts.stream_extract(text, Person):
        assert_type(value, Person)


def by_form(text: str) -> tuple[Literal["a", "b"], int, int | None]:
    """Other types and schemas give Any, which fits a declared type."""
    assert_type(ts.extract(text, {"type": "integer"}), Any)
    assert_type(ts.run(text, output=Literal["a", "b"]).output, Any)
    for value in ts.stream_extract(text, Literal["a", "b"]):
        assert_type(value, Any)
    return ts.extract(text, Literal["a", "b"]), ts.extract(text, Size), ts.extract(text, int | None)


def by_default(text: str) -> ts.Reply:
    """A run without `output`; a typed reply is a reply."""
    assert_type(ts.run(text).output, Any)
    return ts.run(text, output=Person)


async def awaited(text: str) -> None:
    assert_type(await ts.aextract(text, Person), Person)
    assert_type(await ts.aextract(text, Literal["a", "b"]), Any)
    assert_type((await ts.arun(text, output=Person)).output, Person)
