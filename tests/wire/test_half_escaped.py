"""Strings with an escape that is none: were they escaped at all? If it makes a difference, the call is not whole."""

from __future__ import annotations

import random
from typing import Any

import pytest
from spoken import TALKING, wire
from wire_cases import cuts, merged, rules, stream, told

from toolspeak.dialects import get
from toolspeak.types import Tool
from toolspeak.wire.dialect import Dialect, Json, JsonCall, Keywords
from toolspeak.wire.reading.collect import collect

TOOLS: tuple[Tool[..., Any], ...] = (Tool("write", "", {"type": "object", "properties": {"path": {"type": "string"}}}),)
QUOTING = [d for d in TALKING if d.name != "empower" and any(isinstance(p, (Json, JsonCall)) for p in d.call)]
"""Dialects whose arguments are JSON, in which a backslash has a meaning."""
AMBIGUOUS = ["C:\\new\\data", "\\d+\\t", "\\\\server\\share", "\\d" + "z" * 1500 + "\\n", "\\n" + "z" * 1500 + "\\d"]
CERTAIN = {
    "C:\\Data\\x": "C:\\Data\\x",
    "\\d+\\.\\w": "\\d+\\.\\w",
    "one\\ntwo \\\\d": "one\ntwo \\d",
    '\\"a\\" \\d': '"a" \\d',
    "it\\'s \\d": "it's \\d",
    "echo \\$HOME\\nls": "echo \\$HOME\nls",
}
DOC = '    \\"\\"\\"One.\\n    Two.\\n    \\"\\"\\"\\n'
CODE = [
    'import re\\nprint(\\"x\\")\\nre.sub(r\\"\\d+\\", \\"\\", s)\\n',
    "def f():\\n" + DOC + '    return re.match(r\\"\\s*\\w\\.\\d\\", x)\\n',
    'x = 1;\\ny = s.replace(/\\s+/g, \\"\\");\\n\\n',
    'a = \\"b\\"\\n' * 300 + 'if x:\\n\\treturn re.split(\\"\\W\\", x)\\n',
]
"""Code whose quotes and lines are escaped, and whose regular expressions are not."""
NOT_CERTAIN = [
    'cd \\"C:\\new\\data\\"\\n',
    'cd C:\\new\\data && echo \\"x\\"\\n',
    'findstr \\"\\d\\" temp\\new.txt',
    'copy temp\\new.txt \\"D:\\data dir\\"\\n',
    'print(\\"a\\n\\", re.sub(\\"\\d\\", x))\\n',
    're.sub(r\\"\\bfoo\\d+\\", \\"\\", s)\\n',
    're.sub(r\\"\\d\\n\\", \\"\\", s)\\n',
    'x = re.sub(\\"' + "a" * 600 + '\\d\\", x)\\n',
]
"""Texts in which an escape may be none, though a quote is escaped."""

PYTHON = [d for d in TALKING if any(isinstance(part, Keywords) and part.escapes for part in d.call)]


@pytest.mark.parametrize("d", QUOTING, ids=lambda d: d.name)
def test_a_string_with_escapes_and_one_that_is_none_is_not_whole(d: Dialect) -> None:
    before, _, behind = wire(d, ("write", {"path": "VALUE"})).partition("VALUE")
    for value in (*AMBIGUOUS, *CERTAIN):
        text = before + value + behind
        events = stream(d, [text], TOOLS)
        for chunks in list(cuts(text, random.Random(value)))[::2]:
            assert merged(stream(d, chunks, TOOLS)) == merged(events)
        reply = collect(events)
        if value in CERTAIN:
            assert told(reply) == [("write", {"path": CERTAIN[value]}, True)]
        else:
            assert [call.whole for call in reply.calls] == [False]
            assert "half-escaped" in rules(reply)


def check_code(d: Dialect, before: str, behind: str, quote: str) -> None:
    for value in (*CODE, *NOT_CERTAIN):
        text = before + value.replace('"', quote) + behind
        events = stream(d, [text], TOOLS)
        for chunks in cuts(text, random.Random(value)):
            assert merged(stream(d, chunks, TOOLS)) == merged(events)
        reply = collect(events)
        assert [call.whole for call in reply.calls] == [value in CODE], value
        if value in CODE:
            content = value.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', quote)
            assert reply.calls[0].arguments == {"path": content}


@pytest.mark.parametrize("d", [*QUOTING, *PYTHON], ids=lambda d: d.name)
def test_code_with_escaped_quotes_and_lines_may_have_regular_expressions_that_are_not_escaped(d: Dialect) -> None:
    before, _, behind = wire(d, ("write", {"path": "VALUE"})).partition("VALUE")
    check_code(d, before, behind, before[-1])


def test_a_string_in_a_json_string_is_not_whole_either() -> None:
    d = get("empower")
    before, _, behind = wire(d, ("write", {"path": "VALUE"})).partition("VALUE")
    for value, whole in (("C:\\new\\data", False), ("C:\\\\new\\\\data", False), ("C:\\Data\\x", True)):
        text = before + value + behind
        events = stream(d, [text], TOOLS)
        assert [call.whole for call in collect(events).calls] == [whole]
        assert merged(stream(d, list(text), TOOLS)) == merged(events)


@pytest.mark.parametrize("d", PYTHON, ids=lambda d: d.name)
def test_a_python_string_with_escapes_and_one_that_is_none_is_not_whole(d: Dialect) -> None:
    before, _, behind = wire(d, ("write", {"path": "VALUE"})).partition("VALUE")
    certain = CERTAIN | {r"\x41\u0041\101": "AAA", r"a\tb\v": "a\tb\v"}
    for value in (*AMBIGUOUS, "C:\\app\\data", "\\bfoo\\d+", "\\x41\\d", "(\\w)\\1", *certain):
        text = before + value + behind
        events = stream(d, [text], TOOLS)
        for chunks in list(cuts(text, random.Random(value)))[::2]:
            assert merged(stream(d, chunks, TOOLS)) == merged(events)
        reply = collect(events)
        if value in certain:
            assert told(reply) == [("write", {"path": certain[value]}, True)]
        else:
            assert [call.whole for call in reply.calls] == [False], value
            assert "half-escaped" in rules(reply)


def test_each_part_of_a_joined_string_is_escaped_or_not_by_itself() -> None:
    d = get("pythonic")
    for value, whole in (
        ('"a\\n" r"\\d"', True),
        ('"a\\n" "\\d"', True),
        ('"a\\n\\d" "b"', False),
        ('r"\\d\\n"', True),
    ):
        reply = collect(stream(d, [f"[write(path={value})]"], TOOLS))
        assert [call.whole for call in reply.calls] == [whole], value
