"""What a check of arguments costs is counted before it begins: a validator is one step that nothing interrupts."""

from __future__ import annotations

from typing import Any

import pytest

from toolspeak.schema import evaluations, schema_names
from toolspeak.schema.check import check
from toolspeak.schema.coerce import coerce
from toolspeak.schema.evaluations import CHECKED, STEP, exceeds
from toolspeak.schema.infer import as_tool
from toolspeak.schema.suggestions import near
from toolspeak.types import Tool

KINDS = [{"type": "object", "properties": {"k": {"const": i}}, "required": ["k"]} for i in range(1_000)]


def _tool(x: Any, **more: Any) -> Tool[..., Any]:
    return as_tool({"name": "f", "parameters": {"type": "object", "properties": {"x": x}, **more}})


@pytest.mark.parametrize(
    ("items", "item"),
    [
        ({"anyOf": KINDS}, {"k": 999}),
        ({"enum": [i + 0.5 for i in range(1_000)]}, 999.5),
        ({"enum": [{"k": i} for i in range(1_000)]}, {"k": 999}),
        ({"dependentRequired": {f"p{i}": ["k"] for i in range(1_000)}}, {"k": 999}),
        ({"dependentSchemas": {f"p{i}": {} for i in range(1_000)}}, {"k": 999}),
        ({"patternProperties": {f"^p{i}": {} for i in range(1_000)}}, {"k": 999}),
    ],
    ids=["anyOf", "numbers", "objects", "dependentRequired", "dependentSchemas", "patternProperties"],
)
def test_many_alternatives_for_many_items_are_not_tried(items: Any, item: Any) -> None:
    """Ten thousand items and three thousand alternatives, 300 KB together, stopped a process for 11 seconds to a minute."""
    tool = _tool({"type": "array", "items": items})
    assert check(tool, {"x": [item] * 50}) == []
    (problem,) = check(tool, {"x": [item] * 10_000})
    assert "cannot be checked" in problem.message
    assert coerce(tool, {"x": [item] * 10_000}) == ({"x": [item] * 10_000}, ())


@pytest.mark.parametrize(
    ("items", "item"),
    [
        ({"type": "integer"}, 1),
        ({"enum": [f"v{i}" for i in range(1_000)]}, "v999"),
        ({"type": "object", "properties": {f"p{i}": {} for i in range(1_000)}}, {"p1": 1, "p2": 2}),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "a"),
    ],
    ids=["type", "texts", "properties", "two alternatives"],
)
def test_many_items_are_checked_as_ever(items: Any, item: Any) -> None:
    assert check(_tool({"type": "array", "items": items}), {"x": [item] * 50_000}) == []


def test_the_count_is_short_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, of = [0], evaluations._Count.of

    def counted(self: Any, schema: Any, values: list[Any]) -> int:
        steps[0] += 1
        return of(self, schema, values)

    monkeypatch.setattr(evaluations._Count, "of", counted)
    node: dict[str, Any] = {"anyOf": [{"type": "array", "items": {"$ref": "#"}}] * 2}
    value: Any = 1
    for _ in range(40):
        value = [value]
    assert exceeds(node, value, CHECKED)
    wide = {"type": "array", "items": {"type": "object", "properties": {f"p{i}": {} for i in range(3_000)}}}
    assert not exceeds(wide, [{"a": 1}] * 10_000, CHECKED)
    assert steps[0] < CHECKED // STEP


def test_the_names_of_an_object_are_collected_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply of 10 bytes that broke 1,500 conditions of its schema stopped a gateway for 29 seconds."""
    collected, branches = [0], schema_names.branches

    def counted(*args: Any, **options: Any) -> Any:
        collected[0] += 1
        return branches(*args, **options)

    monkeypatch.setattr(schema_names, "branches", counted)
    wrong = [{"if": {"properties": {f"a{i}": {}}}, "then": {"required": [f"b{i}"]}} for i in range(800)]
    problems = check(_tool({}, allOf=wrong), {"x": 1})
    assert len(problems) == 50
    assert collected[0] == 1


def test_what_is_wrong_with_a_few_of_many_alternatives_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """500 items with 300 alternatives each: the validator built 150,000 errors before it returned the first."""
    tool = _tool({"type": "array", "items": {"anyOf": KINDS[:300]}})
    (problem,) = check(tool, {"x": [{"k": 1}] * 400 + [{"k": "q"}] * 100})
    assert problem.path == "/x/400/k"
    assert problem.expected.startswith("0 or 1 or 2")


def test_of_a_long_name_the_beginning_is_compared() -> None:
    """A call of a tool with a name of five megabytes stopped a gateway for 0.7 seconds."""
    letters = [0]

    class Name(str):
        def __getitem__(self, place: Any) -> str:
            part = super().__getitem__(place)
            letters[0] += len(part)
            return part

        def casefold(self) -> str:
            letters[0] += len(self)
            return super().casefold()

    assert near(Name("getWeather" + "s" * 1_000_000), ["get_weather", "get_time"]) == ("get_weather",)
    assert letters[0] < 1_000
