"""Arguments that are text: raw code, and what is no JSON where JSON is wanted."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from codec_run import run, same_at_every_cut
from hypothesis import strategies as st
from spoken import TALKING, wire
from wire_cases import cuts, merged, stream, told

from properties import property_test
from toolspeak.dialects import get
from toolspeak.events import ArgumentsDelta
from toolspeak.types import Tool
from toolspeak.wire.dialect import Dialect, Json, Raw
from toolspeak.wire.holes import json_args, raw
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.turn_ends import TURN_ENDS

CODE = Raw("code", "python")
SCHEMA = {"properties": {"city": {"type": "string"}, "n": {}}}
ENDS = ("Observation:", "<end>")


@property_test(
    100, st.text(st.characters(exclude_categories=["Cs"])) | st.text('ab<en\\"\n'), st.sampled_from(["", "<end>"])
)
def test_raw_is_the_text_up_to_what_follows(text: str, end: str) -> None:
    if "<end>" in text:
        return
    ran = same_at_every_cut(raw.read, CODE, text + end, {}, ("<end>",))
    assert (json.loads(ran.json), ran.rest, ran.error) == ({"code": text}, end, "")
    assert raw.write(CODE, {"code": text}) == text
    ran = same_at_every_cut(raw.read, CODE, text, {}, ())
    assert json.loads(ran.json) == {"code": text}


def test_raw_streams() -> None:
    ran = run(raw.read, CODE, ["print(", "1)"], {}, ("<end>",))
    assert [e.json for e in ran.events if isinstance(e, ArgumentsDelta)] == ['{"code": "', "print(", "1)", '"}']


@pytest.mark.parametrize(
    ("text", "arguments", "notes", "rest"),
    [
        ('{"city": "Paris"}\nObservation:', {"city": "Paris"}, [], "\nObservation:"),
        ('"{\\"city\\": 1}"', {"city": 1}, [], ""),
        ("Paris\nObservation:", {"city": "Paris"}, ["plain-argument"], "Observation:"),
        ('  Paris, "France"\n\n<end>', {"city": 'Paris, "France"\n'}, ["plain-argument"], "<end>"),
        ('"Paris"\n<end>', {"city": "Paris"}, ["plain-argument"], "\n<end>"),
        ('"a" + "b"\n<end>', {"city": '"a" + "b"'}, ["plain-argument"], "<end>"),
        ('"Paris', {"city": '"Paris'}, ["plain-argument"], ""),
        ("null", {}, [], ""),
        ("None\n<end>", {}, [], "\n<end>"),
        ("None of them", {"city": "None of them"}, ["plain-argument"], ""),
        ("[1, 2]", {"city": "[1, 2]"}, ["plain-argument"], ""),
        ("3<en", {"city": "3<en"}, ["plain-argument"], ""),
    ],
)
def test_plain_arguments(text: str, arguments: dict[str, Any], notes: list[str], rest: str) -> None:
    ran = same_at_every_cut(json_args.read_hole, Json(plain=True), text, SCHEMA, ENDS)
    assert (json.loads(ran.json), ran.rules, ran.rest, ran.error) == (arguments, notes, rest, "")


def test_plain_without_a_schema_is_the_input() -> None:
    ran = same_at_every_cut(json_args.read_hole, Json(plain=True), "x\ny", {}, ())
    assert ran.json == '{"input": "x\\ny"}'


def test_what_is_no_json_is_refused_where_it_may_not_be_plain() -> None:
    assert run(json_args.read_hole, Json(), ["Paris"], SCHEMA, ENDS).error
    assert run(json_args.read_hole, Json(), ['{"a": 1}'], SCHEMA, ENDS).json == '{"a": 1}'


@property_test(
    200,
    st.lists(
        st.sampled_from([*'ab"\\{}[]\n :<', "null", "</s>", "<|im_", "<end>", "<en", "Observation", "\\u00e9"])
    ).map("".join),
)
def test_any_text_reads_the_same_at_every_cut(text: str) -> None:
    ran = same_at_every_cut(json_args.read_hole, Json(plain=True), text, SCHEMA, ENDS)
    if not ran.error:
        json.loads(ran.json)


TOOLS: list[Tool[..., Any]] = [
    Tool("python", "", {"type": "object", "properties": {"code": {"type": "string"}}}),
    Tool("weather", "", {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}),
]
PLAIN = {
    "react": "Action: python\nAction Input:",
    "functionary-v2": "<|from|>assistant\n<|recipient|>python\n<|content|>",
    "functionary-v2-llama3": "<|reserved_special_token_249|>python\n",
    "functionary-v3": ">>>python\n",
}
"""Dialects in which a text without an end may replace the arguments."""


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("mark", [*TURN_ENDS, "</s>\n", "\n<|im_end|>", "<|eot_id|></s>"])
def test_the_mark_of_an_end_is_no_part_of_a_text_that_it_ends(name: str, mark: str) -> None:
    d = get(name)
    for text, arguments in (
        ("", {}),
        ("ls", {"code": "ls"}),
        ('"ls"', {"code": "ls"}),
        ("None", {}),
        ('print({"a": 1})', {"code": 'print({"a": 1})'}),
        ("grep '</s>' f", {"code": "grep '</s>' f"}),
        ("<|im_end|>\nis a mark", {"code": "<|im_end|>\nis a mark"}),
    ):
        whole = PLAIN[name] + text + mark
        events = stream(d, [whole], TOOLS)
        assert told(collect(events)) == [("python", arguments, True)], text
        for chunks in cuts(whole, random.Random(whole)):
            assert merged(stream(d, chunks, TOOLS)) == merged(events)


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_a_call_before_the_mark_of_an_end_of_another_family_is_whole(d: Dialect) -> None:
    text = wire(d, ("weather", {"city": "Rome", "days": 2}))
    for mark in ("</s>", "\n<|im_end|>", "<|eot_id|></s>\n"):
        reply = collect(stream(d, [text + mark], TOOLS))
        assert told(reply) == [("weather", {"city": "Rome", "days": 2}, True)]
        assert merged(stream(d, list(text + mark), TOOLS)) == merged(stream(d, [text + mark], TOOLS))
