"""Schemas as people write them, and those that mean nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from toolspeak.errors import InvalidTool
from toolspeak.schema.check import check
from toolspeak.schema.infer import as_tool
from toolspeak.schema.repair_schema import repair
from toolspeak.types import Tool


def one(schema: Any) -> Any:
    """What becomes of one property's schema."""
    return repair({"type": "object", "properties": {"x": schema}})["properties"]["x"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("int", "integer"),
        ("INTEGER", "integer"),
        ("long", "integer"),
        ("float", "number"),
        ("double", "number"),
        ("str", "string"),
        ("STRING", "string"),
        ("bool", "boolean"),
        ("dict", "object"),
        ("list", "array"),
        ("tuple", "array"),
        ("None", "null"),
    ],
)
def test_names_of_types(written: str, meant: str):
    assert one({"type": written, "description": "d"}) == {"type": meant, "description": "d"}
    assert one({"type": [written, "null"]}) == {"type": [meant, "null"]}
    assert one({"type": "array", "items": {"type": written}}) == {"type": "array", "items": {"type": meant}}
    assert one(written) == {"type": meant}


def test_any_is_no_type():
    assert one({"type": "any", "description": "d"}) == {"description": "d"}
    assert one("any") == {}


def test_the_third_document():
    made = as_tool(
        {
            "name": "calculator",
            "description": "计算器",
            "parameters": {
                "type": "int",
                "properties": {
                    "a": {"type": "int", "description": "the first number"},
                    "b": {"type": "int", "description": "the second number"},
                },
                "required": ["a", "b"],
            },
        }
    )
    assert made.parameters["type"] == "object"
    assert made.parameters["properties"]["a"] == {"type": "integer", "description": "the first number"}
    assert check(made, {"a": 383, "b": 135721}) == []
    assert [p.path for p in check(made, {"a": 1.5, "b": True})] == ["/a", "/b"]


EMPTY = {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (None, EMPTY),
        ({}, EMPTY),
        ({"type": "object"}, EMPTY),
        ({"type": "object", "properties": None}, EMPTY),
        ({"type": "dict"}, EMPTY),
        ({"properties": {}, "required": None}, EMPTY),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, EMPTY),
        ({"city": {"type": "str"}}, {"type": "object", "properties": {"city": {"type": "string"}}}),
        (
            {"type": "object", "properties": {"a": {"type": "int", "required": True}, "b": {"required": False}}},
            {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]},
        ),
    ],
)
def test_parameters(written: Any, meant: Any):
    before = copy.deepcopy(written)
    assert repair(written) == meant
    assert written == before


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"enum": ["a"], "nullable": True}, {"enum": ["a", None]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 3}),
        ({"type": "integer", "minimum": 3, "exclusiveMinimum": False}, {"type": "integer", "minimum": 3}),
        (
            {"type": "array", "items": [{"type": "int"}, {"type": "str"}], "additionalItems": False},
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
        ),
        ({"type": "array", "items": "str"}, {"type": "array", "items": {"type": "string"}}),
        ({"properties": {"y": {"type": "int"}}}, {"type": "object", "properties": {"y": {"type": "integer"}}}),
        ({"anyOf": [{"type": "int"}, {"type": "none"}]}, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (
            {"type": "object", "additionalProperties": {"type": "float"}},
            {"type": "object", "additionalProperties": {"type": "number"}},
        ),
    ],
)
def test_one_property(written: Any, meant: Any):
    assert one(written) == meant


def test_data_is_not_taken_for_a_schema():
    schema = {
        "type": "object",
        "properties": {"type": {"type": "str", "default": {"type": "int"}, "examples": [{"$ref": "http://x"}]}},
    }
    assert repair(schema)["properties"]["type"] == {
        "type": "string",
        "default": {"type": "int"},
        "examples": [{"$ref": "http://x"}],
    }


def test_valid_schemas_stay_as_they_are():
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 1},
            "b": {"oneOf": [{"const": 1}, {"type": "string", "pattern": "^a"}]},
            "c": True,
        },
        "required": ["a"],
        "anyOf": [{"required": ["b"]}, {"required": ["c"]}],
        "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}, "title": "N"}},
        "additionalProperties": False,
    }
    assert repair(schema) == schema


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "banana"}, "/type"),
        ({"type": "string"}, "/type"),
        ({"type": "array", "items": {}}, "/type"),
        ([], ""),
        ("string", ""),
        ({"properties": []}, "/properties"),
        ({"properties": {"x": 5}}, "/properties/x"),
        ({"properties": {"x": None}}, "/properties/x"),
        ({"properties": {"x": {"type": "banana"}}}, "/properties/x/type"),
        ({"properties": {"x": {"type": 5}}}, "/properties/x/type"),
        ({"properties": {"x": {"type": ["string", "banana"]}}}, "/properties/x/type/1"),
        ({"properties": {"a/b": {"type": "array", "items": {"type": "nope"}}}}, "/properties/a~1b/items/type"),
        ({"properties": {"x": {"properties": {"y": {"type": "nope"}}}}}, "/properties/x/properties/y/type"),
        ({"properties": {"x": {"anyOf": [{}, {"type": "nope"}]}}}, "/properties/x/anyOf/1/type"),
        ({"properties": {"city": {}}, "required": ["cty"]}, "/required/0"),
        ({"required": ["city"]}, "/required/0"),
        ({"properties": {"x": {}}, "required": "x"}, "/required"),
        ({"properties": {"x": {"properties": {"y": {}}, "required": ["z"]}}}, "/properties/x/required/0"),
        ({"properties": {"x": {"enum": []}}}, "/properties/x/enum"),
        ({"properties": {"x": {"enum": "a"}}}, "/properties/x/enum"),
        ({"properties": {"x": {"$ref": "http://example.org/s.json"}}}, "/properties/x/$ref"),
        ({"properties": {"x": {"$ref": "other.json#/a"}}}, "/properties/x/$ref"),
        ({"properties": {"x": {"$ref": "#/$defs/nowhere"}}}, "/properties/x/$ref"),
        ({"properties": {"x": {"type": "string", "minLength": "3"}}}, "/properties/x/minLength"),
        ({"properties": {"x": {"type": "string", "pattern": "("}}}, "/properties/x/pattern"),
        ({"properties": {"x": {"anyOf": []}}}, "/properties/x/anyOf"),
    ],
)
def test_what_means_nothing_is_refused_with_its_path(schema: Any, path: str):
    with pytest.raises(InvalidTool) as caught:
        as_tool({"name": "broken", "parameters": schema})
    assert caught.value.path == path
    assert caught.value.tool == "broken"
    assert "broken" in str(caught.value)
    assert path in str(caught.value)


def test_a_near_name_is_shown():
    with pytest.raises(InvalidTool, match="Did you mean 'city'"):
        repair({"properties": {"city": {}}, "required": ["cty"]})
    with pytest.raises(InvalidTool, match="Did you mean 'string'"):
        repair({"properties": {"city": {"type": "strng"}}})


def test_a_schema_made_by_hand_is_judged_when_it_is_offered():
    with pytest.raises(InvalidTool):
        as_tool(Tool("x", "", {"type": "banana"}))
    with pytest.raises(InvalidTool, match="not JSON"):
        as_tool(Tool("x", "", {"type": "object", "default": object()}))


def test_references_that_go_round_do_no_harm():
    made = as_tool(
        {"name": "x", "parameters": {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}}
    )
    check(made, {"a": 1})


def test_a_pattern_that_looks_around_works_within_bounds():
    made = as_tool({"name": "x", "parameters": {"properties": {"a": {"type": "string", "pattern": "^(?=.*b)a+b+$"}}}})
    assert check(made, {"a": "aab"}) == []
    assert check(made, {"a": "b"})
    evil = as_tool({"name": "x", "parameters": {"properties": {"a": {"type": "string", "pattern": "^(?=a)(a|aa)+$"}}}})
    assert check(evil, {"a": "a" * 5000 + "!"})


def test_a_very_deep_schema_does_no_harm():
    deep: dict[str, Any] = {"type": "int"}
    for _ in range(1000):
        deep = {"type": "array", "items": deep}
    with pytest.raises(InvalidTool):
        as_tool({"name": "x", "parameters": {"properties": {"a": deep}}})
