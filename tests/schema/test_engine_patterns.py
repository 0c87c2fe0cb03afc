"""Patterns are rewritten for the engine, and mean the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolspeak as ts
from toolspeak.schema.engine_patterns import for_engine
from toolspeak.schema.weight import weight

TEXTS = ["", "a", "ab" * 30, "ab" * 25, "<b>" + "x" * 60, "a\n" * 30, "äö" * 40, "😀" * 50, "x" * 5001]
COUNTED = [r"^.{2,60}$", r"^[^<>]{2,50}$", r"^[^<>]{50,}$", r"^\p{L}{50}$", r"^[\s\S]{1,5000}$", r"^[]a]{0,99}$", r"^\w{1,99}$", r"^[\p{L}' .-]{1,100}$"]  # fmt: skip


def tool(**schema: Any) -> dict[str, Any]:
    return {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string", **schema}}}}


def valid(text: str, **schema: Any) -> bool:
    box = ts.Toolbox([tool(**schema)])
    return box.validate(ts.ToolCall("c", "f", {"a": text}, json.dumps({"a": text}))).error is None


@pytest.mark.parametrize("pattern", COUNTED)
def test_a_count_means_the_same_as_a_length(pattern: str) -> None:
    """A group is not rewritten."""
    grouped = f"^(?:{pattern[1:-1]})$"
    for text in TEXTS:
        assert valid(text, pattern=pattern) == valid(text, pattern=grouped), text
        for limits in ({"minLength": 3}, {"maxLength": 55}, {"minLength": 55, "maxLength": 70}):
            assert valid(text, pattern=pattern, **limits) == valid(text, pattern=grouped, **limits), text
    assert weight(for_engine({"pattern": pattern}))[1] < 300_000


@pytest.mark.parametrize(
    "pattern", [r"^.{0,10000}$", r"^[\s\S]{1,1000000}$", r"^[^\u0000]{0,10000}$", r"^[\p{L}\p{N} ]{1,255}$"]
)
def test_round_numbers_of_characters_are_taken_in_a_hundred_tools(pattern: str) -> None:
    box = ts.Toolbox([{**tool(pattern=pattern), "name": f"f{at}"} for at in range(100)])
    assert box.validate(ts.ToolCall("c", "f99", {"a": "abc"}, '{"a": "abc"}')).error is None


def test_a_character_in_two_escapes() -> None:
    pattern = r"^[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]*$"
    assert valid("a 😀 \t", pattern=pattern)
    assert not valid("a\x01", pattern=pattern)
    assert valid("😀", pattern=r"^\uD83D\uDE00$")


def test_the_reason_is_named() -> None:
    with pytest.raises(ts.InvalidTool, match="its patterns take about"):
        ts.Toolbox([tool(pattern="(?:^.{1,1000000}$)")])
    with pytest.raises(ts.InvalidTool, match="has the flag x"):
        ts.Toolbox([tool(pattern="(?x)^a b$")])
    with pytest.raises(ts.InvalidTool, match="minLength"):
        ts.Toolbox([tool(pattern="^.{1,100}$", minLength="3")])


COUNTS = {f"p{at}": {"pattern": f"^.{{1,{9000 - at}}}$"} for at in range(200)}


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {part["pattern"]: {} for part in COUNTS.values()}},
        {"properties": {name: {"$ref": f"#/x-data/{name}"} for name in COUNTS}, "x-data": COUNTS},
        {"properties": {name: {"$ref": f"#/default/{name}"} for name in COUNTS}, "default": COUNTS},
    ],
)
def test_what_the_engine_compiles_whole_counts_whole(schema: dict[str, Any]) -> None:
    with pytest.raises(ts.InvalidTool, match="its patterns take about"):
        ts.Toolbox([{"name": "f", "parameters": {"type": "object", **schema}}])


def test_data_is_no_schema() -> None:
    pattern = "^.{1,100}$"
    for schema, value in (
        ({"const": {"pattern": pattern}}, {"pattern": pattern}),
        ({"enum": [{"pattern": pattern}]}, {"pattern": pattern}),
        ({"properties": {"pattern": {"const": pattern}}}, {"pattern": pattern}),
        ({"const": {"properties": {"a": {"pattern": pattern}}}}, {"properties": {"a": {"pattern": pattern}}}),
    ):
        tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}}
        call = ts.ToolCall("c", "f", {"a": value}, json.dumps({"a": value}))
        assert ts.Toolbox([tool]).validate(call).error is None
