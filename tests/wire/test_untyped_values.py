"""Values that dialects write without their types, where the tool's schema allows a string and something else."""

from __future__ import annotations

from typing import Any

import pytest
from spoken import TALKING, typed_by_schema, wire
from wire_cases import merged, rules, stream, told

from toolspeak.dialects import get
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart
from toolspeak.types import Tool
from toolspeak.wire.decode import Decoder
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.reading.state import DEFERRED

UNTYPED = [d for d in TALKING if typed_by_schema(d)]
TEXT: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
WORDS = {"type": "array", "items": TEXT}
NUMBERS = {"type": "array", "items": INTEGER}


def read(d: Dialect, schema: dict[str, Any], arguments: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    tools: list[Tool[..., Any]] = [Tool("set", "", schema)]
    written = wire(d, ("set", arguments))
    events = stream(d, [written], tools)
    for size in (1, 2, 5, 13):
        pieces = [written[i : i + size] for i in range(0, len(written), size)]
        assert merged(stream(d, pieces, tools)) == merged(events)
    reply = collect(events)
    ((name, values, whole),) = told(reply)
    assert (name, whole) == ("set", True)
    return values, rules(reply)


ALONE: list[tuple[dict[str, Any], str, Any]] = [
    ({"anyOf": [WORDS, TEXT]}, "[1, 2]", "[1, 2]"),
    ({"anyOf": [TEXT, WORDS]}, '["1", "2"]', ["1", "2"]),
    ({"enum": ["5", 6]}, "5", "5"),
    ({"enum": ["5", 6]}, "6", 6),
    ({"enum": ["true", "false", None]}, "null", None),
    ({"enum": ["null", 1]}, "null", "null"),
    ({"type": ["string", "integer"], "maximum": 9}, "12", "12"),
    ({"type": ["string", "integer"]}, "12", 12),
    ({"anyOf": [{"type": "object", "required": ["id"]}, TEXT]}, '{"a": 1}', '{"a": 1}'),
    ({"anyOf": [{"$ref": "#/$defs/words"}, TEXT]}, "[1]", "[1]"),
    ({"anyOf": [NUMBERS, TEXT]}, '["1"]', ["1"]),  # valid after coercion: a list, as it is written
    ({"anyOf": [WORDS, {"type": "string", "maxLength": 2}]}, "[1]", [1]),  # neither is valid
    ({}, "[1]", [1]),
]


@pytest.mark.parametrize(("schema", "text", "meant"), ALONE)
@pytest.mark.parametrize("d", UNTYPED, ids=lambda d: d.name)
def test_a_text_is_the_only_valid_reading_of_a_value(d: Dialect, schema: dict[str, Any], text: str, meant: Any) -> None:
    root = {"type": "object", "properties": {"value": schema, "note": TEXT}, "$defs": {"words": WORDS}}
    assert read(d, root, {"value": text, "note": "a"}) == ({"value": meant, "note": "a"}, [])


def option(kind: str, **schemas: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"kind": {"const": kind}, **schemas}}


def by_kind(word: str, *options: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", word: list(options)}


LABEL, COUNT = option("label", value=TEXT, more=TEXT), option("count", value=INTEGER, more=INTEGER)
TOGETHER = [
    by_kind("anyOf", LABEL, COUNT),
    by_kind("oneOf", COUNT, LABEL),
    by_kind("anyOf", {"allOf": [LABEL]}, {"allOf": [COUNT]}),
    {**by_kind("oneOf", {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}), "$defs": {"a": LABEL, "b": COUNT}},
    {
        "type": "object",
        "properties": {"kind": TEXT},
        "if": {"properties": {"kind": {"const": "label"}}},
        "then": {"properties": LABEL["properties"]},
        "else": {"properties": COUNT["properties"]},
    },
]


@pytest.mark.parametrize("schema", TOGETHER, ids=["anyOf", "oneOf", "allOf", "$ref", "if"])
@pytest.mark.parametrize("d", UNTYPED, ids=lambda d: d.name)
def test_other_arguments_show_which_reading_is_valid(d: Dialect, schema: dict[str, Any]) -> None:
    for values, meant in (
        ({"kind": "label", "value": "7"}, {"kind": "label", "value": "7"}),
        ({"value": "7", "kind": "label"}, {"value": "7", "kind": "label"}),
        ({"value": "7", "more": "-8", "kind": "label"}, {"value": "7", "more": "-8", "kind": "label"}),
        ({"value": "7", "kind": "count", "more": "8"}, {"value": 7, "kind": "count", "more": 8}),
        ({"value": "seven", "kind": "label"}, {"value": "seven", "kind": "label"}),
    ):
        assert read(d, schema, values) == (meant, [])


@pytest.mark.parametrize("d", UNTYPED, ids=lambda d: d.name)
def test_no_reading_is_chosen_where_several_strings_are_valid(d: Dialect) -> None:
    pair = {"properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": TEXT}, "required": ["b"]}
    one_is_text = {"oneOf": list(pair), "properties": {"a": {"type": ["string", "integer"]}, "b": {}}}
    assert read(d, one_is_text, {"a": "1", "b": "2"}) == ({"a": 1, "b": 2}, [])


@pytest.mark.parametrize("d", UNTYPED, ids=lambda d: d.name)
def test_many_values_with_two_readings_stay_json(d: Dialect) -> None:
    names = [f"p{i}" for i in range(20)]
    schema = by_kind("anyOf", option("a", **dict.fromkeys(names, TEXT)), option("b", **dict.fromkeys(names, INTEGER)))
    values = {**dict.fromkeys(names, "7"), "kind": "a"}
    assert read(d, schema, values)[0] == {**dict.fromkeys(names, 7), "kind": "a"}


def test_arguments_are_held_back_only_if_others_decide() -> None:
    """A string of a tool without such alternatives leaves as it arrives; otherwise all leave with the call's end."""
    d = get("qwen3-coder")
    for schema, held in (
        ({"properties": {"kind": TEXT, "value": {"type": ["string", "integer"]}}}, False),
        (TOGETHER[0], True),
    ):
        written = wire(d, ("set", {"kind": "label", "value": "words " * 50}))
        decoder = Decoder(d, [Tool("set", "", schema)], "")
        events = [event for c in written for event in decoder.feed(c)] + decoder.close()
        pieces = [i for i, event in enumerate(events) if isinstance(event, ArgumentsDelta)]
        end = next(i for i, event in enumerate(events) if isinstance(event, CallEnd))
        assert (len(pieces) == 1 and end - pieces[0] == 1) is held


@pytest.mark.parametrize("d", UNTYPED, ids=lambda d: d.name)
def test_what_is_held_back_of_a_cut_call_is_not_lost(d: Dialect) -> None:
    written = wire(d, ("set", {"kind": "label", "value": "one two three"}))
    cut = written[: written.index(" three")]
    (call,) = collect(stream(d, [cut], [Tool("set", "", TOGETHER[0])])).calls
    assert not call.whole
    assert "one two" in call.json
    (other,) = collect(stream(d, list(cut), [Tool("set", "", TOGETHER[0])])).calls
    assert other == call


@pytest.mark.parametrize("d", UNTYPED, ids=lambda d: d.name)
def test_no_more_than_a_bound_is_held_back(d: Dialect) -> None:
    written = wire(d, ("set", {"kind": "label", "value": "one two three"}))
    decoder = Decoder(d, [Tool("set", "", TOGETHER[0])], "")
    decoder.feed(written[: written.index(" three")])
    sent = [event for _ in range(50) for event in decoder.feed(" word" * 10_000)]
    assert sum(len(event.json) for event in sent if isinstance(event, ArgumentsDelta)) > DEFERRED
    (call,) = collect(
        [CallStart("set", ""), *sent, *decoder.feed(written[written.index(" three") :]), *decoder.close()]
    ).calls
    assert (call.whole, call.arguments["kind"]) == (True, "label")
