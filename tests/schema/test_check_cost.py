"""What a check of arguments costs is counted before it begins: a validator is one step that nothing interrupts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolspeak.errors import InvalidTool
from toolspeak.schema import check as checks, evaluations, phrases, schema_names
from toolspeak.schema.check import check
from toolspeak.schema.coerce import coerce
from toolspeak.schema.evaluations import CHECKED, STEP, exceeds
from toolspeak.schema.infer import as_tool
from toolspeak.schema.phrases import NOTES
from toolspeak.schema.repair_schema import repair
from toolspeak.schema.shrink_invalid import LONG
from toolspeak.schema.suggestions import near
from toolspeak.schema.validators import judge
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


LOOKS = ["(?=a)(?:ab)*c$", "^.*(?=.*x)c", r"(a+)\1c", "^(?=a)b|(?:ab)*c$", "^(?=.*(?!.*b)c)c", "^(?:(?!.*c)a)*$"]


@pytest.mark.parametrize("pattern", LOOKS)
def test_a_pattern_that_looks_around_is_not_matched_with_a_long_text(pattern: str) -> None:
    """It may look at all of the text from each character: a text of five megabytes took more than seven minutes."""
    tool = _tool({"type": "string", "pattern": pattern})
    assert "cannot be checked" not in check(tool, {"x": "ab" * 500})[0].message
    (problem,) = check(tool, {"x": "ab" * 50_000})
    assert "cannot be checked" in problem.message


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        ("^(?!.*bad).*$", "x", "bad"),
        ("^(?=.*[0-9])[a-z0-9]+$", "a1", "-"),
        (r"^(?!.*[)(|])(?!.*\))(?=.*(?:b|c))[ab]*$", "ab", "-"),
    ],
)
def test_lookaheads_at_the_beginning_are_matched_with_a_long_text(pattern: str, right: str, wrong: str) -> None:
    """A text of 8,000 characters was refused, though these patterns take linear time."""
    tool = _tool({"type": "string", "pattern": pattern})
    assert check(tool, {"x": right * 50_000}) == []
    assert check(tool, {"x": right * 50 + wrong})[0].path == "/x"
    assert check(tool, {"x": right * 50_000 + wrong})[0].path == "/x"


def test_a_wrong_text_is_explained_though_its_pattern_looks_around() -> None:
    (problem,) = check(_tool({"type": "string", "pattern": "(?=.*[0-9])[a-z0-9]+$"}), {"x": "a" * 5_000})
    assert problem.path == "/x"
    assert problem.expected.startswith("a string that matches")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "enum": ["inside", "outside"]},
        {"anyOf": [{"type": "integer"}, {"enum": ["now", "later"]}]},
        {"type": "string", "pattern": "^(?=.*[0-9])[a-z0-9]+$"},
    ],
)
def test_the_place_of_a_wrong_text_is_told_though_it_is_too_long_to_explain(schema: dict[str, Any]) -> None:
    (problem,) = check(_tool(schema), {"x": "a" * 5_000_000})
    assert problem.path == "/x"
    assert "5,000,000 characters" in problem.message


def test_a_pattern_without_lookaround_is_matched_with_a_long_text() -> None:
    assert check(_tool({"type": "string", "pattern": "^(?:ab)*$"}), {"x": "ab" * 50_000}) == []


def test_parameters_may_have_the_names_of_keywords() -> None:
    words = ("format", "pattern", "patternProperties", "propertyNames", "enum", "const", "anyOf", "dependentRequired")
    tool = as_tool(
        {"name": "f", "parameters": {"type": "object", "properties": {word: {"type": "integer"} for word in words}}}
    )
    assert check(tool, dict.fromkeys(words, 1)) == []
    assert [problem.path for problem in check(tool, {"format": "x"})] == ["/format"]


@pytest.mark.parametrize(
    "items",
    [
        {"enum": [[i] * 1_000 for i in range(60)]},
        {"anyOf": [{"const": [i] * 1_000} for i in range(60)]},
        {"anyOf": [{"const": {str(j): i for j in range(1_000)}} for i in range(60)]},
    ],
    ids=["enum", "const", "objects"],
)
def test_values_that_are_compared_count_all_their_parts(items: Any) -> None:
    """700 lists of a thousand numbers beside 60 others stopped a process for 14 seconds."""
    tool = _tool({"type": "array", "items": items})
    assert check(tool, {"x": []}) == []
    (problem,) = check(tool, {"x": [[59] * 1_000] * 700})
    assert "cannot be checked" in problem.message


def test_names_are_counted_with_the_schema_of_names() -> None:
    tool = _tool({"type": "object", "propertyNames": {"anyOf": [{"const": f"p{i}"} for i in range(1_500)]}})
    assert check(tool, {"x": {"p1499": 1}}) == []
    (problem,) = check(tool, {"x": {f"n{i}": 1 for i in range(5_000)}})
    assert "cannot be checked" in problem.message


def test_a_long_text_that_no_alternative_takes_is_cut_before_errors_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """The validator copies the value into the error of each alternative: a text of five megabytes took 12 GB."""
    lengths, tool = [0], _tool({"anyOf": KINDS})

    class Noting:
        def __init__(self, judged: Any) -> None:
            self.is_valid, self._errors = judged.is_valid, judged.iter_errors

        def iter_errors(self, value: Any) -> Any:
            lengths.append(len(value["x"]))
            return self._errors(value)

    monkeypatch.setattr(checks, "judge", lambda *args: Noting(judge(*args)))
    (problem, *_) = check(tool, {"x": "y" * 1_000_000})
    assert problem.path == "/x"
    assert 0 < max(lengths) <= LONG


def test_a_call_has_a_limited_number_of_notes() -> None:
    """Of 150,000 notes each was hashed three times while other requests waited."""
    coerced, notes = coerce(_tool({"type": "array", "items": {"type": "number"}}), {"x": ["1.25"] * 5_000})
    assert coerced == {"x": [1.25] * 5_000}
    assert len(notes) == NOTES + 1
    assert notes[-1].detail == "4,000 more values like these"


@pytest.mark.parametrize(
    "value", ["y" * 10_000_000, ["y" * 5_000] * 2_000, {"y" * 5_000: 1}, [[["y"] * 1_000] * 1_000], [float("nan"), 1]]
)
def test_a_value_in_a_message_is_cut_before_it_is_written(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = json.dumps(value, ensure_ascii=False)
    written, encode = [0], phrases._encode

    def counted(part: Any) -> str:
        text = encode(part)
        written.append(len(text))
        return text

    monkeypatch.setattr(phrases, "_encode", counted)
    assert phrases.short(value) == phrases.beginning(whole, 80)
    assert max(written) < 80 * 80 * 2 + 1_000


def _twice(reference: dict[str, Any]) -> dict[str, Any]:
    """A schema that is applied twice at each level of a value."""
    one = {"type": "object", "properties": {"l": reference}, "required": ["l"]}
    return {"anyOf": [one, {**one, "description": "again"}, {"type": "null"}]}


REFERENCES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "pointer": ({"$ref": "#/$defs/t"}, {}),
    "percent": ({"$ref": "#/%24defs/%74"}, {}),
    "anchor": ({"$ref": "#t"}, {"$anchor": "t"}),
    "anchor in percent": ({"$ref": "#%74"}, {"$anchor": "t"}),
    "dynamic anchor": ({"$dynamicRef": "#t"}, {"$dynamicAnchor": "t"}),
    "dynamic pointer": ({"$dynamicRef": "#/$defs/t"}, {}),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_what_a_reference_leads_to_counts_however_it_is_written(name: str) -> None:
    """A validator that follows what the count does not needs twice the time for each level: 30 would take an hour."""
    reference, own = REFERENCES[name]
    defs = {"t": {**own, **_twice(reference)}}
    tool = Tool("f", "", repair({"type": "object", "properties": {"x": reference}, "$defs": defs}), len)
    value: Any = 5
    for _ in range(15):
        value = {"l": value}
    (problem,) = check(tool, {"x": value})
    assert "cannot be checked" in problem.message
    assert check(tool, {"x": {"l": {"l": None}}}) == []
    assert check(tool, {"x": {"l": {"l": 5}}})


def test_only_repair_knows_the_names_of_anchors() -> None:
    """So no schema has to be kept to find them again."""
    schema = {"type": "object", "properties": {"x": {"$ref": "#t"}}, "$defs": {"t": {"$anchor": "t", "type": "null"}}}
    assert repair(schema)["properties"] == {"x": {"$ref": "#/$defs/t"}}
    with pytest.raises(InvalidTool, match="Anchor 't' does not exist"):
        check(Tool("f", "", schema, len), {"x": None})
    with pytest.raises(InvalidTool, match="'#u' points to nothing"):
        repair({**schema, "properties": {"x": {"$ref": "#u"}}})


def test_no_id_and_no_older_version_inside_a_schema_changes_what_counts() -> None:
    """With an id of its own, `#/$defs/t` would mean the schema there. What is counted is what the validator applies."""
    inner = {"$id": "http://a/b", "$ref": "#/$defs/t", "$defs": {"t": _twice({"$ref": "#/$defs/t"})}}
    tool = Tool("f", "", {"type": "object", "properties": {"x": inner}, "$defs": {"t": {"type": "string"}}}, len)
    assert check(tool, {"x": "a"}) == []
    assert check(tool, {"x": {"l": None}})
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"l": _twice({"$ref": "#/$defs/t"})}}
    tool = Tool("f", "", {"type": "object", "properties": {"x": old}, "$defs": {"t": old}}, len)
    assert check(tool, {"x": {"l": 5}}) == []  # no keyword today, and nothing counts it


def test_dependencies_of_older_versions_are_read_as_those_of_today() -> None:
    tool = _tool({"type": "object", "dependencies": {"a": ["b"], "c": {"properties": {"d": {"type": "integer"}}}}})
    assert check(tool, {"x": {"a": 1, "b": 2, "c": 3, "d": 4}}) == []
    assert check(tool, {"x": {"a": 1}})
    assert check(tool, {"x": {"c": 1, "d": "e"}})
    assert {"dependentRequired", "dependentSchemas"} <= tool.parameters["properties"]["x"].keys()
