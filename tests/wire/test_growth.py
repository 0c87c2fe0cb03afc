"""Time grows with the length of the text, whatever the text and however it is cut: twice as much takes about twice as long."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from grows import MOST, growth
from spoken import wire
from wire_cases import DIALECTS, one_of

from properties import rotated, thinned
from toolspeak.types import Tool
from toolspeak.wire.dialect import Dialect

SCHEMA = {"type": "object", "properties": {"s": {"type": "string"}, "u": {"type": ["integer", "null"]}}}
TOOLS = (Tool("f", "", SCHEMA), Tool("weather", "", SCHEMA))
Make = Callable[[int], str]


def times(unit: str) -> Make:
    return lambda n: (unit * (n // len(unit) + 1))[:n]


def around(before: str, unit: str, after: str = "") -> Make:
    return lambda n: before + times(unit)(n) + after


def deep(before: str, after: str) -> Make:
    return lambda n: before + "[" * (n // 2) + "]" * (n // 2) + after


ANY: dict[str, Make] = {  # texts of no dialect
    "plain": times("the quick brown fox jumps over the lazy dog. "),
    "white space": times(" "),
    "new lines": times("\n"),
    "braces": times("{"),
    "brackets": times("["),
    "almost a call": times("[f"),
    "quotes": times('{"'),
    "fences": times("```json\n"),
    "backticks": times("`"),
    "thoughts": times("<think></think>\n<thinking></thinking>\n"),
    "half thoughts": times("\n<thin"),
    "stray openers": times("<tool_call>\n<f> functools["),
    "half openers": times("<tool_cal functool"),
    "data": lambda n: json.dumps([{"a": i, "b": [True, None]} for i in range(n // 30)]),
    "broken data": times('{"a": 1 x '),
    "many objects": times('{"a": 1} '),
    "blanks after a key": around('{"status"', " "),
    "nested arguments first": times('{"arguments": {"args": {"tool_input": '),
}
ASKED = [
    "hermes",
    "tool-json",
    "empower",
    "qwen3-coder",
    "llama3-json",
    "pythonic",
    "gemma4",
    "harmony",
    "functionary-v3",
    "react",
    "minimax-m3",
]

JSON = '<tool_call>{"name":"f","arguments":'
TEXT = '<tool_call>{"name": "f", "arguments": {"s": "'
TAG = "<tool_call>\n<function=f>\n<parameter=s>\n"
MARK = "]<]minimax[>["
TREE = f'{MARK}<tool_call>\n{MARK}<invoke name="f">'
PYTHON = "<|tool_call_start|>[f(s="
HURTING: dict[str, tuple[str, Make]] = {
    "opener and space": ("hermes", around("<tool_call>", " ")),
    "a name that never ends": ("hermes", around('<tool_call>{"name": "', "a")),
    "unknown keys and lists": ("hermes", around('<tool_call>{"x":["', '{"x":["')),
    "many calls": ("hermes", times('<tool_call>{"name": "f", "arguments": {}}</tool_call>\n')),
    "a long string": ("hermes", around(TEXT, "some words ")),
    "escapes": ("hermes", around(TEXT, '\\n\\"\\q')),
    "raw lines": ("hermes", around(TEXT, "a\n")),
    "apostrophes": ("hermes", around("<tool_call>{'name': 'f', 'arguments': {'s': '", "' ")),
    "apostrophes and space": ("hermes", around("<tool_call>{'name': 'f', 'arguments': {'s': '", "'" + " " * 250)),
    "deep": ("hermes", deep(f'{JSON}{{"a":', "}}</tool_call>")),
    "deep and open": ("hermes", around(JSON, '{"a":[')),
    "a long number": ("hermes", around(f'{JSON}{{"a":', "1")),
    "space in JSON": ("hermes", around(f'{JSON}{{"a":', " ")),
    "space after a comma": ("hermes", around(f'{JSON}{{"a":[1,', " ")),
    "closers after a call": ("hermes", around(JSON + "{}}", "</tool_call>")),
    "brackets after a call": ("hermes", around(JSON + "{}}", "}")),
    "unknown keys": ("hermes", around('<tool_call>{"name": "f"', ', "k": 1')),
    "many bare calls": ("tool-json", times('{"tool": "f", "tool_input": {}}\n{"functionName": "f", "args": {}}\n')),
    "a text before the name": ("tool-json", around('{"message": "', "x", '", "tool": "zz"}')),
    "arguments before the name": ("tool-json", around('{"tool_input": {"a": "', "x", '"}, "tool": "zz"}')),
    "a text answer": ("tool-json", around('{"tool": null, "message": "', "word \\u00e9 ")),
    "loose arguments": ("tool-call", around('{"type": "f", "a": 1', ', "b": [1]')),
    "a list of calls": ("functools", around(' functools[{"name": "f", "arguments": {}}', ', {"name": "f", "arguments": {}}')),
    "encoded": ("empower", around('<f>[{"name":"f","arguments":"{\\"a\\": \\"', "b\\\\n c")),
    "encoded and deep": ("empower", around('<f>[{"name":"f","arguments":"{\\"a\\": ', '[{\\"b\\":')),
    "encoded, broken": ("empower", around('<f>[{"name":"f","arguments":"x', "{")),
    "bare arguments, not a tool": ("llama3-json", around('{"parameters": {"a": "', "x", '"}, "name": "zz"}')),
    "bare and nested": ("llama3-json", times('{"parameters": ')),
    "named openers": ("qwen3-coder", times("<tool_call>\n<function=f ")),
    "an opener and space": ("qwen3-coder", around("<tool_call>", " ")),
    "closers in a value": ("qwen3-coder", around(TAG, "</parameter> ")),
    "closers and space": ("qwen3-coder", around(TAG, "</parameter>" + " " * 250)),
    "all closers": ("qwen3-coder", around(TAG, "\n</parameter>\n</function>\n</tool_call")),
    "openers in a value": ("qwen3-coder", around(TAG, "<parameter=zz>\n")),
    "a value that is no string": ("qwen3-coder", around(TAG.replace("=s>", "=u>"), "1")),
    "many parameters": ("qwen3-coder", around("<tool_call>\n<function=f>\n", "<parameter=s>\na\n</parameter>\n")),
    "pairs without values": ("glm47", around("<tool_call>f", "<arg_key>s</arg_key>")),
    "half a pair's closer": ("glm47", around("<tool_call>f<arg_key>s</arg_key><arg_value>", "</arg_value")),
    "a typed value": ("deepseek-dsml", around('<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n', '<｜DSML｜parameter name="s" ')),
    "a deep tree": ("minimax-m3", around(TREE, f"{MARK}<a>")),
    "a tree of many names": ("minimax-m3", lambda n: TREE + "".join(f"{MARK}<a{i}>x{MARK}</a{i}>" for i in range(n // 40))),
    "an element and marks": ("minimax-m3", around(f"{TREE}{MARK}<s>", MARK)),
    "deep Python": ("lfm2", deep("<|tool_call_start|>[f(a=", ")]")),
    "quotes in a string": ("lfm2", around(f"{PYTHON}'", "' ")),
    "quotes, closers and commas": ("lfm2", around(f"{PYTHON}'", "', ) ] ")),
    "long strings' quotes": ("lfm2", around(f"{PYTHON}'''", "'' ")),
    "positions": ("lfm2", around("<|tool_call_start|>[f(", "1, ")),
    "bare keys": ("gemma4", around("<|tool_call>call:f{", "a:{")),
    "quotes of its own": ("gemma4", around('<|tool_call>call:f{s:<|"|>', '<|"')),
    "heads": ("harmony", times("<|start|>assistant")),
    "a head that never ends": ("harmony", around("<|start|>assistant<|channel|>commentary to=functions.f", " a")),
    "ends": ("harmony", times("<|end|><|return|>")),
    "starts": ("functionary-v3", around(">>>f\n", ">>>")),
    "a code and marks": ("llama3-builtin", around("<|python_tag|>", "<|eom_id")),
    "thoughts in words": ("react", times("Thought: a\nAction: ")),
    "numbered names": ("kimi-k2", around("<|tool_calls_section_begin|>", "<|tool_call_begin|>functions.")),
    "thoughts that calls may end": ("kimi-k2", around("<think>", "<|tool_calls_section_begin|><|tool_call_")),
}  # fmt: skip
SIZES = pytest.mark.parametrize("size", [0, 1], ids=["whole", "by characters"])


@SIZES
@pytest.mark.parametrize("name", thinned(ASKED, 3))
@pytest.mark.parametrize("kind", rotated([*ANY], 2))
def test_time_grows_with_any_text(kind: str, name: str, size: int) -> None:
    assert growth(one_of(name), ANY[kind], size, TOOLS) <= MOST


@SIZES
@pytest.mark.parametrize("kind", rotated([*HURTING], 3))
def test_time_grows_with_a_text_made_to_hurt(kind: str, size: int) -> None:
    name, make = HURTING[kind]
    assert growth(one_of(name), make, size, TOOLS) <= MOST


@pytest.mark.parametrize("d", rotated(DIALECTS, 3), ids=lambda d: d.name)
def test_every_dialect_takes_a_megabyte(d: Dialect) -> None:
    """A text, and a call with a long argument, in each."""
    text = wire(d, ("code_interpreter", {"code": "@@"}))
    head, _, tail = text.partition("@@")
    tools = (Tool("code_interpreter", "", {"type": "object", "properties": {"code": {"type": "string"}}}),)
    assert growth(d, ANY["plain"], 4, tools) <= MOST
    assert growth(d, around(head, "x = [1] ", tail), 4, tools) <= MOST
