"""What of a schema each engine takes."""

import json
from typing import Any

import pytest

from toolspeak.api.openai_chat import write_request
from toolspeak.schema.portable import SUPPORTED, portable
from toolspeak.types import Request

llguidance = pytest.importorskip("llguidance")

HARD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^(?!x)[a-z]+$", "description": "A code."},
        "plain": {"type": "string", "pattern": "^[a-z]{2}$"},
        "when": {"type": "string", "format": "date"},
        "odd": {"type": "string", "format": "iri-reference"},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 2},
        "there": {"$ref": "#/$defs/nowhere"},
        "pattern": {"type": "integer", "multipleOf": 5, "minimum": 5},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        "not": {"not": {"type": "string"}},
    },
    "required": ["code"],
    "if": {"required": ["plain"]},
    "then": {"required": ["when"]},
}


@pytest.mark.parametrize(
    ("engine", "left_out"),
    [
        (
            "llama.cpp",
            {"code/pattern", "odd/format", "tags/uniqueItems", "there/$ref", "pattern/multipleOf", "not/not"},
        ),
        ("xgrammar", {"code/pattern", "odd/format", "tags/uniqueItems", "there/$ref", "pattern/multipleOf", "not/not"}),
        ("openai", {"code/pattern", "odd/format", "tags/uniqueItems", "there/$ref", "not/not"}),
    ],
)
def test_what_is_left_out(engine: str, left_out: set[str]) -> None:
    before = json.dumps(HARD)
    made, dropped = portable(HARD, engine)
    assert {place.removeprefix("#/properties/") for place in dropped} == {*left_out, "#/if", "#/then"}
    assert json.dumps(HARD) == before  # the caller's own is untouched
    assert set(made["properties"]) == set(HARD["properties"])  # a property called like a word is none
    assert made["properties"]["plain"]["pattern"] == "^[a-z]{2}$"
    assert made["properties"]["code"]["description"] == "A code."
    assert portable(made, engine) == (made, ())
    kept = made["properties"]["either"]
    assert ("anyOf" if engine == "openai" else "oneOf") in kept


@pytest.mark.parametrize("engine", sorted(SUPPORTED))
def test_what_is_left_can_be_compiled(engine: str) -> None:
    made = dict(portable(HARD, engine)[0])
    made["properties"] = {k: v for k, v in made["properties"].items() if k != "either" or engine == "openai"}
    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(made))
    assert not llguidance.LLMatcher(llguidance.LLTokenizer("byte"), grammar).is_error()


def test_a_schema_that_is_taken_is_the_very_same() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert all(portable(schema, engine)[0] is schema for engine in (*SUPPORTED, "", "unknown"))


def test_openai_is_held_where_that_can_be() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"oneOf": [{"type": "string"}, {"type": "null"}]}, "b": {"allOf": [{"type": "integer"}]}},
        "required": ["a", "b"],
    }
    made, dropped = portable(schema, "openai")
    assert dropped == ()
    said = [{"role": "user", "content": "x"}]
    body = write_request(Request(said, schema=made), "m")  # type: ignore[arg-type]
    assert body["response_format"]["json_schema"]["strict"] is True
    body = write_request(Request(said, schema={"anyOf": [made]}), "m")  # type: ignore[arg-type]
    assert body["response_format"]["json_schema"]["strict"] is False  # at its root OpenAI wants an object
