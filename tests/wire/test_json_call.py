"""Shapes of a call as a JSON object: the name as its key, a call or a list of calls under a key, numbers as ids."""

from __future__ import annotations

import random
from typing import Any

import pytest
from wire_cases import TOOLS, cuts, merged, rules, stream, told

from toolspeak.dialects import get
from toolspeak.types import ToolCall
from toolspeak.wire.decode import parse
from toolspeak.wire.dialect import ARGS, CALL, ID, INDEX, NAME, TEXT, Dialect, JsonCall, Kind
from toolspeak.wire.prompt.calls import write_calls

KEYED = Dialect("keyed", (JsonCall(((NAME, ARGS),)),), open="<calls>", close="</calls>", items=("[", ", ", "]"))
NESTED = Dialect(
    "nested",
    (
        JsonCall(
            (("tool", NAME), ("args", ARGS)),
            (
                ("name", NAME), ("arguments", ARGS), ("id", ID), ("tool_call", CALL), ("tool_calls", CALL),
                ("function", CALL), ("type", Kind("function")), ("message", TEXT),
            ),
        ),
    ),
    between="\n",
    guard=True,
)  # fmt: skip
NUMBERED = Dialect("numbered", ("<call>", JsonCall((("id", INDEX), ("name", NAME), ("arguments", ARGS))), "</call>"))
PARIS = ("weather", {"city": "Paris"}, True)
PING = ("ping", {}, True)


@pytest.mark.parametrize(
    ("d", "wire", "calls", "text", "notes"),
    [
        (KEYED, '<calls>[{"weather": {"city": "Paris"}}, {"ping": {}}]</calls>', [PARIS, PING], "", []),
        (KEYED, '<calls>[{"weather": {"city": "Paris"}, "ping": {}}]</calls>', [PARIS, PING], "", []),
        (KEYED, '<calls>[{"ping": null}]</calls>', [PING], "", []),
        (KEYED, '<calls>[{"weather": "{\\"city\\": \\"Paris\\"}"}]</calls>', [PARIS], "", []),
        (KEYED, '<calls>[{"thought": null, "ping": {}}]</calls>', [PING], "", []),
        (KEYED, '<calls>[{"zz": {"a": 1}}]</calls>', [("zz", {"a": 1}, True)], "", ["unknown-tool"]),
        (NESTED, '{"tool_call": {"name": "weather", "arguments": {"city": "Paris"}}}', [PARIS], "", []),
        (NESTED, '{"tool_calls": [{"name": "weather", "arguments": {"city": "Paris"}}, {"name": "ping"}]}', [PARIS, PING], "", ["no-arguments"]),
        (NESTED, '{"type": "function", "function": {"name": "weather", "arguments": "{\\"city\\": \\"Paris\\"}"}}', [PARIS], "", []),
        (NESTED, '{"function": "ping", "args": {}}', [PING], "", []),
        (NESTED, '{"message": "Hi", "tool_calls": [{"name": "ping", "args": {}}]}', [PING], "Hi", []),
        (NESTED, '{"tool_calls": [{"name": "ping", "args": {}},], "message": "Hi"}', [PING], "Hi", ["trailing-comma"]),
        (NESTED, '{"tool_call": {"name": "ping", "args": {}}, "message": "Hi"}', [PING], "Hi", []),
        (NESTED, '{"tool_call": {"name": "ping", "args": {}}, "message": "Hi", "x": 1}', [("ping", {}, False)], "Hi", ["unknown-key"]),
        (NESTED, '{"tool_calls": [], "message": "Hi"}', [], "Hi", []),
        (NESTED, '{"tool_call": null, "message": "Hi"}', [], "Hi", []),
        (NESTED, '{"tool_calls": [{"name": "zz", "args": {}}]}', [], '{"tool_calls": [{"name": "zz", "args": {}}]}', None),
        (NESTED, '{"tool_calls": [{"a": 1}]}', [], '{"tool_calls": [{"a": 1}]}', None),
        (NESTED, '{"tool_calls": [{"name": "ping", "args": {}}, {"a": 1}]}', [PING], ', {"a": 1}]}', None),
        (get("tool-call"), '{"type": "final", "index": 7, "content": "Hi"}', [], "Hi", ["ignored-key"]),
        (NESTED, '{"tool_calls": 3}', [], '{"tool_calls": 3}', None),
        (NUMBERED, '<call>{"id": 0, "name": "ping", "arguments": {}}</call>', [PING], "", []),
        (NUMBERED, '<call>{"id": "0", "name": "ping", "arguments": {}}</call>', [PING], "", []),
        (NUMBERED, '<call>{"id": [0], "name": "ping", "arguments": {}}</call>', [PING], "", ["ignored-key"]),
    ],
)  # fmt: skip
def test_shapes(d: Dialect, wire: str, calls: list[Any], text: str, notes: list[str] | None) -> None:
    reply = parse(wire, d, TOOLS)
    assert (told(reply), reply.text) == (calls, text)
    if notes is not None:
        assert rules(reply) == notes
    for chunks in cuts(wire, random.Random(1)):
        assert merged(stream(d, chunks)) == merged(stream(d, [wire]))


@pytest.mark.parametrize(
    ("wire", "ids"),
    [
        ('<call>{"id": 7, "name": "ping", "arguments": {}}</call>', ["7"]),
        ('<call>{"id": "7", "name": "ping", "arguments": {}}</call>', ["7"]),
        ('<call>{"name": "ping", "arguments": {}, "id": 7}</call>', ["7"]),
    ],
)
def test_a_number_is_an_id(wire: str, ids: list[str]) -> None:
    assert [c.id for c in parse(wire, NUMBERED, TOOLS).calls] == ids


@pytest.mark.parametrize(
    "wire",
    [
        '{"id": "x1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}',
        '{"type": "function", "function": {"name": "ping", "arguments": "{}"}, "id": "x1"}',
        '{"tool_calls": [{"id": "x1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}]}',
    ],
)
def test_the_id_of_a_nested_call(wire: str) -> None:
    assert [(c.name, c.id) for c in parse(wire, NESTED, TOOLS).calls] == [("ping", "x1")]


def test_writing() -> None:
    calls = [ToolCall("", "weather", {"city": "Paris"}), ToolCall("", "ping", {})]
    assert write_calls(calls, KEYED) == '<calls>[{"weather": {"city": "Paris"}}, {"ping": {}}]</calls>'
    assert (
        write_calls([ToolCall("3", "ping", {})], NUMBERED)
        == '<call>{"id": "3", "name": "ping", "arguments": {}}</call>'
    )


@pytest.mark.parametrize("before", ['"a": 1 ', '"a": ', '"a": ["b" '])
def test_why_a_long_word_is_refused_does_not_depend_on_the_cut(before: str) -> None:
    wire = f'<TOOLCALL>[{{"name": "e", "arguments": {{{before}{"<a>" * 200} '
    d = get("nemotron-nano-v2")
    expected = merged(stream(d, [wire]))
    for size in (1, 2, 50, 300):
        assert merged(stream(d, [wire[at : at + size] for at in range(0, len(wire), size)])) == expected, size
