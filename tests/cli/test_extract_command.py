"""`toolspeak extract`: a line of JSON for each line of text, and what cannot be extracted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from world import Cli

PERSON = """
import datetime
import pydantic

class Person(pydantic.BaseModel):
    name: str
    age: int
    since: datetime.date | None = None

    @pydantic.field_validator("age")
    @classmethod
    def adult(cls, age):
        if age < 18:
            raise ValueError("only adults are registered")
        return age
"""
ALICE, BOB = '{"name": "Alice", "age": 31, "since": "2026-11-23"}', 'Here: {"name": "Bob", "age": 27, "mood": "fine"}'
Script = Callable[..., str]


@pytest.fixture(autouse=True)
def person(place: Path) -> Path:
    (place / "person.py").write_text(PERSON, "utf-8")
    return place


def test_a_value_for_each_line(cli: Cli, script: Script) -> None:
    done = cli(
        "extract", "--schema", "person.py:Person", "--model", script(ALICE, BOB), stdin="Alice is 31\n\n Bob is 27 "
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"name": "Alice", "age": 31, "since": "2026-11-23"},
        {"name": "Bob", "age": 27, "since": None},
    ]


def test_a_line_without_a_value_is_null(cli: Cli, script: Script) -> None:
    young = ALICE.replace("31", "13")
    model = script(young, BOB)
    done = cli(
        "extract", "--schema", "person.py:Person", "--tries", "1", "--model", model, stdin="Alice is 13\nBob is 27\n"
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "null"
    assert json.loads(done.stdout.splitlines()[1])["name"] == "Bob"
    assert "error: line 1: " in done.stderr
    assert "only adults are registered" in done.stderr


def test_a_json_schema_and_a_whole_text(cli: Cli, script: Script, place: Path) -> None:
    (place / "cities.json").write_text('{"type": "array", "items": {"type": "string"}}')
    (place / "mail.txt").write_text("From Oslo.\nTo Rome.\n")
    done = cli("extract", "mail.txt", "--whole", "--schema", "cities.json", "--model", script('["Oslo", "Rome"]'))
    assert (done.returncode, done.stdout) == (0, '["Oslo", "Rome"]\n')


@pytest.mark.parametrize(
    ("args", "stdin", "why"),
    [
        ([], "x", "no schema: expected --schema"),
        (["--schema", "person.py:Nobody"], "x", "has no Nobody"),
        (["--schema", "missing.json"], "x", "missing.json cannot be read"),
        (["--schema", "list.json"], "x", "expected a JSON Schema, which is an object, received list"),
        (["--schema", "wrong.json"], "x", "wrong.json: the schema is invalid, at /type"),
        (["--schema", "person.py:Person"], "\n", "the input is empty: expected a text"),
        (["--schema", "person.py:Person", "missing.txt"], "", "missing.txt cannot be read"),
    ],
)
def test_what_cannot_be(cli: Cli, place: Path, args: list[str], stdin: str, why: str) -> None:
    (place / "list.json").write_text("[]")
    (place / "wrong.json").write_text('{"type": "thing"}')
    done = cli("extract", *args, "--model", "scripted:x", stdin=stdin)
    assert done.returncode == 2
    assert why in done.stderr


def test_a_type_that_is_not_there_is_answered_with_those_that_are(cli: Cli) -> None:
    kinds = "Mood = Literal['good', 'bad']\n\ndef greet(): ...\n"
    Path("kinds.py").write_text("from typing import Any, Literal\n" + PERSON + kinds, "utf-8")
    done = cli("extract", "--schema", "kinds.py:Persn", "--model", "scripted:x", stdin="Alice")
    assert done.returncode != 0
    assert "kinds.py has no Persn. Did you mean Person? It offers: Person, Mood" in done.stderr
    assert "greet" not in done.stderr
    Path("tools.py").write_text("def greet(): ...\n", "utf-8")
    done = cli("extract", "--schema", "tools.py:Person", "--model", "scripted:x", stdin="Alice")
    assert "tools.py has no Person. It offers: no types" in done.stderr


def test_v_says_why_the_model_was_asked_again(cli: Cli, script: Script) -> None:
    model = script('{"name": "Alice", "age": "many"}', ALICE)
    done = cli("extract", "--schema", "person.py:Person", "--model", model, "-v", stdin="Alice is 31")
    assert done.returncode == 0
    assert "re-asked: the argument 'age' must be an integer; got \"many\"" in done.stderr
