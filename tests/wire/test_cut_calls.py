"""Every beginning of a call: it is never whole with other arguments than those that the model wrote."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from spoken import TALKING, wire
from wire_cases import merged, stream, told

import toolspeak as ts
from properties import rotated
from toolspeak.dialects import get
from toolspeak.schema.infer import as_tools
from toolspeak.types import Tool
from toolspeak.wire.decode import parse
from toolspeak.wire.dialect import Dialect, Json, JsonCall, Keywords
from toolspeak.wire.reading.lexicon import turn_ends
from toolspeak.wire.reading.source import CAP

CALL = ("delete_file", {"path": "/data"})
OPEN_SCHEMAS: tuple[dict[str, Any], ...] = (
    {"type": "object"},
    {"type": "object", "properties": {}},
    {"type": "object", "properties": {"force": {"type": "string"}}, "additionalProperties": True},
    {"type": "object", "properties": {}, "patternProperties": {"^p": {"type": "string"}}},
    {"type": "object", "additionalProperties": {"type": "string"}},
)
"""Tools that may take more parameters than they list."""


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_a_call_that_is_cut_is_not_whole_for_a_tool_that_takes_any_parameter(d: Dialect) -> None:
    text = wire(d, CALL)
    offers = [as_tools([{"name": "delete_file", "parameters": schema}]) for schema in OPEN_SCHEMAS]
    for tools in (None, *offers):
        for i in rotated(range(len(text)), 5, zlib.crc32(d.name.encode())):
            reply = parse(text[:i], d, tools)
            if (
                not text[:i].rstrip().endswith("Action Input:")
            ):  # complete for a tool that lists no parameters, see below
                assert [call for call in told(reply) if call[2] and call[:2] != CALL] == [], text[:i]
        assert told(parse(text, d, tools)) == [(*CALL, True)]


def test_a_label_that_nothing_closes_is_complete_for_a_tool_that_lists_no_parameters() -> None:
    listed = {"type": "object", "properties": {"zone": {"type": "string"}}}
    takes_none = (*OPEN_SCHEMAS[:2], {"type": "object", "properties": {}, "additionalProperties": False})
    for schema in (*takes_none, *OPEN_SCHEMAS[2:], listed, None):
        tools, complete = (
            as_tools([{"name": "get_time", "parameters": schema}]) if schema else None,
            schema in takes_none,
        )
        for text in ("Thought: x\nAction: get_time\nAction Input:", "**Action:** get_time\n**Action Input:** \n"):
            reply = parse(text, ts.dialect("react"), tools)
            assert (told(reply), reply.finish) == ([("get_time", {}, complete)], "tool_calls" if complete else "length")


def test_code_that_may_be_the_beginning_of_a_name_is_not_whole() -> None:
    d, code = ts.dialect("llama3-builtin"), {"name": "code_interpreter", "parameters": {"type": "object"}}
    search = {"name": "brave_search", "parameters": {"type": "object"}}
    for text, tools in (("brave_se", None), ("brave_se", [code, search])):
        reply = ts.parse("<|python_tag|>" + text, d, tools)
        assert ([call.whole for call in reply.calls], reply.finish) == ([False], "length")
    for text, tools in (("x = 1", None), ("x", [code, search]), ("brave_search", [code]), ("1", None)):
        assert [call.whole for call in ts.parse("<|python_tag|>" + text, d, tools).calls] == [True]


NUMBERS: dict[str, Any] = {"query": {"type": "string"}, "limit": {"type": "integer"}, "ratio": {"type": "number"}}
SEARCH: list[Tool[..., Any]] = [
    Tool("search", "", {"type": "object", "properties": NUMBERS, "additionalProperties": False})
]
WITHOUT_CLOSERS = [d for d in TALKING if any(isinstance(part, Json | JsonCall | Keywords) for part in d.call)]
"""Dialects in which nothing closes a number."""


@pytest.mark.parametrize("d", WITHOUT_CLOSERS, ids=lambda d: d.name)
@pytest.mark.parametrize("value", [{"limit": 12345}, {"query": "a", "ratio": 1.25}, {"query": "a", "limit": -10}])
def test_a_number_directly_before_the_mark_of_an_end_may_be_incomplete(d: Dialect, value: dict[str, Any]) -> None:
    text, digits = wire(d, ("search", value)), str(list(value.values())[-1])
    start = text.rindex(digits)
    for end in range(start + 1, start + len(digits) + 1):
        for tail in ("", *(mark for mark in turn_ends(d) if mark[0] == "<"), "</s>", "<|im_end|>"):
            assert [call for call in told(parse(text[:end] + tail, d, SEARCH)) if call[2]] == [], text[:end] + tail


def test_a_number_is_complete_if_something_follows_it() -> None:
    call = '{"name": "search", "arguments": {"limit": 12'
    for d, text in (
        ("hermes", f"<tool_call>{call}}}</tool_call>"),
        ("hermes", f"<tool_call>{call}\n</tool_call>"),
        ("hermes", f'<tool_call>{call}, "query": "a"</tool_call>'),
        ("lfm2", "<|tool_call_start|>[search(limit=12)<|tool_call_end|>"),
        ("lfm2", "<|tool_call_start|>[search(limit=12, query='a'<|tool_call_end|>"),
        ("lfm2", "<|tool_call_start|>[search(limit=12<|tool_call_end|>"),
        ("lfm2", "<|tool_call_start|>[search(limit=12]<|im_end|>"),
        ("harmony", '<|channel|>commentary to=functions.search<|message|>{"limit": 12<|call|>'),
    ):
        (found,) = ts.parse(text, d, SEARCH).calls
        assert (found.arguments["limit"], found.whole) == (12, True), text


@pytest.mark.parametrize("name", ["cohere2-moe", "hermes", "mistral-v3", "tool-json"])
def test_a_key_as_long_as_may_be_is_read_the_same_at_every_cut(name: str) -> None:
    d = get(name)
    call = wire(d, ("f", {}))
    for length in range(CAP - 3, CAP + 4):
        key = "k" * length
        for text in (f'{call}{{"{key}"', f'{call}{{"{key}": 1}}', f'<|START_ACTION|>{{"tool_name":"e"}}{{"{key}"'):
            assert merged(stream(d, list(text), None)) == merged(stream(d, [text], None)), length
