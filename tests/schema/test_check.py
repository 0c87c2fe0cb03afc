"""What is wrong with a call's arguments: all at once, as data, in sentences."""

from __future__ import annotations

import dataclasses
import difflib
import gc
import json
import weakref
from types import SimpleNamespace
from typing import Any, Literal

import pytest

import toolspeak as ts
from toolspeak.errors import LONGEST, InvalidTool
from toolspeak.plan.calls import checked
from toolspeak.schema import check as checking, coerce as coercing
from toolspeak.schema.check import check
from toolspeak.schema.infer import as_tool
from toolspeak.schema.phrases import describe, short
from toolspeak.schema.suggestions import near
from toolspeak.schema.validators import judge
from toolspeak.types import Problem, Tool, ToolCall


def tool_of(schema: Any, *, required: bool = True) -> Tool[..., Any]:
    parameters = {"type": "object", "properties": {"x": schema}}
    return as_tool({"name": "t", "parameters": {**parameters, **({"required": ["x"]} if required else {})}})


def weather(city: str, days: int = 1, unit: Literal["celsius", "fahrenheit"] = "celsius") -> None: ...


def test_all_problems_at_once():
    assert check(as_tool(weather), {"cty": "X", "days": "soon", "unit": 5}) == [
        Problem("/days", "integer", '"soon"', "the argument 'days' must be an integer; got \"soon\""),
        Problem(
            "/unit",
            'one of "celsius", "fahrenheit"',
            "5",
            'the argument \'unit\' must be one of "celsius", "fahrenheit"; got 5',
        ),
        Problem(
            "/cty",
            "only city, days, unit",
            '"X"',
            "unknown argument: \"cty\" (the arguments are: city, days, unit; did you mean 'city'?)",
        ),
        Problem("/city", "string", "nothing", "the required argument 'city' is missing (a string)"),
    ]


def test_valid_arguments_have_none():
    assert check(as_tool(weather), {"city": "Xiamen", "days": 2}) == []


@pytest.mark.parametrize(
    ("schema", "value", "path", "expected"),
    [
        ({"type": "integer"}, 1.5, "/x", "integer"),
        ({"type": "integer"}, True, "/x", "integer"),
        ({"type": "number"}, "1", "/x", "number"),
        ({"type": ["string", "null"]}, 1, "/x", "null or string"),
        ({"const": "a"}, "b", "/x", '"a"'),
        ({"type": "integer", "minimum": 3}, 2, "/x", "at least 3"),
        ({"type": "integer", "maximum": 3}, 4, "/x", "at most 3"),
        ({"type": "integer", "exclusiveMinimum": 3}, 3, "/x", "greater than 3"),
        ({"type": "integer", "exclusiveMaximum": 3}, 3, "/x", "less than 3"),
        ({"type": "integer", "multipleOf": 2}, 3, "/x", "a multiple of 2"),
        ({"type": "string", "minLength": 2}, "a", "/x", "at least 2 characters long"),
        ({"type": "string", "maxLength": 2}, "abc", "/x", "at most 2 characters long"),
        ({"type": "string", "pattern": "^a+$"}, "b", "/x", "a string that matches ^a+$"),
        ({"type": "string", "format": "date"}, "31.1.2026", "/x", "date string such as 2026-01-31"),
        ({"type": "string", "format": "email"}, "nobody", "/x", "email string such as name@example.org"),
        ({"type": "array", "maxItems": 1}, [1, 2], "/x", "a list of at most 1 item"),
        ({"type": "array", "uniqueItems": True}, [1, 1], "/x", "a list without repetitions"),
        ({"type": "array", "items": {"type": "integer"}}, [1, "2"], "/x/1", "integer"),
        ({"type": "array", "prefixItems": [{}], "items": False}, [1, 2], "/x/1", "left out"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "a", "/x", "integer or null"),
        ({"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]}, 2, "/x", "at least 3"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, 4, "/x", "only one of the alternatives, not 2 at once"),
        ({"not": {"type": "null"}}, None, "/x", "anything but null"),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": "b"}, "/x/a", "integer"),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, {}, "/x/a", "any JSON value"),
        ({"type": "object", "propertyNames": {"maxLength": 1}}, {"ab": 1}, "/x", None),
        ({"type": "array", "contains": {"const": 3}}, [1], "/x", None),
        ({"type": "object", "dependentRequired": {"a": ["b"]}}, {"a": 1}, "/x/b", None),
    ],
)
def test_every_constraint_has_its_words(schema: Any, value: Any, path: str, expected: str | None):
    (problem,) = check(tool_of(schema), {"x": value})
    assert problem.path == path
    assert expected is None or problem.expected == expected
    assert problem.message


def test_alternatives_that_are_objects():
    schema = {
        "anyOf": [
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "required": ["a"],
                "additionalProperties": False,
            },
            {"type": "null"},
        ]
    }
    assert [p.path for p in check(tool_of(schema), {"x": {"b": 1}})] == ["/x/b", "/x/a"]


def test_arguments_nobody_listed():
    listed = as_tool({"name": "t", "parameters": {"type": "object", "properties": {"x": {}}}})
    assert "additionalProperties" not in listed.parameters
    assert [p.path for p in check(listed, {"y": 1})] == ["/y"]
    opened = as_tool({"name": "t", "parameters": {"properties": {"x": {}}, "additionalProperties": True}})
    assert check(opened, {"y": 1}) == []
    nothing = as_tool({"name": "t"})
    (problem,) = check(nothing, {"y": 1})
    assert problem == Problem("/y", "no arguments", "1", 'unknown argument: "y" (there are none)')


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have(value: float):
    for schema in ({"type": "number"}, {}, {"type": "array"}):
        inside: Any = [value] if schema.get("type") == "array" else value
        problems = check(tool_of(schema), {"x": inside})
        assert any("finite" in p.expected for p in problems)


def test_values_that_are_no_json():
    for value in (object(), {1: 2}, b"x"):
        (problem,) = check(tool_of({}), {"x": value})
        assert "not JSON" in problem.message
    deep: Any = 1
    for _ in range(3000):
        deep = [deep]
    check(tool_of({}), {"x": deep})


def test_what_is_shown_is_bounded():
    (problem,) = check(tool_of({"type": "integer"}), {"x": "a" * 10_000_000})
    assert len(problem.received) <= 80
    assert len(problem.message) < 200
    assert len(check(tool_of({}), {f"y{i}": 1 for i in range(1000)})) == 50
    many = check(tool_of({"enum": [f"value {i}" for i in range(500)]}), {"x": 1})
    assert "500 in all" in many[0].expected


def test_hostile_names_and_many_errors_stay_small():
    listed = as_tool(
        {"name": "t", "parameters": {"properties": {"x": {"type": "array", "items": {"type": "integer"}}}}}
    )
    (problem,) = check(listed, {"y" * 1_000_000: 1})
    assert len(problem.message) < 300
    assert len(check(listed, {"x": ["a"] * 1_000})) == 50


def test_describe_and_short():
    assert describe({"type": "array", "items": {"enum": ["a", 1]}}) == 'array of one of "a", 1'
    assert describe({"anyOf": [{"type": "integer"}, {"type": "null"}]}) == "integer or null"
    assert describe(True) == "any JSON value"
    assert short({"a": object()}) == "a dict"
    assert short("é") == '"é"'


def test_near():
    names = ["get_weather", "calculator", "send_mail"]
    assert near("getWeather", names) == ("get_weather",)
    assert near("weather", names) == ("get_weather",)
    assert near("calc", names) == ("calculator",)
    assert near("xyz", names) == ()
    assert near("", names) == ()
    assert near("a" * 100_000, names) == ()


class TestAlternativesWithATag:
    """Objects told apart by the value of one field."""

    SCHEMA: Any = {  # noqa: RUF012
        "oneOf": [
            {
                "type": "object",
                "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
                "required": ["kind"],
                "additionalProperties": False,
            },
            {"$ref": "#/$defs/dog"},
        ]
    }
    DOG: Any = {  # noqa: RUF012
        "type": "object",
        "properties": {"kind": {"const": "dog"}, "good": {"type": "boolean"}},
        "required": ["kind", "good"],
        "additionalProperties": False,
    }

    @pytest.mark.parametrize(
        ("value", "path", "expected"),
        [
            ({"kind": "dog", "good": "yes"}, "/x/good", "boolean"),
            ({"kind": "dog"}, "/x/good", "boolean"),
            ({"kind": "fish"}, "/x/kind", '"cat" or "dog"'),
            ({"kind": "cat", "live": 3}, "/x/live", "only kind, lives, good"),
            (5, "/x", "object"),
        ],
    )
    def test_the_one_that_was_meant_is_explained(self, value: Any, path: str, expected: str):
        made = as_tool({"name": "t", "parameters": {"properties": {"x": self.SCHEMA}, "$defs": {"dog": self.DOG}}})
        (problem,) = check(made, {"x": value})
        assert (problem.path, problem.expected) == (path, expected)


class TestArgumentsThatAComposedSchemaNeverLists:
    """A schema is closed wherever its lists of properties stand, not only where they stand at its top."""

    PATH: Any = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}  # noqa: RUF012
    COMPOSED: Any = {  # noqa: RUF012
        "anyOf": {"anyOf": [PATH, {"properties": {"id": {"type": "integer"}}, "required": ["id"]}]},
        "oneOf": {
            "type": "object",
            "properties": {"path": {}},
            "oneOf": [{"required": ["path"]}, {"maxProperties": 0}],
        },
        "allOf": {"allOf": [PATH]},
        "$ref": {"$ref": "#/$defs/Path", "$defs": {"Path": PATH}},
        "if": {**PATH, "if": {"required": ["depth"]}, "then": {"properties": {"depth": {"type": "integer"}}}},
        "patternProperties": {**PATH, "patternProperties": {"^x-": {"type": "string"}}},
        "dependentSchemas": {**PATH, "dependentSchemas": {"path": {"properties": {"depth": {"type": "integer"}}}}},
    }

    @pytest.mark.parametrize("word", COMPOSED)
    def test_they_are_told_and_never_reach_the_function(self, word: str):
        ran: list[dict[str, Any]] = []
        tool = as_tool({"name": "delete", "parameters": self.COMPOSED[word]})
        tool = dataclasses.replace(tool, function=lambda **given: ran.append(given))
        box = ts.Toolbox(tool)
        listed: dict[str, Any] = {"path": "/data"}
        assert check(tool, listed) == []
        (problem,) = check(tool, {**listed, "dry_run": False})
        assert problem.path == "/dry_run"
        assert 'unknown argument: "dry_run" (the arguments are: path' in problem.message
        with pytest.raises(ts.InvalidCall):
            box.call({"name": "delete", "arguments": {**listed, "dry_run": False}})
        assert ran == []

    def test_what_any_of_its_parts_lists_is_allowed(self):
        for word, more in (("if", "depth"), ("dependentSchemas", "depth"), ("patternProperties", "x-note")):
            tool = as_tool({"name": "t", "parameters": self.COMPOSED[word]})
            value: Any = "a" if more == "x-note" else 1
            assert check(tool, {"path": "/data", more: value}) == []
        both = as_tool({"name": "t", "parameters": self.COMPOSED["anyOf"]})
        assert check(both, {"path": "/data", "id": 1}) == []

    @pytest.mark.parametrize("word", ["additionalProperties", "unevaluatedProperties"])
    def test_one_that_says_that_it_is_open_stays_open(self, word: str):
        for place in ({word: True}, {}):
            part: Any = {**self.PATH, **({} if place else {word: True})}
            tool = as_tool({"name": "t", "parameters": {"anyOf": [part], **place}})
            assert check(tool, {"path": "/data", "more": 1}) == []

    def test_a_name_that_must_be_there_counts_as_listed(self):
        tool = as_tool({"name": "t", "parameters": {"allOf": [self.PATH], "required": ["also"]}})
        assert check(tool, {"path": "/data", "also": 1}) == []

    def test_what_is_wrong_is_told_and_not_that_the_listed_are_unknown(self):
        tool = as_tool({"name": "t", "parameters": self.COMPOSED["anyOf"]})
        assert [p.path for p in check(tool, {"path": 3})] == [""]
        assert [p.path for p in check(tool, {"path": 3, "more": 1})] == ["", "/more"]

    def test_a_name_of_another_alternative_is_told_as_that(self):
        shapes = [
            {"properties": {"kind": {"const": "file"}, "path": {"type": "string"}}, "required": ["kind", "path"]},
            {"properties": {"kind": {"const": "row"}, "id": {"type": "integer"}}, "required": ["kind", "id"]},
        ]
        tool = as_tool({"name": "t", "parameters": {"type": "object", "oneOf": shapes}})
        (problem,) = check(tool, {"kind": "file", "path": "/data", "id": 3})
        assert problem.path == "/id"
        assert "belongs to an alternative" in problem.message

    @pytest.mark.parametrize("own", [True, False])
    def test_one_that_doubles_at_every_step_is_refused_before_it_is_compiled(self, own: bool):
        doubled: dict[str, Any] = {f"n{i}": {"anyOf": [{"$ref": f"#/$defs/n{i + 1}"}] * 2} for i in range(40)}
        schema = {"$ref": "#/$defs/n0", "$defs": {**doubled, "n40": {"properties": {"x": {}}}}}
        if own:
            schema["unevaluatedProperties"] = False
        with pytest.raises(ts.InvalidTool, match=r"too much work, at /: it unites more than 5,000") as raised:
            as_tool({"name": "t", "parameters": schema})
        assert raised.value.tool == "t"
        schema["additionalProperties"] = True
        schema.pop("unevaluatedProperties", None)
        as_tool({"name": "t", "parameters": schema})


INTEGERS = {"type": "array", "items": {"type": "integer"}}
ROWS = {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}}
MANY = 50_000
CASES = [
    (INTEGERS, ["a"] * MANY, "/x/0", "integer"),
    (INTEGERS, [*range(MANY), "a", "b"], f"/x/{MANY}", "integer"),
    (ROWS, [*[{"id": 1}] * MANY, {"id": "a"}], f"/x/{MANY}/id", "integer"),
    ({"anyOf": [INTEGERS, ROWS]}, ["a"] * MANY, "/x", "integer or object"),
    ({"anyOf": [INTEGERS, {"type": "string"}]}, [*range(MANY), "a"], f"/x/{MANY}", "integer"),
    ({"type": "array", "maxItems": 9}, [1] * MANY, "/x", "at most 9 items"),
    ({"type": "array", "uniqueItems": True}, [*range(MANY), 7], "/x", "items that go together"),
    ({**INTEGERS, "minItems": 3}, [*range(MANY), "a"], "", "what the schema says"),
    ({"type": "string"}, [1] * MANY, "/x", "string"),
]


class TestManyArguments:
    """Past a number of values the first thing that is wrong is told, at the cost of a few looks at all of them."""

    @pytest.mark.parametrize(("schema", "value", "path", "wanted"), CASES)
    def test_the_first_problem_is_told_in_few_looks(
        self, schema: Any, value: Any, path: str, wanted: str, monkeypatch: pytest.MonkeyPatch
    ):
        tool = tool_of(schema)
        real, looks, about = checking.judge(tool.parameters), [0], [0]

        def is_valid(instance: Any) -> bool:
            looks[0] += 1
            return real.is_valid(instance)

        def iter_errors(instance: Any) -> Any:
            about[0] = len(json.dumps(instance))
            return real.iter_errors(instance)

        monkeypatch.setattr(checking, "judge", lambda *_: SimpleNamespace(is_valid=is_valid, iter_errors=iter_errors))
        (problem,) = check(tool, {"x": value})
        assert (problem.path, problem.expected) == (path, wanted)
        assert looks[0] < 60
        assert about[0] < 1_000

    def test_what_is_there_is_not_told_as_missing(self):
        wide = {"type": "object", "properties": {"a": {"type": "integer"}, "z": {}}, "required": ["a", "z"]}
        tool = as_tool({"name": "t", "parameters": {**wide, "additionalProperties": {"type": "integer"}}})
        names = {f"y{i}": 1 for i in range(5_000)}
        assert [p.path for p in check(tool, {**names, "bad": "x", "z": 1, "a": 1})] in (["/bad"], [""])
        assert [p.path for p in check(tool, {**names, "z": 1, "a": "x"})] == ["/a"]
        assert [p.path for p in check(tool_of({}), {**names, "x": 1})] == ["/y0"]
        assert [p.path for p in check(tool, {**names, "a": 1})] == ["/z"]


def test_of_many_values_only_those_are_written_that_are_told() -> None:
    written: list[int] = []

    class Many(list[Any]):
        def __iter__(self) -> Any:
            for one in super().__iter__():
                written.append(1)
                yield one

    assert short(Many([7] * 100_000)) == "[7" + ", 7" * 25 + ", …"
    assert len(written) < 100
    assert short({"a": [1, None], "é": 1.5}) == '{"a": [1, null], "é": 1.5}'
    assert short([object()]) == "a list"


def test_a_value_that_was_written_in_part_is_let_go_of() -> None:
    class Noted(list[Any]):
        pass

    value = Noted([7] * 1_000)
    known = weakref.ref(value)
    gc.disable()
    try:
        short(value)
        del value
        assert known() is None
    finally:
        gc.enable()


def test_no_message_is_as_long_as_what_is_wrong() -> None:
    name = "x" * 40_000
    with pytest.raises(InvalidTool) as raised:
        judge({"type": "object", "properties": {name: {"properties": {"a": [{}]}}}}, "t")
    assert len(str(raised.value)) <= LONGEST
    assert str(raised.value).startswith("the schema of the tool 't' is invalid, at /properties/xxx")
    assert str(raised.value).endswith("expected a boolean or an object, got [{}]")


def _tree(depth: int, **leaf: Any) -> dict[str, Any]:
    tree: dict[str, Any] = leaf or {"t": "b"}
    for level in range(depth):
        tree = {"t": "bc"[level % 2], "n": tree}
    return tree


def _repeats(**open_: Any) -> ts.Tool[..., Any]:
    """A tool whose schema refers to itself twice at each level."""
    nodes = {
        name: {"type": "object", "properties": {"n": {"$ref": "#/$defs/any"}, "t": {"const": name}}, **open_}
        for name in "bc"
    }
    both = {"oneOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/c"}]}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/any"}}, "$defs": {**nodes, "any": both}}
    return as_tool({"name": "f", "parameters": schema})


class TestReferencesThatMultiply:
    """A validator applies the schema again at each reference: forty levels of two took forever."""

    @pytest.mark.parametrize("leaf", [{}, {"t": "z"}])
    def test_arguments_that_would_never_be_checked_are_refused(self, leaf: dict[str, Any]) -> None:
        call = ts.ToolCall("c", "f", {"x": _tree(40, **leaf)}, json.dumps({"x": _tree(40, **leaf)}))
        _, problems = checked(call, [_repeats()])
        assert ["nest too deep" in problem.message for problem in problems] == [True]

    def test_what_takes_long_to_explain_is_only_said_to_be_wrong(self) -> None:
        assert "too many to say" in check(_repeats(), {"x": _tree(12, t="z")})[0].message
        assert check(_repeats(), {"x": _tree(12)}) == []
        assert "too many to say" not in check(_repeats(), {"x": _tree(2, t="z")})[0].message

    def test_a_list_of_filters_is_checked_as_ever(self) -> None:
        node = {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/n"}}]}
        tool = as_tool(
            {
                "name": "f",
                "parameters": {"type": "object", "properties": {"x": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}},
            }
        )
        assert check(tool, {"x": [[1, [2, [3]]]] * 400}) == []
        assert [problem.path for problem in check(tool, {"x": [[1], ["a"]]})] == ["/x/1/0"]


def test_many_unknown_names_cost_a_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    ratio = difflib.SequenceMatcher.ratio

    def counted(self: difflib.SequenceMatcher[str]) -> float:
        nonlocal compared
        compared += 1
        return ratio(self)

    monkeypatch.setattr(difflib.SequenceMatcher, "ratio", counted)
    tool = as_tool(
        {"name": "f", "parameters": {"type": "object", "properties": {f"parameter_{i}": {} for i in range(1000)}}}
    )
    problems = check(tool, {f"paramater_{i}": 1 for i in range(1000)})
    assert len(problems) == 50
    assert "Did you mean 'parameter_0'" in problems[0].message.replace("did", "Did")
    assert compared < 5_000
    assert sum(len(problem.message) for problem in problems) < 100_000


def test_valid_arguments_of_a_call_are_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are validated to see whether they must be coerced. What is coerced is validated again."""
    validated: list[Any] = []

    def counting(schema: Any, name: str = "") -> Any:
        def is_valid(arguments: Any) -> bool:
            validated.append(arguments)
            return judge(schema, name).is_valid(arguments)

        return SimpleNamespace(is_valid=is_valid)

    for module in (checking, coercing):
        monkeypatch.setattr(module, "judge", counting)
    tool = as_tool(weather)
    valid, text = {"city": "Xiamen", "days": 2}, {"city": "Xiamen", "days": "2"}
    assert checked(ToolCall("1", "weather", valid, json.dumps(valid)), [tool])[1] == []
    assert validated == [valid]
    assert checked(ToolCall("1", "weather", text, json.dumps(text)), [tool])[1] == []
    assert validated[1:] == [text, valid]


@pytest.mark.parametrize(
    ("options", "value", "wanted"),
    [
        ([{"type": "integer", "minimum": 5}, {"type": "null"}], "x", "integer (at least 5) or null"),
        (
            [{"type": "string", "pattern": "^z"}, {"type": "integer", "maximum": 9}],
            True,
            "string (that matches ^z) or integer (at most 9)",
        ),
        (
            [{"type": "string", "enum": ["low", "high"]}, {"type": "integer", "minimum": 1}],
            True,
            'one of "low", "high" or integer (at least 1)',
        ),
        (
            [{"type": "string", "enum": ["low", "high"]}, {"type": "string", "pattern": "^z"}, {"type": "null"}],
            "mid",
            'one of "low", "high" or a string that matches ^z',
        ),
        ([{"type": "array", "items": {"type": "string"}, "minItems": 2}, {"$ref": "#/$defs/n"}], "x", None),
    ],
)
@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
def test_alternatives_are_named_with_their_limits(
    word: str, options: list[Any], value: Any, wanted: str | None
) -> None:
    parameters = {
        "type": "object",
        "properties": {"x": {word: options}},
        "$defs": {"n": {"type": "integer", "minimum": 7}},
    }
    (problem,) = check(as_tool({"name": "t", "parameters": parameters}), {"x": value})
    assert problem.expected == (wanted or "array (of at least 2 items) or integer (at least 7)")


def test_a_type_and_a_missing_argument_are_named_with_their_limits() -> None:
    tool = tool_of({"type": "integer", "minimum": 1, "maximum": 9})
    assert [p.expected for p in check(tool, {"x": "soon"})] == ["integer (at least 1, at most 9)"]
    assert [p.expected for p in check(tool, {})] == ["integer (at least 1, at most 9)"]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a(?<=b+)c|d\\p{Foo}", "this part of it cannot be read: \\p{Foo}"),
        ("^(?:a|b(?:c|[z-a]+)*)d$", "this part of it cannot be read: [z-a]+"),
        ("(a)\\1\\p{Foo}", "this part of it cannot be read: \\p{Foo}"),
        ("(ab", "it opens 1 groups and closes 0"),
    ],
)
def test_the_error_about_a_pattern_names_its_part(pattern: str, why: str) -> None:
    with pytest.raises(InvalidTool, match="at /properties/x/pattern") as raised:
        check(tool_of({"type": "string", "pattern": pattern}), {"x": "a"})
    assert str(raised.value).endswith(f"; {why}")


def test_the_error_about_large_patterns_names_the_largest() -> None:
    properties = {"a": {"pattern": "^[a-z]$"}, "b/c": {"anyOf": [{"pattern": "^(?:[a-z]{2,900}){900}$"}]}}
    with pytest.raises(
        InvalidTool, match=r"the largest is at /properties/b~1c/anyOf/0/pattern, about 170\.1 MB"
    ) as raised:
        check(as_tool({"name": "t", "parameters": {"type": "object", "properties": properties}}), {})
    assert raised.value.path == "/properties/b~1c/anyOf/0/pattern"


@pytest.mark.parametrize("nested", [False, True])
def test_a_text_that_is_too_long_for_its_pattern_is_named_with_it(nested: bool) -> None:
    schema = {"type": "string", "pattern": "(a|b(?=c))+$"}
    text = "ab" * 200_000
    tool = tool_of({"type": "array", "items": schema} if nested else schema)
    (problem,) = check(tool, {"x": [text] if nested else text})
    size = "" if nested else "it has 400,000 characters, and "
    assert problem.path == "/x"
    assert problem.message == (
        f"the argument 'x' cannot be checked: {size}the pattern \"(a|b(?=c))+$\" looks around at each character."
        " Give a shorter text"
    )
