"""Questions made from schemas: their calls fit, they say what the calls hold, and all that cannot be is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from tuned_tools import TOOLS

import toolspeak as ts
from toolspeak import tuning
from toolspeak.evals.jsonl_cases import read
from toolspeak.tuning.argument_values import NoValue, value
from toolspeak.tuning.questions import NO_CALL, as_lines
from toolspeak.types import Tool


def tool(name: str, description: str, required: tuple[str, ...] = (), **properties: Any) -> Tool[..., Any]:
    return Tool(name, description, {"type": "object", "properties": properties, "required": list(required)})


def test_what_is_asked() -> None:
    made, without = tuning.questions(TOOLS, 16)
    assert without == []
    asked = {case["question"]: case["calls"] for case in made}
    assert asked["Get the current weather in Lisbon."] == [{"name": "weather", "arguments": {"city": "Lisbon"}}]
    assert asked["Could you get the current weather in Oslo, with unit fahrenheit?"] == [
        {"name": "weather", "arguments": {"city": "Oslo", "unit": "fahrenheit"}}
    ]
    assert asked["Add, please: a 30 and b 7.25."] == [{"name": "add", "arguments": {"a": 30, "b": 7.25}}]
    assert asked["Good morning!"] == []
    assert len(asked) == 16
    assert sum(not calls for calls in asked.values()) == 4
    assert tuning.questions(TOOLS, 16)[0] == made
    assert len(read(as_lines(made), Path("q.jsonl"), TOOLS)) == 16


def test_every_kind_of_argument() -> None:
    schema: dict[str, Any] = {
        "kind": {"enum": ["a", "b"]},
        "on": {"type": "boolean", "default": False},
        "rate": {"type": "number", "minimum": 0, "maximum": 1},
        "age": {"type": "integer", "minimum": 1000},
        "even": {"type": "integer", "multipleOf": 50},
        "day": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time"},
        "shown": {"type": "string", "examples": ["XK-1"], "pattern": "^XK"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
        "box": {"type": "object", "properties": {"width": {"type": "integer"}}, "required": ["width"]},
        "maybe": {"anyOf": [{"type": "null"}, {"type": "integer"}]},
        "either": {"type": ["null", "string"]},
        "short": {"type": "string", "maxLength": 5},
    }
    made, without = tuning.questions([tool("make", "Make a thing.", tuple(schema), **schema)], 40)
    assert without == []
    for case in made[:-10]:
        arguments = case["calls"][0]["arguments"]
        assert arguments.keys() == schema.keys()
        for name in ("age", "day", "at", "shown", "maybe", "short"):
            assert str(arguments[name]) in case["question"], (name, case)


def test_what_is_optional_is_given_by_turns_and_never_as_its_default() -> None:
    made, _ = tuning.questions(TOOLS, 40)
    units = [case["calls"][0]["arguments"].get("unit") for case in made if case["group"] == "weather"]
    assert set(units) == {None, "fahrenheit"}


def test_references_are_followed() -> None:
    parameters = {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/Place"}},
        "required": ["at"],
        "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
    }
    made, _ = tuning.questions([Tool("go", "Go to a place.", parameters)], 8)
    assert made[0]["calls"] == [{"name": "go", "arguments": {"at": {"city": "Lisbon"}}}]
    endless = {"$ref": "#/$defs/A"}
    with pytest.raises(NoValue):
        value("a", {"$ref": "#/$defs/B"}, 0, {"$defs": {"A": endless, "B": {"type": "array", "items": endless}}})


def test_descriptions_of_all_sorts() -> None:
    tools = [
        tool("send_mail", "Sends a message to a person. Slow.", ("person",), person={"type": "string"}),
        tool("news", "News about a topic", ("topic",), topic={"type": "string"}),
        tool("undescribed", "", (), x={"type": "integer"}),
        tool("long", "Find " + "very " * 60 + "much", ()),
    ]
    asked = [case["question"] for case in tuning.questions(tools, 48)[0]]
    assert "Send a message to Maria Lopez." in asked
    assert 'I need this: News about "solar power".' in asked
    assert "Use undescribed." in asked
    assert max(map(len, asked)) < 220


def test_tools_that_no_question_can_be_made_for() -> None:
    coded = tool("coded", "Look up a code.", ("code",), code={"type": "string", "pattern": "^[A-Z]{9}$"})
    any_object = tool("free", "Store a thing.", ("thing",), thing={"type": "object"})
    made, without = tuning.questions([*TOOLS, coded, any_object], 48)
    assert {case["group"] for case in made} == {"weather", "add", NO_CALL}
    assert without[0].startswith("coded: code: it has a pattern")
    assert without[1].startswith("free: thing: it is an object of anything")
    with pytest.raises(ts.UsageError, match=r"no question can be made.*--cases"):
        tuning.questions([coded], 48)
    with pytest.raises(ts.UsageError, match="no tools"):
        tuning.questions([], 48)


def test_small_talk_does_not_ask_for_a_tool() -> None:
    def said(*tools: Tool[..., Any]) -> list[str]:
        return [case["question"] for case in tuning.questions(tools)[0] if not case["calls"]]

    assert "Why is the sky blue?" in said(*TOOLS)
    assert "Why is the sky blue?" not in said(tool("search", "Search the web.", ("query",), query={"type": "string"}))
    assert "Write a haiku about autumn." not in said(tool("haiku", "Write a haiku.", ()))


def test_many_tools_have_one_question_each_as_far_as_they_reach() -> None:
    tools = [tool(f"tool{i}", f"Do thing {i}.", ("city",), city={"type": "string"}) for i in range(100)]
    made, _ = tuning.questions(tools, 48)
    assert len({case["group"] for case in made} - {NO_CALL}) == 36


def typed(kind: Literal["x", "y"], items: list[int] | None = None, more: dict[str, int] | None = None) -> None:
    """Check a kind."""


def test_from_python_functions() -> None:
    made, without = tuning.questions(list(ts.Toolbox(typed)), 16)
    assert without == []
    assert any("items" in case["calls"][0]["arguments"] for case in made if case["calls"])
